public import Platform
package import SystemPackage

/// A model that cannot be read, written or used.
public typealias ModelError = Failure<ModelErrorKind>

/// Why a model cannot be read, written or used.
public enum ModelErrorKind: String, FailureKind {
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

  /// Something in Swift sources that cannot be resolved without a compiler.
  case unresolvedSource = "model-unresolved-source"

  /// Swift sources, and a build that does not read them.
  case sourcesNotBuiltIn = "model-sources-not-built-in"

  /// A class or a schema that was asked for by its name.
  case unknownType = "model-unknown-type"

  /// What of the model a failure is about.
  public struct Details: FailureDetails {
    /// The version of a bundle that the error is about, where it is about one.
    public var versionName: String?

    /// The entity that the error is about, where it is about one.
    public var entityName: String?

    /// The property that the error is about, where it is about one.
    public var propertyName: String?

    /// The error is about the whole model.
    public init() {}
  }

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the model"

  /// What the reader can do next, where a failure does not say.
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
    case .sourcesNotBuiltIn: "Build it with: swift build --traits SwiftSources"
    case .unknownType: "Name classes with @Model, or one VersionedSchema, with --types A,B."
    }
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension ModelError {
  /// An error about an entity or a property, with the usual hint unless another is given.
  package init(
    _ kind: Kind, operation: String = Kind.usualOperation, path: FilePath? = nil, detail: String, hint: String? = nil,
    entityName: String?, propertyName: String? = nil
  ) {
    self.init(kind, operation: operation, path: path, detail: detail, hint: hint)
    self.entityName = entityName
    self.propertyName = propertyName
  }

  /// The error of a file that could not be read.
  public init(_ error: FileError) {
    self.init(.file, because: error, operation: Kind.usualOperation)
  }

  /// The error of an archive, a property list or an XML document that could not be read.
  init(_ error: PropertyListError, operation: String = Kind.usualOperation) {
    let kind: Kind =
      switch error.kind {
      case .notAPropertyList, .notAnArchive: .notAModel
      case .foreignArchive: .foreignArchive
      case .tooLarge, .xmlTooLarge: .tooLarge
      case .damaged, .malformedXML, .forbiddenXML: .damaged
      case .unwritable: .unwritable
      }
    self.init(kind, because: error, operation: operation, hint: kind.usualHint)
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
