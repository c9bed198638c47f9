internal import Compatibility
internal import GRDB
public import StoreFiles

/// The schema of a plain SQLite store as text: the statements that create its tables, as in a `.sql` file.
///
/// The text is trusted with nothing but a private database in memory: it can attach no other database, load no code,
/// switch no protection off and neither run nor grow without end.
public struct SchemaScript: Sendable, Hashable {
  /// The longest text that is read, in bytes.
  public static let maximumLength = 4 << 20

  /// The most statements that are run.
  static let maximumStatements = 10_000

  /// The most steps of SQLite's virtual machine for the whole script.
  static let maximumSteps = 50_000_000

  /// The statements, as they were given.
  public let text: String

  /// Takes the text of a schema file.
  ///
  /// - Throws: `PersistentStoreError.schemaScriptRefused` where it is too long or holds a zero byte.
  public init(_ text: String) throws(PersistentStoreError) {
    guard text.utf8.count <= Self.maximumLength else {
      throw Self.refused("the schema is longer than \(Self.maximumLength >> 20) MB")
    }
    guard !text.utf8.contains(0) else { throw Self.refused("the schema contains a zero byte") }
    self.text = text
  }

  /// Takes the bytes of a schema file, which must be UTF-8.
  public init(bytes: [UInt8]) throws(PersistentStoreError) {
    guard let text = String(utf8: bytes) else {
      throw Self.refused("the schema is not UTF-8 text")
    }
    try self.init(text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text)
  }

  static func refused(_ detail: String) -> PersistentStoreError {
    PersistentStoreError(.schemaScriptRefused, operation: "read the schema", detail: detail)
  }
}

extension SchemaScript {
  /// Runs the script in a private database, statement by statement.
  ///
  /// Transactions are left out, because the whole database is thrown away on an error.
  func run(in database: Database) throws {
    DatabaseImage.limit(database)
    try database.execute(sql: "PRAGMA max_page_count = 16384")
    let bytes = Array(text.utf8)
    var position = SchemaScanner(bytes: bytes)
    let statements = try database.allStatements(sql: text)
    var number = 0
    var steps = 0
    while true {
      position.skipSeparators()
      guard !position.isAtEnd else { return }
      number += 1
      let place = "statement \(number) (line \(position.line))"
      guard number <= Self.maximumStatements else { throw Self.refused("there are too many statements") }
      // Some pragmas act when they are compiled, so the words are judged before SQLite sees them.
      let verdict = SchemaStatementRule.verdict(on: position.words(4))
      if case .refuse(let reason) = verdict { throw Self.refused("\(place) \(reason)") }
      do {
        guard let statement = try statements.next() else { return }
        guard position.advance(over: Array(statement.sql.utf8)) else {
          throw Self.refused("\(place) could not be found again in the text")
        }
        if case .run = verdict {
          try statement.execute()
          steps += DatabaseImage.steps(of: statement)
        }
      } catch let error as DatabaseError {
        // Of a database in memory only the system's memory, and files for sorting, can lack; that it is full or that a value
        // is too long are limits of our own, and the schema's fault.
        let cause = ResultCodeCause(error.extendedResultCode)
        if cause.isEnvironmental, cause != .noSpace {
          throw PersistentStoreError(error, operation: "read the schema", path: nil)
        }
        let words =
          error.resultCode == .SQLITE_INTERRUPT
          ? "it takes too long" : error.message.map(PersistentStoreError.withoutValues) ?? "no reason given"
        throw PersistentStoreError(
          .schemaScriptRefused, operation: "read the schema", detail: "\(place) fails: \(words)",
          resultCode: error.extendedResultCode.rawValue)
      }
      guard steps <= Self.maximumSteps else { throw Self.refused("\(place): the schema takes too long to run") }
    }
  }
}
