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
    Data(base64Encoded: Data(text.utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) })).map { Array($0) }
  }
}

/// A strict, non-recursive reader of the XML of models and property lists.
///
/// Own code because Foundation's parser on Linux occasionally dereferenced null on mutated documents in several
/// threads. Rejects malformed XML and every declaration but the document type line of property lists.
struct XMLReader {
  private let bytes: [UInt8]
  private let documentType: XMLTree.DocumentType
  private var position = 0

  private var open: [XMLTree.Element] = []

  private var texts: [[UInt8]] = []
  private var root: XMLTree.Element?
  private var elements = 0

  /// The line at the last start tag, and the bytes before that.
  private var line = 1
  private var counted = 0
  private var hasDocumentType = false

  // Far above legitimate model sources; the depth counts the root.
  private static let maximumBytes = 32 << 20
  private static let maximumDepth = 64
  private static let maximumElements = 500_000
  private static let maximumAttributes = 128

  static func read(_ bytes: [UInt8], allowing documentType: XMLTree.DocumentType) throws(FileError) -> XMLTree.Element {
    guard bytes.count <= maximumBytes else {
      throw FileError(
        .xmlTooLarge, operation: "read the XML document",
        detail: "it has \(bytes.count) bytes, and \(maximumBytes) are accepted")
    }
    var reader = XMLReader(bytes: bytes, documentType: documentType)
    return try reader.document()
  }

