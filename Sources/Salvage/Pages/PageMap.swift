internal import SQLiteFormat

/// The state of each page, in a few bytes per page.
struct PageMap {
  enum Look: UInt8 {
    case missing

    case zero

    /// Neither a b-tree nor an overflow page.
    case unknown

    case tableLeaf
    case tableInterior
    case indexLeaf
    case indexInterior

    /// A b-tree page with an impossible header.
    case broken

    /// Begins with zero or a page number, like overflow and freelist trunk pages.
    case linked
  }

  enum Fate: UInt8 {
    case unclaimed

    case tree

    /// Assigned by evidence.
    case placed

    case damaged

    case overflow

    /// On the freelist.
    case free

    /// A pointer map or the lock-byte page.
    case special

    case dead
  }

  /// The look in the lower half of each byte, the fate in the upper.
  private var states: [UInt8]
  private var owners: [UInt16]
  private var keys: PageKeys

  /// The first record's field count: 0 if unknown, at most 255.
  private var fieldCounts: [UInt8]

  private var cellCounts: [UInt16]

  /// A mixture of some bytes of each page, equal in equal pages.
  private var samples: [UInt32]

  /// Whether two overflow pages link to each other's expected successor: they were swapped.
  var hasCrossedLinks = false

  /// Whether page 1 begins like another page, without the file header.
  var isFirstPageMisplaced = false

  /// The page duplicated at page 1, or 0.
  var twinOfFirst: UInt32 = 0

  /// Overflow pages with several links to them.
  var contested = PageSet()

  static let noOwner = UInt16.max

  init(pageCount: UInt32) {
    let count = Int(pageCount) + 1
    states = [UInt8](repeating: 0, count: count)
    owners = [UInt16](repeating: Self.noOwner, count: count)
    keys = PageKeys(count: count)
    fieldCounts = [UInt8](repeating: 0, count: count)
    cellCounts = [UInt16](repeating: 0, count: count)
    samples = [UInt32](repeating: 0, count: count)
  }

  var pageCount: UInt32 { UInt32(states.count - 1) }

  func look(_ page: UInt32) -> Look {
    Int(page) < states.count ? Look(rawValue: states[Int(page)] & 0xf) ?? .missing : .missing
  }
  func fate(_ page: UInt32) -> Fate {
    Int(page) < states.count ? Fate(rawValue: states[Int(page)] >> 4) ?? .dead : .dead
  }
  func owner(_ page: UInt32) -> Int? {
    guard Int(page) < owners.count, owners[Int(page)] != Self.noOwner else { return nil }
    return Int(owners[Int(page)])
  }
  func firstKey(_ page: UInt32) -> Int64 { keys[Int(page)].first }
  func lastKey(_ page: UInt32) -> Int64 { keys[Int(page)].last }

  /// Sorts pages by first key, stably.
  func sorted(_ pages: [UInt32]) -> [UInt32] {
    var before = Int64.min
    for page in pages {
      let key = firstKey(page)
      // Already sorted pages, the usual case, are not copied.
      guard key >= before else { return pages.sorted { firstKey($0) < firstKey($1) } }
      before = key
    }
    return pages
  }

  mutating func setLook(_ page: UInt32, _ look: Look) {
    states[Int(page)] = states[Int(page)] & 0xf0 | look.rawValue
  }

  mutating func setFieldCount(_ page: UInt32, _ count: Int) { fieldCounts[Int(page)] = UInt8(clamping: count) }

  func fieldCount(_ page: UInt32) -> Int { Int(fieldCounts[Int(page)]) }

  mutating func setCellCount(_ page: UInt32, _ count: Int) { cellCounts[Int(page)] = UInt16(clamping: count) }

  func cellCount(_ page: UInt32) -> Int { Int(cellCounts[Int(page)]) }

  mutating func setSample(_ page: UInt32, _ sample: UInt32) { samples[Int(page)] = sample }

  func sample(_ page: UInt32) -> UInt32 { samples[Int(page)] }

  mutating func setKeys(_ page: UInt32, first low: Int64, last high: Int64) {
    keys.set(Int(page), first: low, last: high)
  }

  mutating func claim(_ page: UInt32, _ fate: Fate, owner: Int? = nil) {
    guard Int(page) < states.count else { return }
    states[Int(page)] = states[Int(page)] & 0xf | fate.rawValue << 4
    owners[Int(page)] = owner.flatMap { UInt16(exactly: $0) } ?? Self.noOwner
  }
}

