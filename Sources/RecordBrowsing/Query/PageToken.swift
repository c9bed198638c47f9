internal import Foundation
internal import GRDB

/// Where a page begins: behind the record with this sort value and key.
///
/// It is opaque to others, and checked when it is read.
struct PageToken {
  /// The sort value and the key's values of the last record of the page before.
  var values: [DatabaseValue]

  init(_ values: [DatabaseValue]) { self.values = values }

  /// Reads a token.
  ///
  /// - Throws: `bad-query` where it is none, or one of another question.
  init(_ text: String, count: Int) throws(RecordBrowsingError) {
    let wrong = RecordBrowsingError.badQuery("the page token cannot be understood", hint: "Go back to the first page.")
    guard text.utf8.count < 100_000 else { throw wrong }
    var values: [DatabaseValue] = []
    for part in text.split(separator: "~", omittingEmptySubsequences: false) {
      guard let value = Self.value(part) else { throw wrong }
      values.append(value)
    }
    guard values.count == count else { throw wrong }
    self.values = values
  }

  var text: String { values.map(Self.text).joined(separator: "~") }

  /// A value as a part of an address: a letter for its class, then digits, hexadecimal for all but whole numbers.
  static func text(_ value: DatabaseValue) -> String {
    switch value.storage {
    case .null: return "n"
    case .int64(let number): return "i\(number)"
    case .double(let number): return "r\(String(number.bitPattern, radix: 16))"
    case .string(let text): return "t\(hexadecimal(Array(text.utf8)))"
    case .blob(let data): return "b\(hexadecimal([UInt8](data)))"
    }
  }

  static func value(_ part: Substring) -> DatabaseValue? {
    let digits = part.dropFirst()
    switch part.first {
    case "n": return digits.isEmpty ? .null : nil
    case "i": return Int64(digits)?.databaseValue
    case "r": return UInt64(digits, radix: 16).map { Double(bitPattern: $0).databaseValue }
    case "t": return bytes(digits).map { String(decoding: $0, as: UTF8.self).databaseValue }
    case "b": return bytes(digits).map { Data($0).databaseValue }
    default: return nil
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    var result = ""
    for byte in bytes {
      if byte < 16 { result += "0" }
      result += String(byte, radix: 16)
    }
    return result
  }

  static func bytes(_ digits: Substring) -> [UInt8]? {
    let digits = Array(digits.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var result: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index...(index + 1)], as: UTF8.self), radix: 16) else {
        return nil
      }
      result.append(byte)
    }
    return result
  }
}
