internal import SQLiteFormat

/// The reason why a value of a recovered record may be wrong.
public enum DoubtReason: String, Sendable, Hashable, Codable, CaseIterable {
  /// It was found by content without its tree, and may be obsolete.
  case foundByContent = "found-by-content"

  /// The order of some columns is unknown.
  case columnOrder = "column-order"

  /// It is from a WAL frame that SQLite ignores.
  case logFrame = "log-frame"

  /// It is from a rollback journal without a header.
  case journalPage = "journal-page"

  /// It is from a WAL or rollback journal that contradicts the database file.
  case contradictedLog = "contradicted-log"

  /// An unfinished transaction wrote to its table, without a usable journal.
  case unfinishedTransaction = "unfinished-transaction"

  /// An index, the highest assigned key, or another page contradicts it or its page.
  case contradicted

  /// Bytes after it were overwritten, perhaps with its end.
  case besideDamage = "beside-damage"

  /// Its page is in another one's place, in an unconfirmed version.
  case misplacedPage = "misplaced-page"

  /// Its text is invalid in the store's encoding.
  case invalidText = "invalid-text"

  /// Its value's kind is unique in the column.
  case unusualValue = "unusual-value"

  /// Part of a long value is lost or doubtful.
  case longValue = "long-value"

  /// It was only in free space, which also has obsolete versions.
  case freeSpace = "free-space"

  /// Its bytes differ from the recovery kit.
  case otherThanKit = "other-than-kit"

  /// It is from a backup, and may have changed since.
  case fromBackup = "from-backup"

  /// The reason is missing, or one of a later version.
  case notNoted = "not-noted"

  /// The words after "doubtful because".
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

  /// Returns the JSON form of counts.
  public static func codes(_ counts: [DoubtReason: Int64]) -> [String: Int64] {
    Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
  }

  /// Reads counts from JSON; the remaining records count as `notNoted`.
  ///
  /// - Parameter total: the number of doubtful records.
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

extension DoubtReason {
  /// Returns the reason in words for a table.
  func words(ofTable tree: Tree) -> String {
    switch self {
    case .foundByContent: "what led to it is destroyed; it was found by its content"
    case .columnOrder: tree.doubt?.words ?? "the order of the table's columns is lost"
    case .logFrame: "from a frame of the write-ahead log that SQLite would not have read"
    case .journalPage: "from a rollback journal whose header is destroyed"
    case .contradictedLog: "from a log or journal that may be of another time or another store"
    case .unfinishedTransaction:
      "a transaction that wrote to the table did not end, and its journal is gone; the row may have values of it"
    case .contradicted:
      "an index, the highest key that was given or another page of the table contradicts it or others of its page"
    case .besideDamage: "the bytes behind it on its page were written over, and perhaps its own end"
    case .misplacedPage: "its page stands in the place of another one, and may be of another time or store"
    case .invalidText: "its text is not valid in the store's encoding"
    case .unusualValue: "a value of it is of another kind than its column"
    case .longValue: "a part of a long value of it is lost or doubtful, and was left out"
    case .freeSpace: "only the free space of a page still has it"
    case .otherThanKit: "its bytes are not as the recovery kit noted them"
    case .fromBackup: "taken from a backup"
    case .notNoted: "the reason was not noted"
    }
  }
}

/// Finds live rows that may have a wrong value.
///
/// Rows of an unreachable page are certain, unless it may be free or is attributed by likeness only; the page has its
/// own note.
extension Crawl {
  /// Returns the reason for doubt in all rows of a page.
  func doubtReason(ofPage page: UInt32, tree index: Int) -> DoubtReason? {
    if let doubt = trees[index].doubt, doubt.groups.isEmpty { return .columnOrder }
    if unfinishedTrees.contains(index) { return .unfinishedTransaction }
    if reader.isDoubtful(page) {
      if reader.isOverlayContradicted { return .contradictedLog }
      return reader.overlay?.source == .journal ? .journalPage : .logFrame
    }
    if reader.isOfTwoTimes, reader.overlay?.images[page] == nil { return .unfinishedTransaction }
    if reader.mayBeAnother(trees[index].root) { return .misplacedPage }
    if map.fate(page) == .damaged || mayBeFree && isByContent(page) || likened.contains(page) { return .foundByContent }
    return contradictions.pages[page]
  }
}

/// The uncertainty about a table's column order.
struct ColumnDoubt {
  var words: String

  /// The groups of interchangeable record fields; empty means all.
  var groups: [[Int]] = []
}

extension ColumnDoubt {
  /// Whether a row has different values in interchangeable columns.
  func concerns(_ cell: LeafCell, _ bytes: Span<UInt8>, encoding: TextEncoding) -> Bool {
    let payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    guard let record = Record(payload: payload[...], encoding: encoding), record.isComplete else {
      // Of an incomplete long value only the header counts, and NULLs are equal.
      guard let record = Record(payload: payload[...], encoding: encoding) else { return true }
      let types = record.serialTypes.map(\.rawValue)
      return groups.contains { group in group.contains { types.indices.contains($0) && types[$0] != 0 } }
    }
    let values = record.values
    return groups.contains { group in
      let own = group.map { values.indices.contains($0) ? values[$0] : .null }
      return own.dropFirst().contains { $0 != own[0] }
    }
  }
}
