internal import SQLiteFormat

/// What is known of each page: a few bytes a page, whatever the size of the store.
struct PageMap {
  /// What a page's bytes look like.
  enum Look: UInt8 {
    case missing

    case zero

    /// Its first byte is that of no b-tree page and it does not look like an overflow page.
    case unknown

    case tableLeaf
    case tableInterior
    case indexLeaf
    case indexInterior

    /// The first byte is that of a b-tree page, and its numbers are impossible.
    case broken

    /// The first four bytes are zero or the number of a page, as on overflow and freelist trunk pages.
    case linked
  }

  /// What became of a page.
  enum Fate: UInt8 {
    case unclaimed

    case tree

    /// Belongs to a table or index for other reasons.
    case placed

    /// A place where a tree has a page that is damaged.
    case damaged

    case overflow

    /// On the list of free pages.
    case free

    /// A pointer map, or the page of the lock bytes.
    case special

    /// No longer part of any tree.
    case dead
  }

  /// How a page looks in the lower half, what became of it in the upper.
  private var states: [UInt8]
  private var owners: [UInt16]
  private var keys: PageKeys

  /// The number of fields of the first record of a page; 0 where it cannot be told, 255 for that many and more.
  private var fieldCounts: [UInt8]

  /// The number of cells of a b-tree page, as its header has it.
  private var cellCounts: [UInt16]

  /// Whether two overflow pages lead where the other one should: they have changed places.
  var hasCrossedLinks = false

  /// Whether the first page of the file is one of another place: it begins as a page does that no header stands on.
  var isFirstPageMisplaced = false

  /// The page that the first one of the file is a copy of; 0 for none.
  var twinOfFirst: UInt32 = 0

  /// Pages that more than one cell or page leads to as to the next one of a long value.
  var contested = PageSet()

  /// The owner of pages that no tree owns.
  static let noOwner = UInt16.max

  init(pageCount: UInt32) {
    let count = Int(pageCount) + 1
    states = [UInt8](repeating: 0, count: count)
    owners = [UInt16](repeating: Self.noOwner, count: count)
    keys = PageKeys(count: count)
    fieldCounts = [UInt8](repeating: 0, count: count)
    cellCounts = [UInt16](repeating: 0, count: count)
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

  /// Pages in the order of their first keys, pages of the same one in the order that they have.
  func sorted(_ pages: [UInt32]) -> [UInt32] {
    var before = Int64.min
    for page in pages {
      let key = firstKey(page)
      // Mostly they are in order, and then none is moved and nothing copied.
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

  mutating func setKeys(_ page: UInt32, first low: Int64, last high: Int64) {
    keys.set(Int(page), first: low, last: high)
  }

  mutating func claim(_ page: UInt32, _ fate: Fate, owner: Int? = nil) {
    guard Int(page) < states.count else { return }
    states[Int(page)] = states[Int(page)] & 0xf | fate.rawValue << 4
    owners[Int(page)] = owner.flatMap { UInt16(exactly: $0) } ?? Self.noOwner
  }
}

/// The first and the last rowid of each page: eight bytes a page where those of neighbours are near to each other.
///
/// Pages are taken together in groups, each with a number that its keys are told from. Where the keys of a group lie too
/// far apart, as on pages that only look like pages, sixteen bytes more are taken for each of its pages.
package struct PageKeys {
  private static let pagesPerGroup = 64

  /// The bits for the distance of the last key from the first; the others are for that of the first from the base.
  private static let spanBits: UInt64 = 28
  private static let spanMask: UInt64 = 1 << spanBits - 1
  private static let largestDistance: UInt64 = 1 << (64 - spanBits) - 1

  /// Both distances of each page; 0 for a page whose keys are both 0.
  private var distances: [UInt64]

  /// What the keys of each group are told from; 0 until one is set.
  private var bases: [Int64]

  /// Where the keys of groups that lie far apart begin in `whole`, by the number of the group.
  private var places: [Int: Int] = [:]
  private var whole: [Int64] = []

  /// Keys of a number of pages, all 0.
  package init(count: Int) {
    distances = [UInt64](repeating: 0, count: count)
    bases = [Int64](repeating: 0, count: count / Self.pagesPerGroup + 1)
  }

  /// The keys of a page.
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

  /// Gives a page its keys.
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
    // Half of the numbers are left for smaller keys; what runs over there is told right again when it is added.
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
