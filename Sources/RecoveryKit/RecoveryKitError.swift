internal import SQLiteFormat
public import StoreFiles
public import SystemPackage

/// A recovery kit that could not be made, written or read.
public struct RecoveryKitError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The store is not sound, so that nothing is to be noted of it.
    case storeNotSound = "store-not-sound"

    /// The store changed while it was read.
    case storeChanged = "store-changed"

    /// The file is no kit, or a damaged one.
    case unreadable = "kit-unreadable"

    /// A later version of this library wrote the kit.
    case laterFormat = "kit-later-format"

    /// The kit cannot be packed.
    case packing = "kit-packing"

    /// The file system refused; the code is that of the file error.
    case file = "kit-file"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file it was being done to.
  public var path: FilePath?

  /// What went wrong, without values of records.
  public var detail: String

  /// What the reader can do next.
  public var hint: String

  /// The error of the file system, where that is the cause.
  public var fileError: FileError?

  /// The stable word for the kind of failure; that of the file error where one is the cause.
  public var code: String { fileError?.code ?? kind.rawValue }

  /// Whether the surroundings are at fault, and not the store.
  public var isEnvironmental: Bool { kind == .storeChanged || fileError?.isEnvironmental ?? false }

  init(_ kind: Kind, operation: String, path: FilePath? = nil, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  /// The error of the file system.
  package init(_ error: FileError) {
    kind = .file
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    fileError = error
  }

  init(_ error: FormatError, path: FilePath?) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.storeNotSound, operation: error.operation, path: path, detail: error.detail, hint: error.hint)
    }
  }

  static func notSound(_ detail: String, _ path: FilePath? = nil) -> RecoveryKitError {
    RecoveryKitError(
      .storeNotSound, operation: "note a recovery kit", path: path, detail: detail,
      hint: "Inspect the store with a full check; salvage it where that finds damage.")
  }

  static func unreadable(_ path: FilePath?, _ detail: String = "it is no recovery kit, or a damaged one")
    -> RecoveryKitError
  {
    RecoveryKitError(
      .unreadable, operation: "read the recovery kit", path: path, detail: detail,
      hint: "Use another kit of the store, or none.")
  }
}
