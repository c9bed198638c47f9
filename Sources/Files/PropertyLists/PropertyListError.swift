public import StoreFiles

/// A property list, an archive or an XML document that cannot be read.
public typealias PropertyListError = Failure<PropertyListErrorKind>

/// Why a property list, an archive or an XML document cannot be read.
public enum PropertyListErrorKind: String, FailureKind {
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

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the property list"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
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
