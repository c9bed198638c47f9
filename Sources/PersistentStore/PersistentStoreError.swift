package import GRDB
public import Platform
package import SystemPackage

/// An error of opening, reading, writing or creating a store.
public typealias PersistentStoreError = Failure<PersistentStoreErrorKind>

/// The kind of store error.
public enum PersistentStoreErrorKind: String, FailureKind {
  /// The model is not expressible in Core Data's layout.
  case unstorableModel = "unstorable-model"

  /// SQLite or the safety rules reject a schema script's statement.
  case schemaScriptRefused = "schema-script-refused"

  case damagedMetadata = "metadata-damaged"

  /// The entity or property is unknown.
  case unknownName = "unknown-name"

  case noModel = "store-without-model"

  case closed = "store-closed"

  /// Another connection holds a lock.
  case locked = "store-locked"

  case noSpace = "no-space"

  case inputOutput = "io-error"

  case cannotOpen = "cannot-open"

  case permissionDenied = "permission-denied"

  /// File or folder is read-only.
  case readOnly = "read-only"

  case outOfMemory = "out-of-memory"

  case damaged = "store-damaged"

  case notADatabase = "not-a-database"

  case database = "sqlite-error"

  // MARK: Store tests

  case newerVersion = "version-is-newer"

  /// A lower module failed in a test; its error's code applies.
  case lowerModule = "store-testing"

  case unknownDamage = "unknown-damage"

  /// The store lacks the target of this kind of damage.
  case nothingToDamage = "nothing-to-damage"

  /// The damaged copy would replace a file.
  case copyTaken = "place-taken"

  // MARK: Browsing

  case unknownCollection = "unknown-entity"

  case unknownColumn = "unknown-property"

  case unknownRecord = "unknown-record"

  /// An invalid filter, sort order, key or page token.
  case badQuery = "bad-query"

  /// SQLite rejected the query, or it isn't allowed; in SQLite's own words.
  case queryRejected = "sql-error"

  case timeLimit = "time-limit"

  /// A value exceeds the display limit.
  case valueTooLarge = "value-too-large"

  case tooManyExports = "busy"

  case unreadable = "store-unreadable"

  /// An environmental error, with its cause's code.
  case unavailable = "store-unavailable"

  /// SQLite's details.
  public struct Details: FailureDetails {
    /// SQLite's extended result code, if any.
    public var resultCode: Int32?

    /// Creates details without a code.
    public init() {}
  }

  /// The default operation.
  public var usualOperation: String {
    switch self {
    case .newerVersion, .lowerModule: "test the store"
    case .unknownDamage, .nothingToDamage, .copyTaken: "damage the store"
    default: isOfBrowsing ? "browse the records" : "use the store"
    }
  }

  package var isOfBrowsing: Bool {
    switch self {
    case .unknownCollection, .unknownColumn, .unknownRecord, .badQuery, .queryRejected, .timeLimit, .valueTooLarge,
      .tooManyExports, .unreadable, .unavailable:
      true
    default: false
    }
  }

  /// Whether locks, permissions, disk or memory are at fault.
  public var isEnvironmental: Bool {
    switch self {
    case .locked, .noSpace, .inputOutput, .cannotOpen, .permissionDenied, .readOnly, .outOfMemory: true
    default: false
    }
  }

  /// Whether the cause provides the code.
  public var standsForCause: Bool { self == .lowerModule || self == .unavailable }

  /// The default hint.
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
    case .newerVersion: "Name an earlier version, or say which one came first."
    case .lowerModule: "See the cause."
    case .unknownDamage: "Choose a kind from the list."
    case .nothingToDamage: "Choose another kind, or another store."
    case .copyTaken: "Choose another name, or remove it first."
    case .unknownCollection: "Choose one that the store's page lists."
    case .unknownColumn: "Choose one of the names that the page lists."
    case .unknownRecord: "It may be lost, or have another key in this store."
    case .badQuery: "Correct the request."
    case .queryRejected: "The page lists the tables and their columns."
    case .timeLimit: "Ask for less: filter by an indexed property, or sort by the key."
    case .valueTooLarge: "Download the file itself, and read it with another program."
    case .tooManyExports: "Wait until one of them is done."
    case .unreadable: "The file may be damaged; salvage it and browse the result."
    case .unavailable: "Try again."
    }
  }
}

extension PersistentStoreError {
  /// Creates an SQLite error with the kind's usual hint.
  init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, resultCode: Int32) {
    self.init(kind, operation: operation, path: path, detail: detail)
    self.resultCode = resultCode
  }
}

extension PersistentStoreError {
  /// Translates SQLite's error, without SQL or bound values, by ``ResultCodeCause``.
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
    self.init(kind, operation: operation, path: path, detail: words, resultCode: error.extendedResultCode.rawValue)
    if kind == .cannotOpen, FileError.Kind.cannotOpenForSQLite() == .tooManyOpenFiles {
      detail += ": too many files are open"
      hint = FileError.Kind.tooManyOpenFiles.usualHint
    }
  }

  /// Runs work on a database, and reports its errors as those of an operation.
  static func reporting<Value>(
    _ operation: String, at path: FilePath? = nil, unforeseen kind: Kind = .database, _ work: () throws -> Value
  ) throws(PersistentStoreError) -> Value {
    do {
      return try work()
    } catch let error as PersistentStoreError {
      throw error
    } catch let error as DatabaseError {
      throw PersistentStoreError(error, operation: operation, path: path)
    } catch {
      throw PersistentStoreError(kind, operation: operation, path: path, detail: "an unforeseen failure")
    }
  }

  /// Returns SQLite's message without quoted statement text, which can hold values.
  ///
  /// SQLite quotes the offending token (`near "…"`, `unrecognized token: "…"`), which may hold quotes itself: all from
  /// the first to the last quote is removed. Names come unquoted.
  static func withoutValues(_ message: String) -> String {
    let message = message.prefix(1000)
    guard let first = message.firstIndex(of: "\""), let last = message.lastIndex(of: "\"") else {
      return printable(String(message.prefix(400)))
    }
    return printable(message[..<first].prefix(400) + "\"…\"" + message[last...].dropFirst().prefix(100))
  }
}
