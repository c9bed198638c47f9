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
