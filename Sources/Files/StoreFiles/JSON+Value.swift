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
