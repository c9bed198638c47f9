/// Why a value of a recovered record may be wrong.
public enum DoubtReason: String, Sendable, Hashable, Codable, CaseIterable {
  /// What led to it is destroyed, and it was found by its content: a former version of it may have been.
  case foundByContent = "found-by-content"

  /// The definition of its table is lost, and nothing tells which of some columns a value belongs to.
  case columnOrder = "column-order"

  /// It is from a frame of the write-ahead log that SQLite would not have read.
  case logFrame = "log-frame"

  /// It is from a rollback journal whose header is destroyed.
  case journalPage = "journal-page"

  /// It is from a write-ahead log or rollback journal that the database file contradicts: of another time or store.
  case contradictedLog = "contradicted-log"

  /// A transaction that did not end wrote to its table, and the journal that would undo it is gone or damaged.
  case unfinishedTransaction = "unfinished-transaction"

  /// An index, the highest key that was given, or another page of its table contradicts it or others of its page.
  case contradicted

  /// The bytes behind it on its page were written over, perhaps with its own end.
  case besideDamage = "beside-damage"

  /// Its page stands in the place of another one, and nothing confirms that it belongs to the store as it was last.
  case misplacedPage = "misplaced-page"

  /// Its text is not valid in the store's encoding.
  case invalidText = "invalid-text"

  /// A value of it is of another kind than its column, as no other row's there.
  case unusualValue = "unusual-value"

  /// A part of a long value of it is lost or doubtful; its other values are as they were.
  case longValue = "long-value"

  /// Only free space still had it, where former versions are too.
  case freeSpace = "free-space"

  /// Its bytes are not those that a recovery kit noted.
  case otherThanKit = "other-than-kit"

  /// It was taken from a backup, and may have been changed or deleted since.
  case fromBackup = "from-backup"

  /// The salvage that made the report did not note why, or a later version did that knows other reasons.
  case notNoted = "not-noted"

  /// The reason in words, after "doubtful because".
  public var words: String {
    switch self {
    case .foundByContent: "what led to them is destroyed and they were found by their content"
    case .columnOrder: "the definition of their table is lost and nothing tells some of its columns apart"
    case .logFrame: "they are from a part of the write-ahead log that SQLite would not have read"
    case .journalPage: "they are from a rollback journal whose header is destroyed"
    case .contradictedLog: "they are from a log or journal that may be of another time or another store"
    case .unfinishedTransaction:
      "a transaction that did not end may have changed them and its journal is gone or damaged"
    case .contradicted: "an index, a counter or another page says otherwise"
    case .besideDamage: "the bytes behind them were written over and perhaps their own end"
    case .misplacedPage: "their page stands in the place of another one and may be of another time or store"
    case .invalidText: "their text is not valid in the store's encoding"
    case .unusualValue: "a value of theirs is of another kind than its column"
    case .longValue: "part of a long value is lost or doubtful"
    case .freeSpace: "only free space still had them, perhaps as they were before"
    case .otherThanKit: "their bytes are not those that a recovery kit noted"
    case .fromBackup: "they are from a backup and may have been changed or deleted since"
    case .notNoted: "their salvage did not note why"
    }
  }

  /// Counts by reason, as JSON has them.
  public static func codes(_ counts: [DoubtReason: Int64]) -> [String: Int64] {
    Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
  }

  /// Counts by reason, from JSON; what no known reason accounts for was not noted.
  ///
  /// - Parameter total: how many records are doubtful in all.
  public static func counts(_ codes: [String: Int64]?, of total: Int64) -> [DoubtReason: Int64] {
    var counts: [DoubtReason: Int64] = [:]
    var rest = max(0, total)
    for reason in allCases where reason != .notNoted {
      guard let count = codes?[reason.rawValue], count > 0, count <= rest else { continue }
      counts[reason] = count
      rest -= count
    }
    if rest > 0 { counts[.notNoted] = rest }
    return counts
  }
}