  private mutating func document() throws(FileError) -> XMLTree.Element {
    if let place = bytes.firstIndex(where: { $0 < 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }) {
      position = place
      throw malformed("it holds a control character, which XML has no place for")
    }
    guard String(utf8: bytes) != nil else { throw malformed("it is not valid UTF-8") }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    if begins("<?xml") { try declaration() }
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "<") { try markup() } else { try characters() }
    }
    guard let root, open.isEmpty else { throw malformed("it is cut off") }
    return root
  }

  private mutating func markup() throws(FileError) {
    if begins("<!--") {
      try comment()
    } else if begins("<![CDATA[") {
      try literalText()
    } else if begins("<?") {
      guard !begins("<?xml ") else { throw malformed("an XML declaration stands in the middle") }
      position = try end(of: "?>", from: position + 2, what: "a processing instruction")
    } else if begins("<!DOCTYPE") {
      try documentTypeDeclaration()
    } else if begins("<!") {
      throw forbidden("it holds a markup declaration")
    } else if begins("</") {
      try endTag()
    } else {
      try startTag()
    }
  }

  // MARK: Prolog

  /// Reads the XML declaration, which may name only UTF-8 or ASCII.
  private mutating func declaration() throws(FileError) {
    let last = try end(of: "?>", from: position, what: "its XML declaration")
    position += 5
    var isFirst = true
    while true {
      let hadSpace = skipSpace()
      if begins("?>") { break }
      guard hadSpace, position < last else { throw malformed("its XML declaration is damaged") }
      let (name, value) = try attribute()
      guard isFirst == (name == "version"), ["version", "encoding", "standalone"].contains(name) else {
        throw malformed("its XML declaration is damaged")
      }
      isFirst = false
      if name == "encoding" {
        guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(value.lowercased()) else {
          throw malformed("it is not in UTF-8 but in another encoding")
        }
      }
    }
    guard !isFirst else { throw malformed("its XML declaration is damaged") }
    position += 2
  }

  private mutating func documentTypeDeclaration() throws(FileError) {
    guard documentType != .none else { throw forbidden("it declares a document type") }
    guard root == nil, open.isEmpty, !hasDocumentType else { throw malformed("a document type stands in the middle") }
    hasDocumentType = true
    var quote: UInt8?
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: "[") {
        throw forbidden("its document type has declarations of its own")
      } else if byte == UInt8(ascii: ">") {
        return
      }
    }
    throw malformed("it ends inside of its document type")
  }

  private mutating func comment() throws(FileError) {
    let last = try end(of: "--", from: position + 4, what: "a comment")
    guard last < bytes.count, bytes[last] == UInt8(ascii: ">") else { throw malformed("a comment is damaged") }
    position = last + 1
  }

  // MARK: Elements

  private mutating func startTag() throws(FileError) {
    guard root == nil else { throw malformed("it has two outermost elements") }
    elements += 1
    guard elements <= Self.maximumElements else { throw tooLarge("it has more than \(Self.maximumElements) elements") }
    guard open.count < Self.maximumDepth else {
      throw tooLarge("it is nested deeper than \(Self.maximumDepth) elements")
    }
    line += bytes[counted..<position].count { $0 == 0x0A }
    counted = position
    position += 1
    var element = XMLTree.Element(name: try name())
    element.line = line
    while true {
      let hadSpace = skipSpace()
      guard position < bytes.count else { throw malformed("it ends inside of a tag") }
      if bytes[position] == UInt8(ascii: ">") {
        position += 1
        open.append(element)
        texts.append([])
        return
      }
      if begins("/>") {
        position += 2
        close(element)
        return
      }
      guard hadSpace else { throw malformed("a tag is damaged") }
      guard element.attributes.count < Self.maximumAttributes else {
        throw tooLarge("an element has more than \(Self.maximumAttributes) attributes")
      }
      let (name, value) = try attribute()
      guard element.attributes.updateValue(value, forKey: name) == nil else {
        throw malformed("an element has the same attribute twice")
      }
    }
  }

  private mutating func endTag() throws(FileError) {
    position += 2
    let name = try name()
    skipSpace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: ">") else { throw malformed("a tag is damaged") }
    guard var element = open.popLast(), element.name == name else {
      throw malformed("an element ends that did not begin")
    }
    position += 1
    element.text = String(decoding: texts.removeLast(), as: UTF8.self)
    close(element)
  }

  private mutating func close(_ element: XMLTree.Element) {
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }

  /// Reads an attribute; white space in its value becomes spaces, as XML requires.
  private mutating func attribute() throws(FileError) -> (name: String, value: String) {
    let name = try name()
    skipSpace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { throw malformed("a tag is damaged") }
    position += 1
    skipSpace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'") else {
      throw malformed("a tag is damaged")
    }
    let quote = bytes[position]
    position += 1
    var value: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      switch byte {
      case quote:
        position += 1
        return (name, String(decoding: value, as: UTF8.self))
      case UInt8(ascii: "<"): throw malformed("an attribute holds a tag")
      case UInt8(ascii: "&"): value += try reference()
      case 0x0D:
        value.append(0x20)
        position += position + 1 < bytes.count && bytes[position + 1] == 0x0A ? 2 : 1
      case 0x09, 0x0A:
        value.append(0x20)
        position += 1
      default:
        value.append(byte)
        position += 1
      }
    }
    throw malformed("it ends inside of a tag")
  }

  private mutating func name() throws(FileError) -> String {
    let start = position
    guard position < bytes.count, Self.startsName(bytes[position]) else { throw malformed("a name is damaged") }
    while position < bytes.count, Self.isName(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private static func startsName(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, UInt8(ascii: "_"), UInt8(ascii: ":"), 0x80...0xFF: true
    default: false
    }
  }

  private static func isName(_ byte: UInt8) -> Bool {
    startsName(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: ".")
  }

  // MARK: Text

  /// Reads text up to the next tag; outside the root only white space is allowed.
  private mutating func characters() throws(FileError) {
    guard let last = texts.indices.last else {
      guard skipSpace() else { throw malformed("it has text outside of its outermost element") }
      return
    }
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") {
      switch bytes[position] {
      case UInt8(ascii: "&"): texts[last] += try reference()
      case UInt8(ascii: "]") where begins("]]>"): throw malformed("a CDATA section ends that did not begin")
      default: appendByte(to: last)
      }
    }
  }

  private mutating func literalText() throws(FileError) {
    guard let last = texts.indices.last else { throw malformed("it has text outside of its outermost element") }
    let end = try end(of: "]]>", from: position + 9, what: "a CDATA section")
    position += 9
    while position < end - 3 { appendByte(to: last) }
    position = end
  }

  /// Appends a byte; every line end becomes a line feed, as XML requires.
  private mutating func appendByte(to index: Int) {
    let byte = bytes[position]
    position += 1
    guard byte == 0x0D else {
      texts[index].append(byte)
      return
    }
    texts[index].append(0x0A)
    if position < bytes.count, bytes[position] == 0x0A { position += 1 }
  }

  /// Resolves a numeric reference or one of XML's five entities, as UTF-8.
  private mutating func reference() throws(FileError) -> [UInt8] {
    let body = bytes[(position + 1)...].prefix(12).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";") else {
      throw forbidden("it refers to an entity that XML does not have by itself")
    }
    let text = String(decoding: body, as: UTF8.self)
    position = body.endIndex + 1
    switch text {
    case "amp": return [UInt8(ascii: "&")]
    case "lt": return [UInt8(ascii: "<")]
    case "gt": return [UInt8(ascii: ">")]
    case "quot": return [UInt8(ascii: "\"")]
    case "apos": return [UInt8(ascii: "'")]
    default: break
    }
    guard text.hasPrefix("#") else { throw forbidden("it refers to an entity that XML does not have by itself") }
    let isHexadecimal = text.hasPrefix("#x")
    let digits = text.dropFirst(isHexadecimal ? 2 : 1)
    guard digits.allSatisfy(\.isHexDigit), let number = UInt32(digits, radix: isHexadecimal ? 16 : 10),
      let scalar = Unicode.Scalar(number), number >= 0x20 || [0x09, 0x0A, 0x0D].contains(number),
      number != 0xFFFE, number != 0xFFFF
    else { throw malformed("it refers to a character that there is not") }
    return Array(String(Character(scalar)).utf8)
  }

  // MARK: Helpers

  private func begins(_ text: StaticString) -> Bool { bytes[position...].starts(with: text.description.utf8) }

  @discardableResult private mutating func skipSpace() -> Bool {
    let start = position
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    return position > start
  }

  private func end(of word: StaticString, from start: Int, what: String) throws(FileError) -> Int {
    let word = Array(word.description.utf8)
    var index = start
    while index + word.count <= bytes.count {
      if bytes[index] == word[0], bytes[index..<index + word.count].elementsEqual(word) { return index + word.count }
      index += 1
    }
    throw malformed("it ends inside of \(what)")
  }

  private func malformed(_ detail: String) -> FileError { error(.malformedXML, detail) }

  private func forbidden(_ detail: String) -> FileError { error(.forbiddenXML, detail) }

  private func tooLarge(_ detail: String) -> FileError { error(.xmlTooLarge, detail) }

  private func error(_ kind: FileError.Kind, _ detail: String) -> FileError {
    let before = bytes[..<min(position, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let column = before.count - (before.lastIndex(of: 0x0A) ?? -1)
    return FileError(kind, operation: "read the XML document", detail: "\(detail) (line \(line), column \(column))")
  }
}
