public import Platform

/// A likely cause of a store's damage, derived from its bytes.
public struct DamageCause: Sendable, Hashable, Codable {
  /// The kinds of causes.
  public enum Code: String, Sendable, Hashable, Codable, CaseIterable {
    case zeroedPages = "zeroed-pages"

    /// Whole pages are random bytes.
    case randomPages = "random-pages"

    /// Pages hold text, an archive or the beginning of another file.
    case overwritten

    /// Single sectors of pages are zeros.
    case tornSectors = "torn-sectors"

    /// The end of the file is missing.
    case truncated

    /// Pages are copies of other pages.
    case pageCopies = "page-copies"

    /// Pages are in each other's places.
    case misplacedPages = "misplaced-pages"

    /// Single bits or bytes are wrong.
    case bitFlips = "bit-flips"

    /// Pages lack their cell pointer array.
    case lostCellPointers = "lost-cell-pointers"

    /// Pages are damaged otherwise.
    case damagedPages = "damaged-pages"

    /// The header is destroyed, the rest of the first page intact.
    case headerDestroyed = "header-destroyed"

    /// The header states a wrong page size, encoding or page count.
    case headerContradicted = "header-contradicted"

    /// Another page of the store replaced the first one.
    case staleFirstPage = "stale-first-page"

    /// Bytes were inserted or are missing.
    case shiftedPages = "shifted-pages"

    /// Other bytes precede the database.
    case embedded

    /// The WAL is another database's.
    case foreignLog = "foreign-log"

    /// The rollback journal is foreign or outdated.
    case foreignJournal = "foreign-journal"

    /// The WAL is older than the database.
    case staleLog = "stale-log"

    /// A damaged WAL frame precedes complete transactions.
    case logFrameDamaged = "log-frame-damaged"

    /// The WAL header is destroyed.
    case logHeaderDestroyed = "log-header-destroyed"

    /// The WAL ends within a frame.
    case logCutOff = "log-cut-off"

    /// An interrupted transaction was rolled back from its journal.
    case interruptedTransaction = "interrupted-transaction"

    /// The journal header of an interrupted transaction is destroyed.
    case journalHeaderDestroyed = "journal-header-destroyed"

    /// The freelist is damaged.
    case freelistDamaged = "freelist-damaged"

    /// The pointer map is damaged.
    case pointerMapsDamaged = "pointer-maps-damaged"

    /// Intact pages contradict each other.
    case contradictingPages = "contradicting-pages"

    /// Only indexes are damaged.
    case indexesOnly = "indexes-only"

    /// The cause of losses or misfit rows is unknown.
    case unknown
  }

  /// The confidence in a cause.
  public enum Confidence: String, Sendable, Hashable, Codable, CaseIterable {
    /// Proved by the bytes.
    case certain

    /// Hardly anything else leaves such bytes.
    case likely

    case possible
  }

  /// A run of pages.
  public struct Pages: Sendable, Hashable, Codable {
    /// The first page.
    public var first: UInt32

    /// The last page.
    public var last: UInt32
  }

  /// The kind of cause.
  public var code: Code

  /// The cause in plain sentences.
  public var words: String

  /// The confidence.
  public var confidence: Confidence

  /// The affected file.
  public var part: StoreFileSet.Part

  /// The affected pages, at most a thousand runs.
  public var pages: [Pages]

  /// The number of affected pages.
  public var pageCount: Int

  static let maximumRuns = 1000

  init(
    _ code: Code, _ confidence: Confidence, part: StoreFileSet.Part = .main, pages numbers: [UInt32] = [], words: String
  ) {
    self.code = code
    self.confidence = confidence
    self.part = part
    self.words = words
    pageCount = numbers.count
    pages = Self.runs(numbers, limit: Self.maximumRuns)
  }

  /// Returns the first runs of ascending numbers.
  private static func runs(_ numbers: [UInt32], limit: Int) -> [Pages] {
    var runs: [Pages] = []
    for number in numbers {
      if let last = runs.last, number == last.last + 1 {
        runs[runs.count - 1].last = number
      } else if runs.count < limit {
        runs.append(Pages(first: number, last: number))
      } else {
        break
      }
    }
    return runs
  }
}

extension DamageCause {
  /// Returns `page 7`, or `pages 3–9, 12 and 40 more`.
  static func place(_ numbers: [UInt32]) -> String {
    guard numbers.count != 1 else { return "page \(numbers[0])" }
    let shown = runs(numbers, limit: 4)
    let count = shown.reduce(0) { $0 + Int($1.last - $1.first) + 1 }
    let text = shown.map { $0.first == $0.last ? "\($0.first)" : "\($0.first)–\($0.last)" }.joined(separator: ", ")
    return "pages \(text)" + (count < numbers.count ? " and \(grouped(numbers.count - count)) more" : "")
  }

  static func counted(_ numbers: [UInt32], _ one: String, _ several: String) -> String {
    numbers.count == 1
      ? "One page (\(numbers[0])) \(one)" : "\(grouped(numbers.count)) pages (\(list(numbers))) \(several)"
  }

  private static func list(_ numbers: [UInt32]) -> String { String(place(numbers).dropFirst("pages ".count)) }
}
