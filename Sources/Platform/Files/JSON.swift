internal import Foundation
package import SystemPackage

/// The one writer of JSON (RFC 8259): keys in alphabetical order, slashes plain, a line end behind it.
package enum JSON {
  /// How a value is laid out.
  package enum Layout: Sendable {
    case line

    case lines
  }

  /// The bytes of a value, for a file.
  ///
  /// - Parameters:
  ///   - operation: what is being done, as an infinitive phrase.
  ///   - path: where it is to be written.
  /// - Throws: `encoding-failed`, as for a number that JSON has no word for.
  package static func bytes(
    of value: some Encodable, _ layout: Layout = .lines, to operation: String, at path: FilePath? = nil
  ) throws(FileError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if layout == .lines { encoder.outputFormatting.insert(.prettyPrinted) }
    do {
      return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")]
    } catch {
      // Its words may name a value.
      throw FileError(.encodingFailed, operation: operation, path: path)
    }
  }

  /// The text of a value, for people: everything in it escaped that could steer a terminal, or end a script of a page.
  ///
  /// - Parameter markup: whether it may be shown within a page.
  /// - Throws: `encoding-failed`.
  package static func shown(
    _ value: some Encodable, _ layout: Layout = .lines, withinPages markup: Bool = false
  ) throws(FileError) -> String {
    let text = String(decoding: try bytes(of: value, layout, to: "show the result as JSON"), as: UTF8.self)
    guard text.unicodeScalars.contains(where: { isEscaped($0, withinPages: markup) }) else { return text }
    // Outside its strings JSON has no such characters but line ends, so an escape is always in its place.
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if isEscaped(scalar, withinPages: markup) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }

  /// Text between quotation marks, for what is written piece by piece; safe on a terminal and within a page.
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
    String(scalar).utf16.map { unit in
      let digits = String(unit, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }

  private static func isEscaped(_ scalar: Unicode.Scalar, withinPages markup: Bool) -> Bool {
    if scalar.isASCII {
      if markup, scalar == "<" || scalar == ">" || scalar == "&" { return true }
      return scalar.value == 0x7F || (scalar.value < 0x20 && scalar != "\n")
    }
    return [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
  }
}

extension JSON {
  /// The members of an object by their keys; those without a value are left out.
  package typealias Members = KeyValuePairs<String, (any Encodable & Sendable)?>

  /// A value that is written as `null` where there is none, and not left out.
  package static func orNull(_ value: (some Encodable & Sendable)?) -> any Encodable & Sendable { value }

  /// An object by its members, or one that has the members of another value, and more.
  package struct Object: Encodable, Sendable, ExpressibleByDictionaryLiteral {
    private let value: (any Encodable & Sendable)?
    private let members: [(String, (any Encodable & Sendable)?)]

    /// The members of a value that encodes itself as an object, and these.
    package init(_ value: any Encodable & Sendable, _ members: Members) {
      self.value = value
      self.members = members.map { ($0.key, $0.value) }
    }

    /// An object of these members.
    package init(dictionaryLiteral members: (String, (any Encodable & Sendable)?)...) {
      value = nil
      self.members = members
    }

    /// Writes the members of both.
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
}

extension Encoder {
  /// Writes the members of an object; those without a value are left out.
  package func encode(_ members: JSON.Members) throws { try encode(members.map { ($0.key, $0.value) }) }

  fileprivate func encode(_ members: [(String, (any Encodable & Sendable)?)]) throws {
    var object = container(keyedBy: JSON.Key.self)
    for case (let key, let value?) in members { try object.encode(value, forKey: JSON.Key(stringValue: key)) }
  }
}

extension JSON {
  /// A value whose shape is only known when it is made, such as that of a record; the keys of objects keep their order.
  package indirect enum Value: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)

    /// A number; one that is not finite is written as text, for JSON has no word for it.
    case real(Double)
    case string(String)
    case array([Value])
    case object([Member])

    /// One key with its value.
    package struct Member: Sendable, Hashable {
      package var key: String
      package var value: Value

      /// A key with its value.
      package init(_ key: String, _ value: Value) {
        self.key = key
        self.value = value
      }
    }
  }
}

extension JSON.Value: Encodable {
  /// Writes the value as what it is.
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

  /// An object from its members, those without a value left out.
  package static func members(_ members: (String, JSON.Value?)...) -> JSON.Value {
    .object(members.compactMap { key, value in value.map { Member(key, $0) } })
  }

  /// The text on one line, the keys in their order; safe on a terminal and within a page.
  package var text: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let value): String(value)
    case .real(let value): value.isFinite ? String(value) : JSON.literal("\(value)")
    case .string(let value): JSON.literal(value)
    case .array(let values): "[\(values.map(\.text).joined(separator: ","))]"
    case .object(let members):
      "{\(members.map { "\(JSON.literal($0.key)):\($0.value.text)" }.joined(separator: ","))}"
    }
  }
}

extension JSON.Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Text.
  package init(stringLiteral value: String) { self = .string(value) }

  /// A number.
  package init(integerLiteral value: Int64) { self = .integer(value) }

  /// True or false.
  package init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// A list.
  package init(arrayLiteral elements: JSON.Value...) { self = .array(elements) }

  /// An object, its keys in this order.
  package init(dictionaryLiteral elements: (String, JSON.Value)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
}
