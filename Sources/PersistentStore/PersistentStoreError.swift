package import GRDB
public import Platform
package import SystemPackage

/// A store that cannot be opened, read, written or created.
public typealias PersistentStoreError = Failure<PersistentStoreErrorKind>

/// Why a store cannot be opened, read, written or created.
public enum PersistentStoreErrorKind: String, FailureKind {
  /// The model holds something that Core Data's layout cannot express.
  case unstorableModel = "unstorable-model"

  /// A schema script holds a statement that SQLite or the safety rules refuse.
  case schemaScriptRefused = "schema-script-refused"

  /// The metadata of the store cannot be read.
  case damagedMetadata = "metadata-damaged"

  /// The model has no such entity, or the entity no such property.
  case unknownName = "unknown-name"

  /// The store was opened without a model, and the operation needs one.
  case noModel = "store-without-model"

  /// The store has been closed already.
  case closed = "store-closed"

  /// Another connection holds a lock.
  case locked = "store-locked"

  case noSpace = "no-space"

  /// The system reported an input/output error.
  case inputOutput = "io-error"

  /// SQLite could not open the file.
  case cannotOpen = "cannot-open"

  /// The system or SQLite forbids it.
  case permissionDenied = "permission-denied"

  /// The file or its folder is read-only.
  case readOnly = "read-only"

  case outOfMemory = "out-of-memory"

  /// SQLite found the file damaged.
  case damaged = "store-damaged"

  /// The file is not an SQLite database.
  case notADatabase = "not-a-database"

  case database = "sqlite-error"

  /// What SQLite reported.
  public struct Details: FailureDetails {
    /// SQLite's extended result code, where SQLite reported the error.
    public var resultCode: Int32?

    /// SQLite did not report the error.
    public init() {}
  }

  /// What was being done, where a failure does not say.
  public static let usualOperation = "use the store"

  /// Whether locks, permissions, disk or memory are at fault, and not the store.
  public var isEnvironmental: Bool {
    switch self {
    case .locked, .noSpace, .inputOutput, .cannotOpen, .permissionDenied, .readOnly, .outOfMemory: true
    case .unstorableModel, .schemaScriptRefused, .damagedMetadata, .unknownName, .noModel, .closed, .damaged,
      .notADatabase, .database:
      false
    }
  }

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .unstorableModel: "Correct the model; Core Data would refuse it too."
    case .schemaScriptRefused: "Correct the schema file; it may create tables, indexes, views and triggers."
    case .damagedMetadata: "Salvage the store; its records may be whole."
    case .unknownName: "Check the name against the model."
    case .noModel: "Give the model, or open a store that carries its own."
    case .closed: "Open the store again."
    case .locked: "Quit the app that uses the store, then try again."
    case .noSpace: "Free some space, then try again; nothing was lost."
    case .inputOutput: "Check the disk; copy what can be read to another one before you try again."
    case .cannotOpen: "Check that the file is there and that its folder can be read."
    case .permissionDenied: "Give yourself permission to read and write the store and its folder."
    case .readOnly: "Make the file and its folder writable, or work on a copy elsewhere."
    case .outOfMemory: "Free some memory, then try again."
    case .damaged: "Quarantine the store and salvage what is in it."
    case .notADatabase: "Check that it is the right file; quarantine it if it is."
    case .database: "See what SQLite reported, and inspect the store."
    }
  }
}

extension PersistentStoreError {
  /// An error that SQLite reported; the hint is the usual one of the kind.
  init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, resultCode: Int32) {
    self.init(kind, operation: operation, path: path, detail: detail)
    self.resultCode = resultCode
  }
}

extension PersistentStoreError {
  /// The error that SQLite's result code stands for; neither SQL nor bound values get into it.
  ///
  /// ``ResultCodeCause`` decides whether the environment is at fault or the store.
  package init(_ error: DatabaseError, operation: String, path: FilePath?) {
    let kind: Kind =
      switch ResultCodeCause(error.extendedResultCode) {
      case .locked: .locked
      case .noSpace: .noSpace
      case .inputOutput: .inputOutput
      case .cannotOpen, .unsupported: .cannotOpen
      case .permissionDenied: .permissionDenied
      case .readOnly, .moved: .readOnly
      case .outOfMemory: .outOfMemory
      case .content where error.resultCode == .SQLITE_CORRUPT: .damaged
      case .content where error.resultCode == .SQLITE_NOTADB: .notADatabase
      case .content, .interrupted: .database
      }
    let words = error.message.map(Self.withoutValues) ?? "SQLite gave no reason"
    self.init(
      kind, operation: operation, path: path, detail: words, resultCode: error.extendedResultCode.rawValue)
    if kind == .cannotOpen, FileError.Kind.cannotOpenForSQLite() == .tooManyOpenFiles {
      detail += ": too many files are open"
      hint = FileError.Kind.tooManyOpenFiles.usualHint
    }
  }

  /// The error as this module reports it: SQLite's are translated, its own and foreign ones stay what they are.
  static func translated(_ error: any Error, operation: String, path: FilePath?) -> any Error {
    if let error = error as? DatabaseError {
      return PersistentStoreError(error, operation: operation, path: path)
    }
    return error
  }

  /// SQLite's message without what it quotes of the statement, which can hold values.
  ///
  /// SQLite quotes the token it stumbled upon (`near "…"`, `unrecognized token: "…"`), and the token may hold quotes
  /// itself: everything from the first to the last one goes. Names come without quotes.
  static func withoutValues(_ message: String) -> String {
    let message = message.prefix(1000)
    guard let first = message.firstIndex(of: "\""), let last = message.lastIndex(of: "\"") else {
      return printable(String(message.prefix(400)))
    }
    return printable(message[..<first].prefix(400) + "\"…\"" + message[last...].dropFirst().prefix(100))
  }
}
