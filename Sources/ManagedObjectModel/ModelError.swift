public import Platform
internal import SystemPackage

/// A failure to read, write or use a model.
public typealias ModelError = Failure<ModelErrorKind>

/// The kind of model failure.
public enum ModelErrorKind: String, FailureKind {
  /// The error code is the file error's.
  case file = "model-file"
  case notAModel = "not-a-model"
  case damaged = "model-damaged"

  case invalid = "model-invalid"

  /// A keyed archive not by Apple's tools.
  case foreignArchive = "model-foreign-archive"

  /// Xcode 3's source: an archive named `elements`.
  case oldFormat = "model-old-format"

  /// Xcode's optimized form (`momv2$`, `.omo`).
  case optimizedFormat = "model-optimized-format"
  case tooLarge = "model-too-large"
  case noVersions = "model-no-versions"
  case versionOrder = "model-version-order"
  case currentVersionMissing = "model-current-version-missing"
  case unwritable = "model-unwritable"

  /// Only a compiler can resolve it.
  case unresolvedSource = "model-unresolved-source"

  /// The build cannot read Swift sources.
  case sourcesNotBuiltIn = "model-sources-not-built-in"

  /// A requested class or schema is missing.
  case unknownType = "model-unknown-type"

  /// The affected part of a model.
  public struct Details: FailureDetails {
    /// The affected version.
    public var versionName: String?

    /// The affected entity.
    public var entityName: String?

    /// The affected property.
    public var propertyName: String?

    /// Creates details for the whole model.
    public init() {}
  }

  /// The default operation of a failure.
  public var usualOperation: String { "read the model" }

  /// The default hint of a failure.
  public var usualHint: String {
    switch self {
    case .file: "Check the path and its permissions."
    case .notAModel: "Name a .xcdatamodeld, .xcdatamodel, .momd or .mom, or Swift sources."
    case .damaged: "Restore the model from version control, or build it again."
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
    case .unresolvedSource: "Write out what the sources leave to the compiler."
    case .sourcesNotBuiltIn: "Build it with the trait SwiftSources."
    case .unknownType: "Name classes with @Model, or one VersionedSchema."
    }
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension ModelError {
  init(
    _ kind: Kind, operation: String? = nil, path: FilePath? = nil, detail: String, hint: String? = nil,
    entityName: String?, propertyName: String? = nil
  ) {
    self.init(kind, operation: operation, path: path, detail: detail, hint: hint)
    self.entityName = entityName
    self.propertyName = propertyName
  }

  /// Makes the error for two entities, or two properties of an entity, of one name.
  static func doubled(_ kind: Kind, _ entity: String, property: String? = nil) -> ModelError {
    let detail =
      property.map { "entity \"\(printable(entity))\" has two properties called \"\(printable($0))\"" }
      ?? "it has two entities called \"\(printable(entity))\""
    return ModelError(kind, detail: detail, entityName: entity, propertyName: property)
  }

  /// Wraps a file's or property list's error.
  public init(_ error: FileError, operation: String? = nil) {
    let kind: Kind =
      switch error.kind {
      case .notAPropertyList, .notAKeyedArchive: .notAModel
      case .foreignKeyedArchive: .foreignArchive
      case .propertyListTooLarge, .xmlTooLarge: .tooLarge
      case .propertyListDamaged, .malformedXML, .forbiddenXML: .damaged
      case .propertyListUnwritable: .unwritable
      default: .file
      }
    self.init(
      kind, because: error, operation: operation ?? kind.usualOperation, hint: kind == .file ? nil : kind.usualHint)
  }

  /// Runs `read` and wraps its errors.
  static func reading<Value>(_ read: () throws(FileError) -> Value) throws(ModelError) -> Value {
    do throws(FileError) { return try read() } catch { throw ModelError(error) }
  }

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
