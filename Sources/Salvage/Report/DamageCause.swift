public import Platform

/// What most likely happened to a store, as its bytes tell.
public struct DamageCause: Sendable, Hashable, Codable {
  /// The kinds of causes; the words that programs go by.
  public enum Code: String, Sendable, Hashable, Codable, CaseIterable {
    case zeroedPages = "zeroed-pages"

    /// Whole pages are bytes without any pattern.
    case randomPages = "random-pages"

    /// Pages hold something that is no part of a database: text, an archive, another file's beginning.
    case overwritten

    /// Single sectors of pages are zeros.
    case tornSectors = "torn-sectors"

    /// The end of the file is missing.
    case truncated

    /// Pages are copies of other pages.
    case pageCopies = "page-copies"

    /// Pages stand in each other's places.
    case misplacedPages = "misplaced-pages"

    /// Single bits or bytes of pages are wrong.
    case bitFlips = "bit-flips"

    /// Pages lack the array that says where their cells are.
    case lostCellPointers = "lost-cell-pointers"

    /// Pages are damaged in a way that is none of the others.
    case damagedPages = "damaged-pages"

    /// The header of the file is destroyed, and what follows it on the first page is not.
    case headerDestroyed = "header-destroyed"

    /// The header says what is not so: another page size, encoding or number of pages.
    case headerContradicted = "header-contradicted"

    /// The first page was replaced by another page of the store.
    case staleFirstPage = "stale-first-page"

    /// Bytes were put into the file or are missing from it, so that pages are not at their places.
    case shiftedPages = "shifted-pages"

    /// Other bytes stand before the database.
    case embedded

    /// The write-ahead log is another database's.
    case foreignLog = "foreign-log"

    /// The rollback journal is another database's, or of an earlier transaction.
    case foreignJournal = "foreign-journal"

    /// The write-ahead log is older than the database.
    case staleLog = "stale-log"

    /// A frame in the write-ahead log is damaged, and complete transactions lie behind it.
    case logFrameDamaged = "log-frame-damaged"

    /// The header of the write-ahead log is destroyed.
    case logHeaderDestroyed = "log-header-destroyed"

    /// The write-ahead log ends within a frame.
    case logCutOff = "log-cut-off"

    /// A transaction was cut off, and its journal undid it.
    case interruptedTransaction = "interrupted-transaction"

    /// A transaction was cut off, and the header of its journal is destroyed.
    case journalHeaderDestroyed = "journal-header-destroyed"

    /// The list of free pages is damaged.
    case freelistDamaged = "freelist-damaged"

    /// The pages that say which page leads to which are damaged.
    case pointerMapsDamaged = "pointer-maps-damaged"

    /// Pages contradict each other, and each is whole.
    case contradictingPages = "contradicting-pages"

    /// Only indexes are damaged, and no table.
    case indexesOnly = "indexes-only"

    /// Something is lost, or rows do not fit their table, and nothing tells why.
    case unknown
  }

  /// How sure it is.
  public enum Confidence: String, Sendable, Hashable, Codable, CaseIterable {
    /// The bytes leave no doubt.
    case certain

    /// Hardly anything else leaves such bytes.
    case likely

    case possible
  }

  /// A run of pages.
  public struct Pages: Sendable, Hashable, Codable {
    /// The first page of the run.
    public var first: UInt32

    /// The last page of the run.
    public var last: UInt32
  }

  /// The kind of cause.
  public var code: Code

  /// The cause in one or two plain sentences.
  public var words: String

  /// How sure it is.
  public var confidence: Confidence

  /// The file that it concerns.
  public var part: StoreFileSet.Part

  /// The pages concerned, run by run; of more than a thousand runs the first.
  public var pages: [Pages]

  /// How many pages are concerned.
  public var pageCount: Int

  /// The most runs of pages that are listed.
  static let maximumRuns = 1000

  /// A cause, and the pages that it concerns, in ascending order.
  init(
    _ code: Code, _ confidence: Confidence, part: StoreFileSet.Part = .main, pages numbers: [UInt32] = [],
    words: String
  ) {
    self.code = code
    self.confidence = confidence
    self.part = part
    self.words = words
    pageCount = numbers.count
    pages = []
    for number in numbers {
      if let last = pages.last, number == last.last + 1 {
        pages[pages.count - 1].last = number
      } else if pages.count < Self.maximumRuns {
        pages.append(Pages(first: number, last: number))
      } else {
        break
      }
    }
  }
}

extension DamageCause {
  /// The pages in words: `page 7`, `pages 3–9, 12 and 40 more`.
  static func place(_ numbers: [UInt32]) -> String {
    guard numbers.count != 1 else { return "page \(numbers[0])" }
    var runs: [(first: UInt32, last: UInt32)] = []
    for number in numbers {
      if let last = runs.last, number == last.last + 1 {
        runs[runs.count - 1].last = number
      } else {
        runs.append((number, number))
      }
    }
    let shown = runs.prefix(4)
    let count = shown.reduce(0) { $0 + Int($1.last - $1.first) + 1 }
    let text = shown.map { $0.first == $0.last ? "\($0.first)" : "\($0.first)–\($0.last)" }.joined(separator: ", ")
    return "pages \(text)" + (count < numbers.count ? " and \(grouped(numbers.count - count)) more" : "")
  }

  /// A number of pages, or of one, with a verb of each: `3 pages hold`.
  static func counted(_ numbers: [UInt32], _ one: String, _ several: String) -> String {
    numbers.count == 1
      ? "One page (\(numbers[0])) \(one)" : "\(grouped(numbers.count)) pages (\(list(numbers))) \(several)"
  }

  private static func list(_ numbers: [UInt32]) -> String { String(place(numbers).dropFirst("pages ".count)) }
}
