/// The value of an attribute, as a store holds it.
public enum RecordValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)

  /// A decimal number as text; one that the store holds as a binary number is written so that it reads back as the same.
  case decimal(String)
  case boolean(Bool)
  case string(String)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)

  /// The 16 bytes of a UUID.
  case uuid([UInt8])
  case uri(String)

  /// Bytes: binary data without its marker, or what a transformer made.
  case data([UInt8])

  /// Bytes in a file of that name in `.<store>_SUPPORT/_EXTERNAL_DATA/` (format section 3.7).
  case externalData(fileName: String)

  /// A value that is not of the attribute's type, as SQLite holds it.
  case unexpected(StoredValue)
}

/// A value as SQLite holds it.
public enum StoredValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}
