package import GRDB
public import ManagedObjectModel

/// A stored attribute value.
public enum RecordValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)

  /// A decimal number as text; a binary one is written so that it reads back equal.
  case decimal(String)
  case boolean(Bool)
  case string(String)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)

  case uuid([UInt8])
  case uri(String)

  /// Binary data without its marker, or a transformer's output.
  case data([UInt8])

  /// A file in `.<store>_SUPPORT/_EXTERNAL_DATA/` (format section 3.7).
  case externalData(fileName: String)

  /// An SQLite value of another type than the attribute's.
  case unexpected(StoredValue)
}

/// An SQLite value.
public enum StoredValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

extension RecordValue {
  /// Interprets a stored value by attribute type (format sections 1.2, 3.5 and 3.7).
  ///
  /// - Parameter allowsExternalStorage: whether values begin with the marker byte.
  public init(_ stored: StoredValue, type: AttributeType, allowsExternalStorage: Bool = false) {
    switch (type, stored) {
    case (_, .null): self = .null
    case (.integer16, .integer(let value)), (.integer32, .integer(let value)), (.integer64, .integer(let value)):
      self = .integer(value)
    case (.boolean, .integer(let value)) where value == 0 || value == 1: self = .boolean(value == 1)
    case (.double, .real(let value)), (.float, .real(let value)): self = .real(value)
    case (.double, .integer(let value)), (.float, .integer(let value)): self = .real(Double(value))
    case (.date, .real(let value)): self = .date(value)
    case (.date, .integer(let value)): self = .date(Double(value))
    case (.decimal, .integer(let value)): self = .decimal(String(value))
    case (.decimal, .real(let value)) where value.isFinite: self = .decimal("\(value)")
    case (.decimal, .text(let value)) where !value.isEmpty: self = .decimal(value)
    case (.string, .text(let value)): self = .string(value)
    case (.uri, .text(let value)): self = .uri(value)
    case (.uuid, .blob(let bytes)) where bytes.count == 16: self = .uuid(bytes)
    case (.binary, .blob(let bytes)), (.transformable, .blob(let bytes)):
      self = allowsExternalStorage ? Self.marked(bytes) : .data(bytes)
    default: self = .unexpected(stored)
    }
  }

  /// Reads a value with external storage: 1 and bytes, or 2, a file name and 0.
  private static func marked(_ bytes: [UInt8]) -> RecordValue {
    switch bytes.first {
    case 1: return .data(Array(bytes.dropFirst()))
    case 2 where bytes.count == 38 && bytes.last == 0:
      let name = bytes[1..<37]
      guard name.allSatisfy({ isHexDigitOrDash($0) }) else { return .unexpected(.blob(bytes)) }
      return .externalData(fileName: String(decoding: name, as: UTF8.self))
    default: return .unexpected(.blob(bytes))
    }
  }

  private static func isHexDigitOrDash(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
      UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

extension StoredValue {
  package init(_ value: DatabaseValue) {
    switch value.storage {
    case .null: self = .null
    case .int64(let number): self = .integer(number)
    case .double(let number): self = .real(number)
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob([UInt8](data))
    }
  }
}
