package import StoreFiles

/// A question about the records of a store that cannot be answered.
package typealias RecordBrowsingError = Failure<RecordBrowsingErrorKind>

/// Why a question about the records of a store cannot be answered.
package enum RecordBrowsingErrorKind: String, FailureKind {
  /// The store has no entity or table of that name.
  case unknownCollection = "unknown-entity"

  /// The entity or table has no property or column of that name.
  case unknownColumn = "unknown-property"

  /// There is no record with that key.
  case unknownRecord = "unknown-record"

  /// A filter, a sort order, a key or a page token cannot be understood.
  case badQuery = "bad-query"

  /// SQLite does not take the query that was typed, or it may not do what it would; the words are SQLite's own.
  case sql = "sql-error"

  /// The answer took longer than allowed.
  case timeLimit = "time-limit"

  /// A value is larger than what is shown.
  case tooLarge = "value-too-large"

  /// Too much is being asked at once.
  case busy

  /// SQLite cannot open or read the file.
  case store = "store-unreadable"

  /// The environment is at fault, and not the store; the code is that of its error.
  case unavailable = "store-unavailable"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "browse the records"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .unknownCollection: "Choose one that the store's page lists."
    case .unknownColumn: "Choose one of the names that the page lists."
    case .unknownRecord: "It may be lost, or have another key in this store."
    case .badQuery: "Correct the request."
    case .sql: "The page lists the tables and their columns."
    case .timeLimit: "Ask for less: filter by an indexed property, or sort by the key."
    case .tooLarge: "Download the file itself, and read it with another program."
    case .busy: "Wait until one of them is done."
    case .store: "The file may be damaged; salvage it and browse the result."
    case .unavailable: "Try again."
    }
  }

  /// Whether the code is that of the cause.
  package var standsForCause: Bool { self == .unavailable }
}

extension RecordBrowsingError {
  static func unknownColumn(_ name: String, in collection: RecordCollection) -> RecordBrowsingError {
    RecordBrowsingError(
      .unknownColumn, detail: "\"\(printable(collection.name))\" has no property \"\(printable(name))\"",
      hint: NameSuggestion.hint(for: name, among: collection.columns.map(\.name), "properties"))
  }

  static func badQuery(_ detail: String, hint: String) -> RecordBrowsingError {
    RecordBrowsingError(.badQuery, detail: detail, hint: hint)
  }
}
