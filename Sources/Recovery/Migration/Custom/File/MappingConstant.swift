internal import Foundation
internal import ManagedObjectModel
internal import StoreFiles

/// A constant of a mapping file, read as a value of its attribute's type.
struct MappingConstant {
  private let node: JSONTree
  private let type: AttributeType

  /// A value of the file for an attribute of a type.
  init(_ node: JSONTree, type: AttributeType) {
    self.node = node
    self.type = type
  }

  /// What is wrong with a constant that has no literal.
  var detail: String { "\(node.kindName) is no constant for the type \(type.sourceName), or not this one" }

  var hint: String {
    switch type {
    case .integer16: "Write a whole number from -32768 to 32767."
    case .integer32: "Write a whole number from -2147483648 to 2147483647."
    case .integer64: "Write a whole number from -9223372036854775808 to 9223372036854775807."
    case .boolean: "Write true or false."
    case .decimal, .double, .float: "Write a number that the type has room for."
    case .date: "Write a time such as \"2026-01-31T12:00:00Z\", or seconds since 2001-01-01T00:00:00Z."
    case .string: "Write a text without a character of the number 0."
    case .uri: "Write a URI such as \"https://example.org/a%20b\", other characters than its own as %20."
    case .uuid: "Write a UUID such as \"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"."
    case .binary: "Write the bytes in base 64, such as \"AAEC\"."
    case .transformable, .undefined, .objectID, .composite: "Only null can be written for it."
    }
  }

  /// The constant as SQL; nil for one that the type has no place for.
  var literal: String? {
    switch node.value {
    case .null: "NULL"
    case .boolean(let flag): type == .boolean ? AttributeValue.boolean(flag).literal(isMarked: false) : nil
    case .number(let digits): number(digits)?.literal(isMarked: false)
    case .string(let text): text.unicodeScalars.contains("\0") ? nil : value(text)?.literal(isMarked: false)
    case .array, .object: nil
    }
  }

  private func number(_ digits: String) -> AttributeValue? {
    switch type {
    case .integer16: return Int16(digits).map { .integer(Int64($0)) }
    case .integer32: return Int32(digits).map { .integer(Int64($0)) }
    case .integer64: return Int64(digits).map { .integer($0) }
    case .double: return Double(digits).flatMap { $0.isFinite ? .real($0) : nil }
    case .float: return Float(digits).flatMap { $0.isFinite ? Double(digits).map(AttributeValue.real) : nil }
    case .date: return Double(digits).flatMap { $0.isFinite ? .date($0) : nil }
    // More digits than a decimal number has, or a power that it has no room for.
    case .decimal: return Double(digits).flatMap { $0.isFinite && abs($0) < 1e127 ? .decimal(digits) : nil }
    case .undefined, .string, .boolean, .binary, .uuid, .uri, .transformable, .objectID, .composite: return nil
    }
  }

  private func value(_ text: String) -> AttributeValue? {
    switch type {
    case .string: return .string(text)
    case .uri: return Self.isURI(text) ? .uri(text) : nil
    case .uuid: return Self.uuid(text).map(AttributeValue.uuid)
    case .binary: return Data(base64Encoded: text).map { .data(Array($0)) }
    case .date:
      // Only what is written back the same is a day of the calendar.
      guard let time = Timestamp(text), time.rfc3339 == text else { return nil }
      return .date(time.secondsSinceReferenceDate)
    case .undefined, .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean, .transformable, .objectID,
      .composite:
      return nil
    }
  }

  private static func uuid(_ text: String) -> [UInt8]? {
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
    return [UInt8](hexadecimal: groups.joined())
  }

  /// Whether a text has the characters of a URI (RFC 3986), and no others.
  private static func isURI(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%".utf8)
    guard !bytes.isEmpty, bytes.allSatisfy(allowed.contains), bytes.count(where: { $0 == UInt8(ascii: "#") }) < 2 else {
      return false
    }
    return bytes.indices.allSatisfy { place in
      guard bytes[place] == UInt8(ascii: "%") else { return true }
      let pair = bytes[(place + 1)...].prefix(2)
      return pair.count == 2 && pair.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }
  }
}
