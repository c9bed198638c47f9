internal import SQLiteFormat
internal import StoreFiles

/// Finds out from what is left of a store what most likely happened to it.
///
/// Pages that are as they should be are not read again; of the others each is read once.
struct CauseSearch {
  let outcome: RowOutcome
  let evidence: Evidence

  /// Whether the log was left out because it made nonsense of a sound file.
  let isLogForeign: Bool

  /// Whether the rollback journal was left out because it is not of the file.
  let isJournalForeign: Bool

  private(set) var causes: [DamageCause] = []

  /// The pages that stand where a tree has no use for what they hold.
  private(set) var misfits: Set<UInt32> = []

  /// Whether a tree leads to pages behind the end of the file.
  private(set) var leadsBehindEnd = false

  /// The most pages of each kind that are looked at.
  private static let limit = 1 << 17

  var crawl: Crawl { outcome.crawl }
  var reader: PageReader { outcome.reader }

  init(_ outcome: RowOutcome, evidence: Evidence, isLogForeign: Bool, isJournalForeign: Bool) {
    self.outcome = outcome
    self.evidence = evidence
    self.isLogForeign = isLogForeign
    self.isJournalForeign = isJournalForeign
    for tree in outcome.crawl.trees where tree.isListed {
      for gap in tree.gaps where misfits.count < Self.limit {
        // A child that cannot be a page's number leaves a gap without one.
        if gap.page == 0 || gap.page > outcome.crawl.map.pageCount {
          leadsBehindEnd = true
        } else {
          misfits.insert(gap.page)
        }
      }
    }
  }

  /// The causes, the surest and largest first.
  mutating func run(hasLosses: Bool) throws(SalvageError) -> [DamageCause] {
    try lookAtPages()
    try lookAtFirstPage()
    try lookAtFile()
    try lookAtLog()
    lookAtJournal()
    try lookAtPointerMaps()
    lookAtFreelist()
    lookAtIndexes()
    if causes.isEmpty, hasLosses, outcome.tallies.contains(where: { $0.lost > 0 }) {
      add(.unknown, .possible, words: "Something is lost, and nothing about the pages tells why.")
    }
    return causes.enumerated().ordered { left, right in
      let (one, other) = (Self.rank(left.element), Self.rank(right.element))
      return one == other ? left.offset < right.offset : one < other
    }.map(\.element)
  }

  /// The place in the order: by how sure a cause is, then those of whole files before those of pages, then by extent.
  private static func rank(_ cause: DamageCause) -> Double {
    let confidence: Double =
      switch cause.confidence {
      case .certain: 0
      case .likely: 1
      case .possible: 2
      }
    if cause.code == .indexesOnly { return 9 }
    return cause.pageCount == 0 ? confidence : confidence + 0.9 / Double(cause.pageCount)
  }

  mutating func add(
    _ code: DamageCause.Code, _ confidence: DamageCause.Confidence, part: StoreFileSet.Part = .main,
    pages: [UInt32] = [], words: String
  ) {
    causes.append(DamageCause(code, confidence, part: part, pages: pages, words: words))
  }

  // MARK: Lists and indexes

  private mutating func lookAtFreelist() {
    guard !crawl.isFreelistSound, reader.layout.header != nil else { return }
    let isAlone = causes.allSatisfy { $0.pageCount == 0 }
    add(
      .freelistDamaged, isAlone ? .likely : .possible,
      words: "The list of free pages is damaged\(isAlone ? "" : ", which other damage may have brought about"). "
        + "SQLite would overwrite pages in use; no record is lost by that alone.")
  }

  private mutating func lookAtIndexes() {
    let tables = crawl.trees.indices.filter { crawl.trees[$0].kind != .index && crawl.trees[$0].isListed }
    let indexes = crawl.trees.filter { $0.kind == .index && $0.isListed && !$0.gaps.isEmpty }
    guard !indexes.isEmpty, !tables.isEmpty,
      tables.allSatisfy({ crawl.trees[$0].isComplete && outcome.tallies[$0].lost == 0 }), outcome.wounds.pages.isEmpty
    else { return }
    add(
      .indexesOnly, .certain,
      words: "Only \(indexes.count == 1 ? "an index is" : "indexes are") damaged "
        + "(\(indexes.prefix(5).map { printable($0.name) }.joined(separator: ", "))"
        + (indexes.count > 5 ? " and \(grouped(indexes.count - 5)) more" : "")
        + "), and no table: every record is there.")
  }

  private mutating func lookAtPointerMaps() throws(SalvageError) {
    guard reader.layout.header?.isAutoVacuum == true, crawl.map.pageCount >= 3 else { return }
    var damaged: [UInt32] = []
    var buffer = reader.makeBuffer()
    for page in stride(
      from: UInt32(2), through: crawl.map.pageCount, by: reader.layout.layout.pointerMapEntries + 1)
    {
      let map = reader.layout.layout.pointerMapPage(for: page) ?? page
      guard map < crawl.map.pageCount, try reader.readPlace(map, into: &buffer) else { continue }
      let last = min(Int(crawl.map.pageCount - map), reader.layout.layout.pointerMapEntries)
      let wrong = (0..<last).count { buffer[5 * $0] == 0 || buffer[5 * $0] > 5 }
      // The page of the lock bytes, and pages that were never used, have no entry.
      if wrong > 2, wrong * 4 > last { damaged.append(map) }
    }
    guard !damaged.isEmpty else { return }
    add(
      .pointerMapsDamaged, .certain, pages: damaged,
      words: "The \(DamageCause.place(damaged)) of the pointer map \(damaged.count == 1 ? "is" : "are") damaged, "
        + "which SQLite needs for vacuuming only: no record is lost by that alone.")
  }
}
