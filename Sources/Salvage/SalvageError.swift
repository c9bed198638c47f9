internal import PersistentStore
public import Platform

/// A failure of a whole salvage or of a recovery kit; partial losses are in the report instead.
public typealias SalvageError = Failure<SalvageErrorKind>

/// The cause of a failure of a salvage or a recovery kit.
public enum SalvageErrorKind: String, FailureKind {
  /// The files contain no page of a SQLite database.
  case nothingFound = "nothing-to-salvage"

  /// The result's name is taken.
  case outputExists = "output-exists"

  /// The result would replace a part of the store.
  case outputIsStore = "output-is-store"

  /// The result can't be written.
  case output = "salvage-output"

  /// The donor backup is unusable.
  case donor = "backup-unusable"

  /// The model has no valid layout.
  case model = "salvage-model"

  /// The model matches no content of the store.
  case unfitModel = "model-fits-nothing"

  /// The rebuilt store failed its checks.
  case verificationFailed = "salvage-verification-failed"

  /// The caller's progress function cancelled.
  case cancelled = "cancelled"

  /// A file system error, which supplies the code.
  case file = "salvage-file"

  // MARK: Recovery kits

  /// The store is damaged.
  case storeNotSound = "store-not-sound"

  /// The store changed while it was read.
  case storeChanged = "store-changed"

  /// The file is damaged or not a kit.
  case kitUnreadable = "kit-unreadable"

  /// A later version of this library wrote the kit.
  case kitLaterFormat = "kit-later-format"

  /// The kit can't be compressed.
  case kitPacking = "kit-packing"

  /// The default operation.
  public var usualOperation: String {
    switch self {
    case .storeNotSound, .storeChanged, .kitUnreadable, .kitLaterFormat, .kitPacking: "note a recovery kit"
    default: "salvage the store"
    }
  }

  package static let knownDonor = "Use a backup of this very store; if you know that it is one, say so."

  /// The default hint for the user.
  public var usualHint: String {
    switch self {
    case .nothingFound: "Check that it is the right file."
    case .outputExists, .outputIsStore: "Choose another name for the result."
    case .output: "Try another folder for the result; if it happens again, report it."
    case .donor: "Use another backup, or none."
    case .model: "Check the schema file."
    case .unfitModel: "Give the model that the store was written with, or none where the store carries its own."
    case .verificationFailed: "Salvage the rows as they are, without a model's layout, and report it."
    case .cancelled: "Run the same command again at any time."
    case .file: "Check the path and its permissions."
    case .storeNotSound: "Inspect the store with a full check; salvage it where that finds damage."
    case .storeChanged: "Try again when it is at rest."
    case .kitUnreadable: "Use another kit of the store, or none."
    case .kitLaterFormat: "Use the version that wrote it, or an older kit."
    case .kitPacking: "Try again later."
    }
  }

  /// Whether the environment is at fault rather than the store.
  public var isEnvironmental: Bool { self == .storeChanged }

  /// Whether the file system error supplies the code.
  public var standsForCause: Bool { self == .file }
}

extension SalvageError {
  package init(_ error: FileError) { self.init(error.fileError == nil ? .nothingFound : .file, because: error) }

  /// Wraps a model's layout error, or the environmental error that caused it.
  init(_ error: PersistentStoreError) {
    if let cause = DatabaseFailure(error, operation: error.operation, path: error.path).environmentalError {
      self.init(cause)
    } else {
      self.init(.model, because: error)
    }
  }

  static func cancelled() -> SalvageError { SalvageError(.cancelled, detail: "it was cancelled") }
}
