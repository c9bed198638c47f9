/// Writes a reproducible tar archive (POSIX.1-1988 `ustar`), piece by piece.
///
/// Owner and time are omitted or constant, so that equal files give equal archives.
public struct TarWriter: Sendable {
  private var left: Int64 = 0
  private var padding = 0
  private let seconds: Int64

  /// Makes a writer with one time for all files, in seconds since 1970.
  public init(secondsSince1970 seconds: Int64) { self.seconds = max(0, min(seconds, 0o7_7777_7777_77)) }

  /// Returns the header of the next file, of `size` bytes.
  ///
  /// - Throws: `archive-name` if the name is too long for a header or ``TarReader`` rejects it.
  public mutating func begin(_ name: String, size: Int64) throws(ArchiveError) -> [UInt8] {
    precondition(left == 0, "the file before is not whole")
    _ = try ArchiveName.components(Array(name.utf8))
    guard size >= 0 else { throw ArchiveError(.tar, "a file has a negative size") }
    left = size
    padding = Int((512 - size % 512) % 512)
    guard let (prefix, own) = Self.split(name) else {
      return try extended(path: name, size: size)
    }
    guard size < 1 << 33 else { return try extended(path: name, size: size) }
    return Self.header(name: own, prefix: prefix, size: size, type: "0", seconds: seconds)
  }

  /// Returns the next bytes of the file, with the padding after the last.
  public mutating func write(_ bytes: [UInt8]) throws(ArchiveError) -> [UInt8] {
    guard Int64(bytes.count) <= left else { throw ArchiveError(.tar, "a file is longer than was said") }
    left -= Int64(bytes.count)
    guard left == 0, padding > 0 else { return bytes }
    defer { padding = 0 }
    return bytes + [UInt8](repeating: 0, count: padding)
  }

  /// Returns the end of the archive.
  public consuming func finish() throws(ArchiveError) -> [UInt8] {
    guard left == 0 else { throw ArchiveError(.cutOff, "a file is shorter than was said") }
    return [UInt8](repeating: 0, count: 1024)
  }

  private func extended(path: String, size: Int64) throws(ArchiveError) -> [UInt8] {
    var records = Self.record("path", path.utf8)
    if size >= 1 << 33 { records += Self.record("size", String(size).utf8) }
    let padding = [UInt8](repeating: 0, count: (512 - records.count % 512) % 512)
    let short = Array(path.utf8.suffix(100))
    return Self.header(
      name: Array("PaxHeader".utf8), size: Int64(records.count), type: "x", seconds: seconds)
      + records + padding
      + Self.header(name: short, size: size < 1 << 33 ? size : 0, type: "0", seconds: seconds)
  }

  /// Makes a record of an extended header: length in decimal, space, key, `=`, value, newline.
  package static func record(_ key: String, _ value: some Sequence<UInt8>) -> [UInt8] {
    let rest = Array(" \(key)=".utf8) + value + [UInt8(ascii: "\n")]
    var length = rest.count + 1
    while String(length).utf8.count + rest.count != length { length = String(length).utf8.count + rest.count }
    return Array(String(length).utf8) + rest
  }

  /// Splits a name into prefix (up to 155 bytes) and name (up to 100).
  private static func split(_ name: String) -> (prefix: [UInt8], name: [UInt8])? {
    let bytes = Array(name.utf8)
    if bytes.count <= 100 { return ([], bytes) }
    for index in bytes.indices where bytes[index] == UInt8(ascii: "/") && index > 0 && index <= 155 {
      let own = bytes[(index + 1)...]
      if !own.isEmpty, own.count <= 100 { return (Array(bytes[..<index]), Array(own)) }
    }
    return nil
  }

  package static func header(
    name: [UInt8], prefix: [UInt8] = [], size: Int64, type: Character, seconds: Int64
  ) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: 512)
    func put(_ bytes: some Collection<UInt8>, at offset: Int) {
      header.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
    }
    func octal(_ value: Int64, digits: Int) -> [UInt8] {
      let text = String(max(0, value), radix: 8)
      return Array((String(repeating: "0", count: max(0, digits - text.utf8.count)) + text).utf8)
    }
    put(name, at: 0)
    put(octal(0o600, digits: 7), at: 100)
    put(octal(0, digits: 7), at: 108)
    put(octal(0, digits: 7), at: 116)
    put(octal(size, digits: 11), at: 124)
    put(octal(seconds, digits: 11), at: 136)
    put([UInt8](repeating: 32, count: 8), at: 148)
    header[156] = type.asciiValue ?? 48
    put(Array("ustar".utf8) + [0] + Array("00".utf8), at: 257)
    put(prefix, at: 345)
    let sum = header.reduce(Int64(0)) { $0 + Int64($1) }
    put(octal(sum, digits: 6) + [0, 32], at: 148)
    return header
  }
}
