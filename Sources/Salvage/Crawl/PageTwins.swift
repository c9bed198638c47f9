import Platform
/// Finds byte-identical pages within trees.
struct PageTwins {
  private struct Key: Hashable, Comparable {
    let fields: Int
    let cells: Int
    let first: Int64
    let last: Int64
    let look: UInt8
    let sample: UInt32

    init(_ page: UInt32, _ map: PageMap) {
      look = map.look(page).rawValue
      first = map.firstKey(page)
      last = map.lastKey(page)
      fields = map.fieldCount(page)
      cells = map.cellCount(page)
      sample = map.sample(page)
    }

    static func < (one: Key, other: Key) -> Bool {
      (one.first, one.last, one.cells, one.fields, one.look, one.sample)
        < (other.first, other.last, other.cells, other.fields, other.look, other.sample)
    }
  }

  private let pages: [UInt32]

  /// Pages with a common key, by hash.
  private var alike: [Int: [UInt32]] = [:]

  init(_ crawl: Crawl) throws {
    let map = crawl.map
    var pages: [UInt32] = []
    for tree in crawl.trees {
      for page in tree.leaves + tree.innerPages where map.fate(page) == .tree && map.fieldCount(page) > 0 {
        pages.append(page)
      }
    }
    self.pages = pages.sorted { (Key($0, map), $0) < (Key($1, map), $1) }
    var buffer = crawl.reader.makeBuffer()
    for place in self.pages.indices {
      let key = Key(self.pages[place], map)
      let neighbours = [place - 1, place + 1].filter { self.pages.indices.contains($0) }
      guard neighbours.contains(where: { Key(self.pages[$0], map) == key }),
        try crawl.reader.readPlace(self.pages[place], into: &buffer)
      else { continue }
      alike[buffer.hashValue, default: []].append(self.pages[place])
    }
  }

  /// The page identical to a misplaced page 1, if any.
  static func twinOfFirst(_ map: PageMap, _ reader: PageReader) throws -> UInt32? {
    guard map.isFirstPageMisplaced, map.pageCount >= 2 else { return nil }
    var first = reader.makeBuffer()
    guard try reader.readPlace(1, into: &first) else { return nil }
    var other = reader.makeBuffer()
    let key = Key(1, map)
    for page in 2...map.pageCount where Key(page, map) == key {
      if try reader.readPlace(page, into: &other), other == first { return page }
    }
    return nil
  }

  /// The most copies of a page; content shared by more tables is the app's own.
  static let limit = 8

  func twins(of page: UInt32, in crawl: Crawl) throws -> [UInt32] {
    let key = Key(page, crawl.map)
    let low = pages.partitioningIndex { !(Key($0, crawl.map) < key) }
    guard low < pages.count, Key(pages[low], crawl.map) == key else { return [] }
    let isOnly = low + 1 == pages.count || Key(pages[low + 1], crawl.map) != key
    var own = crawl.reader.makeBuffer()
    guard !isOnly || pages[low] != page, try crawl.reader.readPlace(page, into: &own) else { return [] }
    var other = crawl.reader.makeBuffer()
    var twins: [UInt32] = []
    for candidate in isOnly ? [pages[low]] : alike[own.hashValue] ?? [] where candidate != page {
      if try crawl.reader.readPlace(candidate, into: &other), own == other { twins.append(candidate) }
      if twins.count == Self.limit { break }
    }
    return twins
  }
}
