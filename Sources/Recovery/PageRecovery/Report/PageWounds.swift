/// What was wrong with pages, noted while their rows were read.
struct PageWounds {
  /// What was wrong with one page.
  struct Wound {
    /// Cell pointers that led to nothing.
    var badPointers: Int

    /// Those of them that led to a record, but to none of the table.
    var unfitting: Int

    /// All cell pointers of the page.
    var pointers: Int

    /// Whether a sector of it is lost.
    var isTorn: Bool

    /// Rows whose keys contradict those beside them.
    var outOfOrder: Int
  }

  /// The most pages that are noted.
  static let limit = 1 << 18

  /// The wounds of pages whose header is sound, by page.
  private(set) var pages: [UInt32: Wound] = [:]

  /// Pages whose header cannot be used, and that had no other rows than those that were found.
  private(set) var accountedFor: Set<UInt32> = []

  /// Takes down a page whose header cannot be used.
  mutating func noteUnusable(_ page: UInt32, _ scan: LeafScan) {
    if scan.isMended, scan.torn.isEmpty, accountedFor.count < Self.limit { accountedFor.insert(page) }
  }

  /// Takes down what a scan found; nothing for a sound page.
  @inline(__always)
  mutating func note(_ page: UInt32, _ scan: LeafScan) {
    guard scan.isDamaged || scan.isOutOfOrder else { return }
    add(page, scan)
  }

  private mutating func add(_ page: UInt32, _ scan: LeafScan) {
    guard pages.count < Self.limit else { return }
    pages[page] = Wound(
      badPointers: scan.badPointers, unfitting: scan.unfitting,
      pointers: scan.cells.count - scan.carved + scan.badPointers + scan.tornCells,
      isTorn: !scan.torn.isEmpty, outOfOrder: scan.cells.count { $0.isOutOfOrder })
  }
}
