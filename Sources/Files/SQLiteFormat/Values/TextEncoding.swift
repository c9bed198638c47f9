/// The encoding of all text in a database (header offset 56).
public enum TextEncoding: UInt32, Sendable, Hashable {
  /// UTF-8, as in every Core Data store.
  case utf8 = 1

  /// UTF-16, little-endian.
  case utf16LittleEndian = 2

  /// UTF-16, big-endian.
  case utf16BigEndian = 3
}
