/// A value that is bound to a statement; never a part of its text.
enum PostgresValue {
  case null

  /// Text that is compared or is a name; a NUL in it is an error, since PostgreSQL keeps none.
  case text(String)

  case maybe(String?)

  /// Text that is only shown or searched, as a sender or a bundle says it: a NUL in it becomes U+FFFD.
  case shown(String?)

  case integer(Int64)
  case bytes([UInt8])

  /// A list of texts, for `= ANY` and `unnest`.
  case texts([String])

  /// The bytes as the server reads them, and whether that is its binary form; nil for null.
  ///
  /// - Throws: where a text has a NUL.
  func encoded() throws(PostgresFailure) -> (bytes: [UInt8], isBinary: Bool)? {
    switch self {
    case .null, .maybe(nil), .shown(nil): return nil
    case .text(let text), .maybe(let text?): return (try Self.checked(text), true)
    case .shown(let text?): return (text.utf8.contains(0) ? Self.withoutNUL(text) : Array(text.utf8), true)
    case .integer(let number): return (Array("\(number)".utf8) + [0], false)
    case .bytes(let bytes): return (bytes, true)
    case .texts(let texts):
      var array: [UInt8] = [UInt8(ascii: "{")]
      for (index, text) in texts.enumerated() {
        if index > 0 { array.append(UInt8(ascii: ",")) }
        array.append(UInt8(ascii: "\""))
        for byte in try Self.checked(text) {
          if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { array.append(UInt8(ascii: "\\")) }
          array.append(byte)
        }
        array.append(UInt8(ascii: "\""))
      }
      return (array + [UInt8(ascii: "}"), 0], false)
    }
  }

  private static func checked(_ text: String) throws(PostgresFailure) -> [UInt8] {
    let bytes = Array(text.utf8)
    guard !bytes.contains(0) else { throw PostgresFailure(.badText) }
    return bytes
  }

  private static func withoutNUL(_ text: String) -> [UInt8] {
    text.utf8.flatMap { $0 == 0 ? [0xef, 0xbf, 0xbd] : [$0] }
  }
}
