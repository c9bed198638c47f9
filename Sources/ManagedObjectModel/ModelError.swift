internal import PropertyLists
public import StoreFiles
public import SystemPackage

/// A model that cannot be read, written or used.
public struct ModelError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The file system refused; the code is that of the file error.
    case file = "model-file"
    case notAModel = "not-a-model"
    case damaged = "model-damaged"

    /// The model can be read and contradicts itself.
    case invalid = "model-invalid"

    /// A keyed archive written by something else than Apple's tools.
    case foreignArchive = "model-foreign-archive"

    /// The source format of Xcode 3: an archive called `elements`.
    case oldFormat = "model-old-format"

    /// The optimized form that Xcode writes beside a compiled model (`momv2$`, `.omo`).
    case optimizedFormat = "model-optimized-format"
    case tooLarge = "model-too-large"
    case noVersions = "model-no-versions"
    case versionOrder = "model-version-order"
    case currentVersionMissing = "model-current-version-missing"
    case unwritable = "model-unwritable"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one plain sentence without a full stop.
  public var detail: String

  /// What the reader can do next, as a full sentence.
  public var hint: String

  /// The version of a bundle that the error is about, where it is about one.
  public var versionName: String?

  /// The entity that the error is about, where it is about one.
  public var entityName: String?

  /// The property that the error is about, where it is about one.
  public var propertyName: String?

  /// The error of the file system, where that is the cause.
  public var fileError: FileError?

  /// The stable word for the kind of failure; that of the file error where one is the cause.
  public var code: String { fileError?.code ?? kind.rawValue }

  /// Whether the surroundings are at fault and not the model.
  public var isEnvironmental: Bool { fileError?.isEnvironmental ?? false }

  /// An error of a kind, with the usual hint unless another is given.
  public init(
    _ kind: Kind, operation: String = "read the model", path: FilePath? = nil, detail: String, hint: String? = nil,
    entityName: String? = nil, propertyName: String? = nil
  ) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint ?? kind.usualHint
    self.entityName = entityName
    self.propertyName = propertyName
  }

  /// The error of a file that could not be read.
  public init(_ error: FileError) {
    self.init(.file, path: error.path, detail: error.detail, hint: error.hint)
    fileError = error
  }

  /// The error of an archive, a property list or an XML document that could not be read.
  init(_ error: PropertyListError, operation: String = "read the model") {
    let kind: Kind =
      switch error.kind {
      case .notAPropertyList, .notAnArchive: .notAModel
      case .foreignArchive: .foreignArchive
      case .tooLarge, .xmlTooLarge: .tooLarge
      case .damaged, .malformedXML, .forbiddenXML: .damaged
      case .unwritable: .unwritable
      }
    self.init(kind, operation: operation, path: error.path, detail: error.detail)
  }

  /// The same error, told about a file and a version.
  func told(path: FilePath?, versionName: String? = nil) -> ModelError {
    var copy = self
    copy.path = copy.path ?? path
    if let versionName, copy.versionName == nil {
      copy.versionName = versionName
      copy.detail = "version \"\(printable(versionName))\": \(copy.detail)"
    }
    return copy
  }
}

extension ModelError.Kind {
  fileprivate var usualHint: String {
    switch self {
    case .file: "Check the path and its permissions."
    case .notAModel: "Name a .xcdatamodeld, .xcdatamodel, .momd or .mom."
    case .damaged: "Take the model from version control or build it again."
    case .invalid: "Correct the model in Xcode and save it."
    case .foreignArchive: "Compile the model with Xcode's momc, or name the model's source."
    case .oldFormat: "Open the model in a current Xcode and save it, which writes a file called contents."
    case .optimizedFormat: "Name the .momd folder or the .mom file beside it; both hold the same model."
    case .tooLarge: "Check that it is the right file; no real model is that large."
    case .noVersions: "Check that the folder was copied whole."
    case .versionOrder:
      "Name each version once, without its file extension; versions may be left out, but not the current one."
    case .currentVersionMissing:
      "Choose the current version again in Xcode, or copy the missing version into the bundle."
    case .unwritable: "Leave the model cache out."
    }
  }
}
