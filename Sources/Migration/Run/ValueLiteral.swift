package import ManagedObjectModel
internal import PersistentStore
import Platform

extension AttributeValue {
  /// An SQL literal for an attribute's column, else `NULL`.
  ///
  /// - Parameter isMarked: Whether values have the marker byte of external storage (format section 3.7).
  package func literal(isMarked: Bool) -> String {
    switch self {
    case .integer(let value): return value == .min ? "(-9223372036854775807 - 1)" : String(value)
    case .boolean(let value): return value ? "1" : "0"
    case .real(let value), .date(let value): return Self.number(value)
    case .decimal(let digits):
      let isNumber = Double(digits) != nil && digits.utf8.allSatisfy { "+-.0123456789eE".utf8.contains($0) }
      return isNumber ? "CAST('\(digits)' AS NUMERIC)" : "NULL"
    case .string(let text), .uri(let text): return SQLText.literal(text)
    case .data(let bytes): return Self.blob((isMarked ? [1] : []) + bytes)
    case .uuid(let bytes): return Self.blob(bytes)
    case .opaque: return "NULL"
    }
  }

  private static func number(_ value: Double) -> String {
    guard value.isFinite else { return "NULL" }
    let text = "\(value)"
    return value < 0 ? "(\(text))" : text
  }

  private static func blob(_ bytes: [UInt8]) -> String { "x'\(bytes.hexadecimal)'" }
}
