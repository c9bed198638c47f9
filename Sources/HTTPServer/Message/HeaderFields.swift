/// The header fields of a request or response, in their order; names are compared without case (RFC 9110, section 5).
package struct HeaderFields: Sendable, Hashable {
  /// One line.
  package struct Field: Sendable, Hashable {
    /// The name as it was written.
    package var name: String

    /// The value without white space around it.
    package var value: String
  }

  /// All lines.
  package private(set) var fields: [Field] = []

  /// No fields.
  package init() {}

  /// The value of the first field of a name.
  package subscript(name: String) -> String? {
    let name = name.lowercased()
    return fields.first { $0.name.lowercased() == name }?.value
  }

  /// The values of all fields of a name.
  package func all(_ name: String) -> [String] {
    let name = name.lowercased()
    return fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  /// How many fields have a name.
  package func count(of name: String) -> Int { all(name).count }

  /// Adds a field as it is.
  package mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

  /// Puts one field in place of all of that name.
  package mutating func set(_ name: String, _ value: String) {
    remove(name)
    add(name, value)
  }

  /// Removes all fields of a name.
  package mutating func remove(_ name: String) {
    let name = name.lowercased()
    fields.removeAll { $0.name.lowercased() == name }
  }
}

extension HeaderFields.Field {
  /// Whether the name is a token and the value has no control characters (RFC 9110, sections 5.1 and 5.5).
  package var isLegal: Bool {
    !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
      && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// The value as it is sent: what could end the line, and what is not ASCII, becomes a question mark.
  ///
  /// Values of records get into headers only through types that encode them; this is the last line of defence.
  var safeValue: String {
    String(
      decoding: value.utf8.map { $0 >= 0x20 && $0 < 0x7F || $0 == 0x09 ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }
}
