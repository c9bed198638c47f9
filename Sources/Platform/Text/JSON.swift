internal import Foundation
package import SystemPackage

/// The JSON writer (RFC 8259): sorted keys, unescaped slashes, a final newline.
package enum JSON {
  package enum Layout: Sendable { case line, lines }

  /// Encodes a value for a file.
  ///
  /// - Parameters:
  ///   - operation: an infinitive phrase for errors.
  ///   - path: the destination.
  /// - Throws: `encoding-failed`, as for an infinite number.
  package static func bytes(
    of value: some Encodable, _ layout: Layout = .lines, to operation: String, at path: FilePath? = nil
  ) throws(FileError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if layout == .lines { encoder.outputFormatting.insert(.prettyPrinted) }
    do { return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")] } catch {
      // The underlying message may hold a value.
      throw FileError(.encodingFailed, operation: operation, path: path)
    }
  }

  /// Encodes a value for display, with escapes for characters that could control a terminal or end a script.
  ///
  /// - Parameter markup: whether it is for an HTML page.
  /// - Throws: `encoding-failed`.
  package static func shown(
    _ value: some Encodable, _ layout: Layout = .lines, withinPages markup: Bool = false
  ) throws(FileError) -> String {
    let text = String(decoding: try bytes(of: value, layout, to: "show the result as JSON"), as: UTF8.self)
    guard text.unicodeScalars.contains(where: { isEscaped($0, withinPages: markup) }) else { return text }
    // Outside its strings, JSON has only line ends of these characters, so an escape is always valid.
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if isEscaped(scalar, withinPages: markup) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }

  /// Quotes text, safe for terminals and HTML.
  package static func literal(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "\"") { result, scalar in
      if scalar == "\"" || scalar == "\\" {
        result += "\\\(scalar)"
      } else if scalar == "\n" || isEscaped(scalar, withinPages: true) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    } + "\""
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    String(scalar).utf16.map { "\\u" + zeroPadded(String($0, radix: 16), to: 4) }.joined()
  }

  private static func isEscaped(_ scalar: Unicode.Scalar, withinPages markup: Bool) -> Bool {
    if scalar.isASCII {
      if markup, scalar == "<" || scalar == ">" || scalar == "&" { return true }
      return scalar.value == 0x7F || (scalar.value < 0x20 && scalar != "\n")
    }
    return [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
  }

  package typealias Members = KeyValuePairs<String, (any Encodable & Sendable)?>

  /// Encodes nil as `null` instead of omitting it.
  package static func orNull(_ value: (some Encodable & Sendable)?) -> any Encodable & Sendable { value }

  package struct Object: Encodable, Sendable, ExpressibleByDictionaryLiteral {
    private let value: (any Encodable & Sendable)?
    private let members: [(String, (any Encodable & Sendable)?)]

    package init(_ value: any Encodable & Sendable, _ members: Members) {
      self.value = value
      self.members = members.map { ($0.key, $0.value) }
    }

    package init(dictionaryLiteral members: (String, (any Encodable & Sendable)?)...) {
      value = nil
      self.members = members
    }

    package func encode(to encoder: any Encoder) throws {
      try value?.encode(to: encoder)
      try encoder.encode(members)
    }
  }

  fileprivate struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// A dynamic JSON value; the keys of objects keep their order.
  package indirect enum Value: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)

    /// A number; written as text if not finite, which JSON cannot express.
    case real(Double)
    case string(String)
    case array([Value])
    case object([Member])

    package struct Member: Sendable, Hashable {
      package var key: String
      package var value: Value

      package init(_ key: String, _ value: Value) {
        self.key = key
        self.value = value
      }
    }
  }
}

extension Encoder {
  /// Encodes the members of an object, without those that are nil.
  package func encode(_ members: JSON.Members) throws { try encode(members.map { ($0.key, $0.value) }) }

  fileprivate func encode(_ members: [(String, (any Encodable & Sendable)?)]) throws {
    var object = container(keyedBy: JSON.Key.self)
    for case (let key, let value?) in members { try object.encode(value, forKey: JSON.Key(stringValue: key)) }
  }
}

extension JSON.Value: Encodable {
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .real(let value) where value.isFinite: try container.encode(value)
    case .real(let value): try container.encode("\(value)")
    case .string(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .object(let members):
      try container.encode(Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first }))
    }
  }

  /// Makes an object without nil members.
  package static func members(_ members: (String, JSON.Value?)...) -> JSON.Value {
    .object(members.compactMap { key, value in value.map { Member(key, $0) } })
  }

  /// One line in key order, safe for terminals and HTML.
  package var text: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let value): String(value)
    case .real(let value): value.isFinite ? String(value) : JSON.literal("\(value)")
    case .string(let value): JSON.literal(value)
    case .array(let values): "[\(values.map(\.text).joined(separator: ","))]"
    case .object(let members): "{\(members.map { "\(JSON.literal($0.key)):\($0.value.text)" }.joined(separator: ","))}"
    }
  }
}

extension JSON.Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }

  package init(integerLiteral value: Int64) { self = .integer(value) }

  package init(booleanLiteral value: Bool) { self = .boolean(value) }

  package init(arrayLiteral elements: JSON.Value...) { self = .array(elements) }

  package init(dictionaryLiteral elements: (String, JSON.Value)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
}
