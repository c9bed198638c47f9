internal import Foundation
internal import GRDB
internal import StoreFiles

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
    case .string(let text): return "t\(text.utf8.hexadecimal)"
    case .blob(let data): return "b\(data.hexadecimal)"
    }
  }

  static func value(_ part: Substring) -> DatabaseValue? {
    let digits = part.dropFirst()
    switch part.first {
    case "n": return digits.isEmpty ? .null : nil
    case "i": return Int64(digits)?.databaseValue
    case "r": return UInt64(digits, radix: 16).map { Double(bitPattern: $0).databaseValue }
    case "t": return [UInt8](hexadecimal: digits).map { String(decoding: $0, as: UTF8.self).databaseValue }
    case "b": return [UInt8](hexadecimal: digits).map { Data($0).databaseValue }
    default: return nil
    }
  }

}
