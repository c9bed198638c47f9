internal import PersistentStore
public import StoreFiles
public import SystemPackage

/// A question about the records of a store that cannot be answered.
public struct RecordBrowsingError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The store has no entity or table of that name.
    case unknownCollection = "unknown-entity"

    /// The entity or table has no property or column of that name.
    case unknownColumn = "unknown-property"

    /// There is no record with that key.
    case unknownRecord = "unknown-record"

    /// A filter, a sort order, a key or a page token cannot be understood.
    case badQuery = "bad-query"

    /// The answer took longer than allowed.
    case timeLimit = "time-limit"

    /// A value is larger than what is shown.
    case tooLarge = "value-too-large"

    /// Too much is being asked at once.
    case busy

    /// SQLite cannot open or read the file.
    case store = "store-unreadable"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The store's main file.
  public var path: FilePath?

  /// What went wrong, without values of records.
  public var detail: String

  /// What the reader can do next.
  public var hint: String

  /// Whether locks, permissions, disk or memory are at fault, and not the store.
  public var isEnvironmental = false

  /// The stable word for the kind of failure.
  public var code: String { kind.rawValue }

  init(_ kind: Kind, operation: String = "browse the records", path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  static func unknownColumn(_ name: String, in collection: String) -> RecordBrowsingError {
    RecordBrowsingError(
      .unknownColumn, detail: "\"\(printable(collection))\" has no property \"\(printable(name))\"",
      hint: "Take one of the names that the page lists.")
  }

  static func badQuery(_ detail: String, hint: String) -> RecordBrowsingError {
    RecordBrowsingError(.badQuery, detail: detail, hint: hint)
  }
}