/// The first and last rowid of each page, in eight bytes per page if neighbours are close.
///
/// Groups of pages share a base. A group with distant keys, such as false pages, takes sixteen more bytes per page.
package struct PageKeys {
  private static let pagesPerGroup = 64

  /// The bits for the distance from first to last key; the others hold the first key's distance from the base.
  private static let spanBits: UInt64 = 28
  private static let spanMask: UInt64 = 1 << spanBits - 1
  private static let largestDistance: UInt64 = 1 << (64 - spanBits) - 1

  /// Both distances; 0 if both keys are 0.
  private var distances: [UInt64]

  private var bases: [Int64]

  /// The start of spread-out groups in `whole`, by group number.
  private var places: [Int: Int] = [:]
  private var whole: [Int64] = []

  package init(count: Int) {
    distances = [UInt64](repeating: 0, count: count)
    bases = [Int64](repeating: 0, count: count / Self.pagesPerGroup + 1)
  }

  package subscript(page: Int) -> (first: Int64, last: Int64) {
    let group = page / Self.pagesPerGroup
    if !places.isEmpty, let place = places[group] {
      let start = place + 2 * (page % Self.pagesPerGroup)
      return (whole[start], whole[start + 1])
    }
    let packed = distances[page]
    guard packed != 0 else { return (0, 0) }
    let first = bases[group] &+ Int64(packed >> Self.spanBits)
    return (first, first &+ Int64(packed & Self.spanMask))
  }

  package mutating func set(_ page: Int, first: Int64, last: Int64) {
    let group = page / Self.pagesPerGroup
    if let place = places[group] {
      let start = place + 2 * (page % Self.pagesPerGroup)
      whole[start] = first
      whole[start + 1] = last
      return
    }
    if first == 0, last == 0 {
      distances[page] = 0
      return
    }
    // Leaves half of the range for smaller keys; wrapping addition undoes an overflow.
    if bases[group] == 0 {
      let base = first &- Int64(Self.largestDistance / 2)
      bases[group] = base == 0 ? 1 : base
    }
    let distance = UInt64(bitPattern: first &- bases[group])
    let span = UInt64(bitPattern: last &- first)
    guard distance > 0, distance <= Self.largestDistance, span <= Self.spanMask else {
      widen(group)
      set(page, first: first, last: last)
      return
    }
    distances[page] = distance << Self.spanBits | span
  }

  private mutating func widen(_ group: Int) {
    let start = group * Self.pagesPerGroup
    let place = whole.count
    for page in start..<(start + Self.pagesPerGroup) {
      let keys = page < distances.count ? self[page] : (first: 0, last: 0)
      whole.append(keys.first)
      whole.append(keys.last)
    }
    places[group] = place
  }
}

/// An auto-vacuum database's pointer maps, which give each page's parent (SQLite file format, "Pointer Map or Ptrmap
/// Pages").
struct PointerMaps {
  private let reader: PageReader

  /// Whether they exist, by page 2 or, if inconclusive, by the header.
  let isThere: Bool

  private static let sample: UInt32 = 200

  init(_ reader: PageReader) throws {
    self.reader = reader
    isThere = try Self.isMap(reader) ?? reader.layout.header.map { $0.hasMagic && $0.isAutoVacuum } ?? false
  }

  /// The entry for a page; nil without a map or if impossible.
  func entry(for page: UInt32) throws -> PointerMapEntry? {
    guard isThere, let map = reader.layout.layout.pointerMapPage(for: page), map != page, map <= reader.pageCount else {
      return nil
    }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(map, into: &buffer),
      let entry = PointerMapEntry(for: page, in: buffer.span, mapPage: map), Self.isPossible(entry, reader)
    else { return nil }
    return entry
  }

  private static func isPossible(_ entry: PointerMapEntry, _ reader: PageReader) -> Bool {
    switch entry.kind {
    case .root, .free: entry.parent == 0
    case .child, .overflowFirst, .overflowNext: entry.parent > 0 && entry.parent <= reader.pageCount
    case nil: false
    }
  }

  /// Whether page 2 has possible entries for the following pages; nil if damaged.
  private static func isMap(_ reader: PageReader) throws -> Bool? {
    guard reader.pageCount >= 3 else { return false }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(2, into: &buffer) else { return nil }
    if let kind = PageKind(rawValue: buffer[0]), PageSurvey.isPossible(buffer.span, kind, 0, reader.usableSize) {
      return false
    }
    let last = min(reader.pageCount, 2 + min(sample, UInt32(reader.layout.layout.pointerMapEntries)))
    for page in 3...last {
      guard let entry = PointerMapEntry(for: page, in: buffer.span, mapPage: 2), isPossible(entry, reader) else {
        return nil
      }
    }
    return true
  }
}
