internal import Foundation

/// An XML document as a tree of elements, read under tight bounds.
///
/// Only what model files need: elements, attributes and text. No document type but that of property lists, where it is
/// asked for; no entities but the five that XML itself has; UTF-8 only.
public struct XMLTree: Sendable, Hashable {
  /// An element of the document.
  public struct Element: Sendable, Hashable {
    /// The name of the element, prefix included.
    public var name: String

    /// The attributes by name, entities resolved.
    public var attributes: [String: String]

    /// The elements directly inside of it, in document order.
    public var children: [Element]

    /// The text directly inside of it, joined, white space kept.
    public var text: String

    /// An element made by hand.
    public init(name: String, attributes: [String: String] = [:], children: [Element] = [], text: String = "") {
      self.name = name
      self.attributes = attributes
      self.children = children
      self.text = text
    }

    /// The value of an attribute.
    public subscript(attribute: String) -> String? { attributes[attribute] }

    /// The children of that name, in document order.
    public func children(named name: String) -> [Element] { children.filter { $0.name == name } }

    /// The first child of that name.
    public func child(named name: String) -> Element? { children.first { $0.name == name } }
  }

  /// The outermost element.
  public var root: Element

  /// How large a document may be.
  public struct Limits: Sendable, Hashable {
    /// The largest number of bytes read.
    public var maximumBytes: Int

    /// The deepest nesting of elements, the outermost one included.
    public var maximumDepth: Int

    /// The largest number of elements.
    public var maximumElements: Int

    /// The largest number of attributes of one element.
    public var maximumAttributes: Int

    /// Limits that every honest model source stays far below.
    public static let standard = Limits(
      maximumBytes: 32 << 20, maximumDepth: 64, maximumElements: 500_000, maximumAttributes: 128)

    /// Limits of one's own; a depth above 64 is cut to 64.
    public init(maximumBytes: Int, maximumDepth: Int, maximumElements: Int, maximumAttributes: Int) {
      self.maximumBytes = maximumBytes
      self.maximumDepth = min(maximumDepth, 64)
      self.maximumElements = maximumElements
      self.maximumAttributes = maximumAttributes
    }
  }

  /// Which document type declarations are let through.
  public enum DocumentType: Sendable, Hashable {
    case none

    /// The one line that XML property lists begin with; what it points to is never loaded.
    case propertyList

    /// The one line that XML stores of Core Data begin with; what it points to is never loaded.
    case coreDataStore
  }

  /// Reads a document.
  ///
  /// - Throws: `PropertyListError` where it is not well formed, declares anything, or is beyond the limits.
  public init(
    _ bytes: [UInt8], allowing documentType: DocumentType = .none, limits: Limits = .standard
  ) throws(PropertyListError) {
    guard bytes.count <= limits.maximumBytes else {
      throw PropertyListError(
        .xmlTooLarge, operation: "read the XML document",
        detail: "it has \(bytes.count) bytes, and \(limits.maximumBytes) are accepted")
    }
    root = try XMLReader.read(bytes, allowing: documentType, limits: limits)
  }

  /// Whether bytes begin like an XML document, a byte order mark and white space left aside.
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
  /// The bytes that its text is in base 64, white space between the letters left aside; nil where it is anything else.
  public var base64Data: [UInt8]? {
    let letters = text.utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return Data(base64Encoded: Data(letters)).map { Array($0) }
  }
}
