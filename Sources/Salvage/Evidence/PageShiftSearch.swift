internal import Platform
internal import SQLiteFormat

/// Finds whole pages that were removed from a file or inserted into it.
///
/// The header's page count states their number, and pointers to pages their place: pointers to earlier pages lead to
/// fitting ones, those to later pages to others, with the fitting ones that many places off.
struct PageShiftSearch {
  /// The fewest pointers that a shift must explain beyond a cut or extended file.
  private static let leastGain = 2

  private let reader: PageReader
  private let map: PageMap

  /// The number of inserted pages; negative for removed ones.
  private let shift: Int64

  /// The page numbers that pointers name.
  private var pointers: [Int64] = []

  /// The page numbers that fit the content at their places.
  private var before: [Int64] = []

  /// The page numbers that fit the content shifted from their places.
  private var after: [Int64] = []

  private init(_ reader: PageReader, _ map: PageMap, shift: Int64) {
    self.reader = reader
    self.map = map
    self.shift = shift
  }

  /// Returns the file with each page at its place; nil if no pages were removed or inserted.
  static func realigned(_ evidence: Evidence) throws -> RealignedFile? {
    let main = evidence.main
    guard !(main is RealignedFile), !evidence.endsInHole,
      let header = DatabaseHeader(try main.bytes(at: 0, length: DatabaseHeader.length)), header.hasMagic,
      header.isPageCountValid, let size = header.pageSize, main.count % Int64(size) == 0
    else { return nil }
    let count = main.count / Int64(size)
    let shift = count - Int64(header.pageCount)
    guard shift != 0, abs(shift) < count, let layout = try FileLayoutSearch(main: main).find(), layout.base == 0,
      layout.pageSize == size, Int64(layout.pageCount) == count
    else { return nil }
    let reader = PageReader(evidence: evidence, layout: layout, overlay: nil)
    var search = PageShiftSearch(reader, try PageSurvey.run(reader) { _ in }, shift: shift)
    try search.followPointers()
    try search.lookAtRoots()
    search.pointers.sort()
    search.before.sort()
    search.after.sort()
    guard let found = search.place() else { return nil }
    let (place, hole) = (Int64(size) * (found.upperBound - 1), Int64(size) * max(0, -shift))
    var parts = [RealignedFile.Part(place: 0, offset: 0)]
    if hole > 0 { parts.append(.init(place: place, offset: main.count)) }
    parts.append(.init(place: place + hole, offset: place + Int64(size) * max(0, shift)))
    let isExact = found.lowerBound == found.upperBound
    return RealignedFile(
      main, .pages, parts, uncertain: isExact ? [] : [Int64(size) * (found.lowerBound - 1)..<place + hole])
  }

  private mutating func followPointers() throws {
    var buffer = reader.makeBuffer()
    for page in 1...map.pageCount where map.fate(page) == .unclaimed {
      switch map.look(page) {
      case .tableInterior, .indexInterior:
        let node = try InnerPage(page, reader)
        guard !node.isDamaged else { continue }
        let isTable = map.look(page) == .tableInterior
        for (index, child) in node.children.enumerated() {
          let low = index > 0 && isTable ? node.keys[index - 1] : .min
          let high = index < node.keys.count ? node.keys[index] : .max
          pointers.append(Int64(child))
          if fits(Int64(child), isTable, above: low, upTo: high) { before.append(Int64(child)) }
          if fits(Int64(child) + shift, isTable, above: low, upTo: high) { after.append(Int64(child)) }
        }
      case .linked:
        // The pages of a chain mostly follow each other.
        guard try reader.readPlace(page, into: &buffer), let next = buffer.span.uint32(at: 0) else { continue }
        if Int64(next) == Int64(page) + 1 { before.append(Int64(page)) }
        if Int64(next) == Int64(page) - shift + 1 { after.append(Int64(page) - shift) }
      case .missing, .zero, .unknown, .broken, .tableLeaf, .indexLeaf: break
      }
    }
  }

  /// Compares the pages at the roots' places with the shapes of their tables and indexes.
  private mutating func lookAtRoots() throws {
    var buffer = reader.makeBuffer()
    let schema = try SchemaSearch.find(reader, map)
    for tree in TreeList(found: schema.entries, isWhole: schema.isWhole, expected: nil).trees.dropFirst() {
      func fits(_ place: Int64) throws -> Bool {
        guard place > 1, place <= Int64(map.pageCount), try reader.readPlace(UInt32(place), into: &buffer) else {
          return false
        }
        if map.look(UInt32(place)) == .tableInterior { return tree.hasRowids }
        return PageScore.fit(buffer.span, start: 0, tree.shape, geometry: reader.geometry)?.tier == 0
      }
      pointers.append(Int64(tree.root))
      if try fits(Int64(tree.root)) { before.append(Int64(tree.root)) }
      if try fits(Int64(tree.root) + shift) { after.append(Int64(tree.root)) }
    }
  }

  private func fits(_ place: Int64, _ isTable: Bool, above low: Int64, upTo high: Int64) -> Bool {
    guard place > 1, place <= Int64(map.pageCount) else { return false }
    let page = UInt32(place)
    switch map.look(page) {
    case .tableLeaf, .tableInterior: return isTable && map.firstKey(page) > low && map.lastKey(page) <= high
    case .indexLeaf, .indexInterior: return !isTable
    case .missing, .zero, .unknown, .broken, .linked: return false
    }
  }

  /// Returns the first and the last page before which the shift may lie; nil without enough evidence.
  private func place() -> ClosedRange<Int64>? {
    let removed = max(0, -shift)
    let end = Int64(map.pageCount) + 1
    var candidates = Set([2, end] + before.map { $0 + 1 } + after.map { $0 - removed })
    for pointer in pointers { candidates.formUnion([pointer, pointer - removed + 1]) }
    var best = (score: score(end, removed) + Self.leastGain - 1, first: Int64(0), last: Int64(0))
    for candidate in candidates.filter({ $0 >= 2 && $0 <= end }).sorted() {
      let score = score(candidate, removed)
      if score > best.score { best = (score, candidate, candidate) }
      if score == best.score, best.last > 0 { best.last = candidate }
    }
    return best.last > 0 ? best.first...best.last : nil
  }

  /// Returns the number of pointers that are explained by a shift before a page, those to removed pages included.
  private func score(_ page: Int64, _ removed: Int64) -> Int {
    func below(_ limit: Int64, _ numbers: [Int64]) -> Int { numbers.partitioningIndex { $0 >= limit } }
    return below(page, before) + after.count - below(page + removed, after)
      + below(page + removed, pointers) - below(page, pointers)
  }
}
