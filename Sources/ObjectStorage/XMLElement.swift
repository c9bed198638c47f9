import Backup
import Platform

/// An element of an S3 server's XML.
///
/// The parser ignores attributes, comments and namespaces, and refuses document types and excessive depth or size.
package struct XMLElement: Sendable {
  /// The name without namespace prefix.
  package let name: String

  /// The text without that of child elements.
  package private(set) var text = ""

  private(set) var children: [XMLElement] = []

  package func text(_ name: String) -> String? { children.first { $0.name == name }?.text }

  package func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  package struct Limits: Sendable {
    var bytes: Int
    var depth: Int
    var elements: Int

    package init(bytes: Int = 8 << 20, depth: Int = 8, elements: Int = 50_000) {
      self.bytes = bytes
      self.depth = depth
      self.elements = elements
    }
  }

  /// Parses a document; nil if malformed or past the limits.
  package init?(_ bytes: [UInt8], limits: Limits = Limits()) {
    guard bytes.count <= limits.bytes else { return nil }
    var reader = Reader(bytes: bytes, limits: limits)
    guard let root = reader.document() else { return nil }
    self = root
  }

  private init(name: String) { self.name = name }

  private struct Reader {
    let bytes: [UInt8]
    let limits: Limits
    var place = 0
    var elements = 0

    enum Markup {
      case opening(String, isEmpty: Bool)
      case closing(String)
      case other
    }

    mutating func document() -> XMLElement? {
      var open: [XMLElement] = []
      if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { place = 3 }
      while place < bytes.count {
        if bytes[place] != UInt8(ascii: "<") {
          guard let text = text() else { return nil }
          guard !open.isEmpty else {
            guard text.allSatisfy(\.isWhitespace) else { return nil }
            continue
          }
          open[open.count - 1].text += text
          continue
        }
        guard let markup = markup() else { return nil }
        switch markup {
        case .other: continue
        case .opening(let name, let isEmpty):
          elements += 1
          guard elements <= limits.elements, open.count < limits.depth else { return nil }
          open.append(XMLElement(name: name))
          if !isEmpty { continue }
        case .closing(let name): guard open.last?.name == name else { return nil }
        }
        guard let element = open.popLast() else { return nil }
        if open.isEmpty { return isAtEnd() ? element : nil }
        open[open.count - 1].children.append(element)
      }
      return nil
    }

    private func isAtEnd() -> Bool { bytes[place...].allSatisfy { [9, 10, 13, 32].contains($0) } }

    private mutating func markup() -> Markup? {
      let rest = bytes[place...]
      if rest.starts(with: Array("<?".utf8)) { return skip(to: "?>") }
      if rest.starts(with: Array("<!--".utf8)) { return skip(to: "-->") }
      // A document type declares entities, and no answer has one.
      if rest.starts(with: Array("<!".utf8)) { return nil }
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
      var inside = rest[(place + 1)..<end]
      place = end + 1
      let isClosing = inside.first == UInt8(ascii: "/")
      if isClosing { inside = inside.dropFirst() }
      let isEmpty = inside.last == UInt8(ascii: "/")
      if isEmpty { inside = inside.dropLast() }
      let word = inside.prefix { ![9, 10, 13, 32].contains($0) }
      let local = word.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).last ?? []
      guard !local.isEmpty, local.count <= 64, local.allSatisfy(\.isOfWord) else { return nil }
      let name = String(decoding: local, as: UTF8.self)
      return isClosing ? .closing(name) : .opening(name, isEmpty: isEmpty)
    }

    private mutating func skip(to end: String) -> Markup? {
      let mark = Array(end.utf8)
      let at = bytes.indices[place...].first { bytes[$0] == mark[0] && bytes[$0...].starts(with: mark) }
      guard let at else { return nil }
      place = at + mark.count
      return .other
    }

    private mutating func text() -> String? {
      var result: [UInt8] = []
      while place < bytes.count, bytes[place] != UInt8(ascii: "<") {
        guard bytes[place] == UInt8(ascii: "&") else {
          result.append(bytes[place])
          place += 1
          continue
        }
        let window = bytes[(place + 1)..<min(place + 12, bytes.count)]
        guard let end = window.firstIndex(of: UInt8(ascii: ";")),
          let scalar = Self.scalar(String(decoding: bytes[(place + 1)..<end], as: UTF8.self))
        else { return nil }
        result += Array(String(Character(scalar)).utf8)
        place = end + 1
      }
      return String(utf8: result)
    }

    private static func scalar(_ reference: String) -> Unicode.Scalar? {
      switch reference {
      case "amp": return "&"
      case "lt": return "<"
      case "gt": return ">"
      case "quot": return "\""
      case "apos": return "'"
      default:
        guard reference.hasPrefix("#") else { return nil }
        let digits = reference.dropFirst()
        let isHexadecimal = digits.first == "x"
        let value = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits, radix: 10)
        return value.flatMap { Unicode.Scalar($0) }
      }
    }
  }
}
