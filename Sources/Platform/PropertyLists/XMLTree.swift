internal import Foundation

/// A bounded XML document of elements, attributes and text in UTF-8, with XML's five entities.
public struct XMLTree: Sendable, Hashable {
  /// An element.
  public struct Element: Sendable, Hashable {
    /// The name, prefix included.
    public var name: String

    /// The attributes by name, entities resolved.
    public var attributes: [String: String]

    /// The child elements in document order.
    public var children: [Element]

    /// The element's own text, joined, white space kept.
    public var text: String

    /// The line of its start in the document, from 1; 0 if it is of none.
    package var line = 0

    /// Makes an element.
    public init(name: String, attributes: [String: String] = [:], children: [Element] = [], text: String = "") {
      self.name = name
      self.attributes = attributes
      self.children = children
      self.text = text
    }

    /// Returns the value of an attribute.
    public subscript(attribute: String) -> String? { attributes[attribute] }

    /// Returns the children of a name, in document order.
    public func children(named name: String) -> [Element] { children.filter { $0.name == name } }

    /// Returns the first child of a name.
    public func child(named name: String) -> Element? { children.first { $0.name == name } }
  }

  /// The root element.
  public var root: Element

  /// The allowed document type declarations.
  public enum DocumentType: Sendable, Hashable {
    case none

    /// The document type line of XML property lists; its target is never loaded.
    case propertyList

    /// The document type line of Core Data's XML stores; its target is never loaded.
    case coreDataStore
  }

  /// Reads a document.
  ///
  /// - Throws: `FileError` if it is malformed, has a declaration or exceeds the limits.
  public init(_ bytes: [UInt8], allowing documentType: DocumentType = .none) throws(FileError) {
    root = try XMLReader.read(bytes, allowing: documentType)
  }

  /// Whether the bytes begin like XML, after a byte order mark and white space.
  public static func looksLikeXML(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    let visible = rest.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
    guard visible.first == UInt8(ascii: "<"), let next = visible.dropFirst().first else { return false }
    return next == UInt8(ascii: "?") || next == UInt8(ascii: "!") || next == UInt8(ascii: "_")
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(next | 0x20)
  }
}

extension XMLTree.Element {
  /// Decodes the text as base64 with white space; nil if malformed.
  public var base64Data: [UInt8]? {
    let letters = text.utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return Data(base64Encoded: Data(letters)).map { Array($0) }
  }
}
