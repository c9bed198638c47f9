internal import SQLiteFormat
public import StoreFiles
internal import SystemPackage

/// A recovery kit that could not be made, written or read.
public typealias RecoveryKitError = Failure<RecoveryKitErrorKind>

/// Why a recovery kit could not be made, written or read.
public enum RecoveryKitErrorKind: String, FailureKind {
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

  /// What was being done, where a failure does not say.
  public static let usualOperation = "note a recovery kit"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .storeNotSound: "Inspect the store with a full check; salvage it where that finds damage."
    case .storeChanged: "Try again when it is at rest."
    case .unreadable: "Use another kit of the store, or none."
    case .laterFormat: "Use the version that wrote it, or an older kit."
    case .packing: "Try again later."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is at fault, and not the store.
  public var isEnvironmental: Bool { self == .storeChanged }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension RecoveryKitError {
  /// The error of a file that could not be read or written.
  package init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of a store that could not be read, or is not sound.
  init(_ error: FormatError) { self.init(error.fileError == nil ? .storeNotSound : .file, because: error) }

  static func notSound(_ detail: String, _ path: FilePath? = nil) -> RecoveryKitError {
    RecoveryKitError(.storeNotSound, path: path, detail: detail)
  }

  static func unreadable(_ path: FilePath?, _ detail: String = "it is no recovery kit, or a damaged one")
    -> RecoveryKitError
  {
    RecoveryKitError(.unreadable, operation: "read the recovery kit", path: path, detail: detail)
  }
}
