public import StoreFiles
public import SystemPackage

/// A property list, an archive or an XML document that cannot be read.
public struct PropertyListError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// The bytes are not of the format at all.
    case notAPropertyList = "not-a-property-list"

    /// The format is right and its content is damaged.
    case damaged = "property-list-damaged"

    /// It is larger or deeper than anything honest.
    case tooLarge = "property-list-too-large"

    /// The XML is not well formed.
    case malformedXML = "xml-malformed"

    /// The XML declares a document type or entities, which could make it expand without end or read other files.
    case forbiddenXML = "xml-forbidden-declaration"

    /// The XML is larger or deeper than anything honest.
    case xmlTooLarge = "xml-too-large"

    /// The property list is not a keyed archive.
    case notAnArchive = "not-a-keyed-archive"

    /// A keyed archive written by something else than Apple's archiver.
    case foreignArchive = "foreign-archive"

    /// A value that binary property lists cannot hold.
    case unwritable = "property-list-unwritable"
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

  /// The stable word for the kind of failure.
  public var code: String { kind.rawValue }

  /// An error of a kind, with the usual hint unless another is given.
  public init(
    _ kind: Kind, operation: String = "read the property list", path: FilePath? = nil, detail: String,
    hint: String? = nil
  ) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint ?? kind.usualHint
  }
}

extension PropertyListError.Kind {
  fileprivate var usualHint: String {
    switch self {
    case .notAPropertyList, .notAnArchive: "Check that it is the right file."
    case .damaged, .malformedXML: "Take the file from a backup or build it again."
    case .tooLarge, .xmlTooLarge: "Check that it is the right file; no real one is that large."
    case .forbiddenXML: "Save the file again with Xcode; its files declare no entities."
    case .foreignArchive: "Compile the model with Xcode's momc, or name the model's source."
    case .unwritable: "Leave the value out."
    }
  }
}
