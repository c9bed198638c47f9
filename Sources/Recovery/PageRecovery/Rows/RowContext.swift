internal import SQLiteFormat

/// What all phases of recovering rows work on: the pages, whose they are, and the tables that the rows go into.
///
/// The phases change two things in it: which pages rows claim for their long values, and what is written. Nothing in it
/// tells a phase how to work.
final class RowContext {
  /// The pages and the trees; rows claim overflow pages in its map.
  var crawl: Crawl

  /// The pages.
  let reader: PageReader

  /// The overflow pages of rows.
  let chains: OverflowChains

  /// What is written.
  let tables: RowTables

  /// Whether no place of a tree lacks its page, so that the trees decide which rows are a table's.
  let isSound: Bool

  /// Well-formed records on the pages of tables that cannot be rows of those.
  private(set) var misfits: [Misfit] = []

  /// A record on the page of a table that cannot be a row of it.
  struct Misfit {
    /// The page.
    var page: UInt32

    /// Its cell.
    var cell: LeafCell

    /// The fields of its record.
    var fields: Int
  }

  /// How many such records are kept.
  private static let misfitLimit = 1 << 16

  init(_ crawl: Crawl, _ tables: RowTables) {
    isSound = crawl.damage == 0
    reader = crawl.reader
    chains = OverflowChains(crawl.reader)
    chains.overwritten = crawl.trunks
    chains.endOfDatabase = crawl.endOfDatabase
    chains.checksSwaps = !crawl.reader.moved.isEmpty || crawl.map.hasCrossedLinks
    self.tables = tables
    self.crawl = crawl
  }

  /// Keeps records of a page that cannot be rows of its table; returns how many there was room for.
  func keep(_ found: [LeafScan.Misfit], of page: UInt32) -> Int {
    let kept = found.prefix(Self.misfitLimit - misfits.count)
    misfits += kept.map { Misfit(page: page, cell: $0.cell, fields: $0.fields) }
    return kept.count
  }

  /// Where the header of a page of rows begins: behind that of the database on page 1, unless page 1 is a copy of another.
  func start(of page: UInt32, _ bytes: Span<UInt8>) -> Int {
    page == 1 && bytes[0] != PageKind.tableLeaf.rawValue ? DatabaseHeader.length : 0
  }

  /// The kind that a page of rows or entries has by the survey of pages.
  func kind(of page: UInt32, hasRowids: Bool) -> PageKind {
    hasRowids ? .tableLeaf : crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
  }

  /// The pages that look like overflow and belong to no one.
  func abandonedPages() -> [UInt32] {
    guard crawl.map.pageCount >= 2 else { return [] }
    var pages: [UInt32] = []
    for page in 2...crawl.map.pageCount where crawl.map.look(page) == .linked {
      switch crawl.map.fate(page) {
      case .unclaimed, .damaged: pages.append(page)
      case .tree, .placed, .overflow, .free, .special, .dead: continue
      }
      if pages.count >= PendingRows.limit { break }
    }
    return pages
  }

  /// The part of a row that is on its page.
  func localPart(of cell: LeafCell, _ bytes: Span<UInt8>) -> [UInt8] {
    Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
  }

  /// Puts the rest of a row behind the part that is on its page.
  func complete(
    _ payload: inout [UInt8], of cell: LeafCell, claim: OverflowChains.Claim = .none
  ) throws(SalvageError) -> OverflowChains.Outcome {
    try chains.follow(from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, claim: claim)
  }
}
