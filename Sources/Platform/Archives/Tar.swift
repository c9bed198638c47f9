import Foundation

/// Reads a tar archive (POSIX.1-1988 `ustar`, with POSIX.1-2001 extended headers) piece by piece, hardened against
/// hostile ones.
///
/// Links, devices and sparse files are errors.
public struct TarReader: Sendable {
  /// A step of reading.
  public enum Event: Sendable {
    case entry(TarEntry)

    case content(ArraySlice<UInt8>)

    case end
  }

  private enum Stage {
    case header
    case content(left: Int64, padding: Int)
    case extended(left: Int, padding: Int)
    case padding(left: Int)
    case ended
  }

  private static let block = 512
  private static let extendedLimit = 64 << 10

  private var stage = Stage.header
  private var waiting: [UInt8] = []
  private var zeros = 0
  private var extended = PaxRecords()
  private var names: Set<String> = []
  private var total: Int64 = 0
  private let limits: UnpackingLimits

  /// Makes a reader.
  public init(limits: UnpackingLimits = UnpackingLimits()) { self.limits = limits }

  /// Adds a piece of the archive.
  public mutating func read(_ bytes: ArraySlice<UInt8>, visit: (Event) throws -> Void) throws {
    var bytes = bytes
    while !bytes.isEmpty {
      switch stage {
      case .header:
        guard fill(to: Self.block, from: &bytes) else { return }
        let header = waiting
        waiting = []
        try begin(header, visit)
      case .content(let left, let padding):
        let part = bytes.prefix(Int(min(left, Int64(bytes.count))))
        bytes = bytes.dropFirst(part.count)
        try visit(.content(part))
        if left > Int64(part.count) {
          stage = .content(left: left - Int64(part.count), padding: padding)
        } else {
          try visit(.end)
          stage = padding > 0 ? .padding(left: padding) : .header
        }
      case .extended(let left, let padding):
        guard fill(to: left, from: &bytes) else { return }
        extended = try PaxRecords(waiting)
        waiting = []
        stage = padding > 0 ? .padding(left: padding) : .header
      case .padding(let left):
        let count = min(left, bytes.count)
        bytes = bytes.dropFirst(count)
        stage = left > count ? .padding(left: left - count) : .header
      case .ended:
        guard bytes.allSatisfy({ $0 == 0 }) else {
          throw FileError(.tarDamaged, "something follows the end of the archive")
        }
        return
      }
    }
  }

  /// Checks that the archive is complete.
  public consuming func finish() throws(FileError) {
    guard case .ended = stage else { throw FileError(.archiveCutOff, "the archive ends too early") }
  }

  private mutating func fill(to count: Int, from bytes: inout ArraySlice<UInt8>) -> Bool {
    let part = bytes.prefix(count - waiting.count)
    waiting += part
    bytes = bytes.dropFirst(part.count)
    return waiting.count == count
  }

  private mutating func begin(_ bytes: [UInt8], _ visit: (Event) throws -> Void) throws {
    guard bytes.contains(where: { $0 != 0 }) else {
      // Two zero blocks end the archive.
      zeros += 1
      if zeros == 2 { stage = .ended }
      return
    }
    guard zeros == 0 else { throw FileError(.tarDamaged, "a header follows a block of zeros") }
    let header = try TarHeader(bytes)
    let padding = Int((512 - header.size % 512) % 512)
    if header.type == UInt8(ascii: "x") {
      guard extended.isEmpty, header.size > 0, header.size <= Self.extendedLimit else {
        throw FileError(.tarDamaged, "an extended header is doubled, empty or too large")
      }
      stage = .extended(left: Int(header.size), padding: padding)
      return
    }
    let entry = try entry(header)
    stage = entry.size > 0 ? .content(left: entry.size, padding: Int((512 - entry.size % 512) % 512)) : .header
    try visit(.entry(entry))
    if entry.size == 0, !entry.isFolder { try visit(.end) }
  }

  private mutating func entry(_ header: TarHeader) throws(FileError) -> TarEntry {
    let isFolder = header.type == UInt8(ascii: "5")
    guard isFolder || header.type == UInt8(ascii: "0") || header.type == 0 else {
      throw FileError(.archiveNotAFile, "an entry is a link, a device or of a kind that no bundle has")
    }
    let components = try ArchiveName.components(extended.path ?? header.name)
    let size = extended.size ?? header.size
    extended = PaxRecords()
    guard !isFolder || size == 0 else { throw FileError(.tarDamaged, "a folder has content") }
    total += size
    guard total <= limits.bytes else {
      throw FileError(.archiveTooLarge, "its files have more than \(limits.bytes) bytes")
    }
    guard names.count < limits.entries else {
      throw FileError(.archiveTooLarge, "it has more than \(limits.entries) files")
    }
    let name = ArchiveName.folded(components.joined(separator: "/"))
    guard names.insert(name).inserted else {
      throw FileError(.archiveNameDoubled, "two entries have the same name, or names that differ in case only")
    }
    return TarEntry(components: components, size: size, isFolder: isFolder)
  }
}

/// A file or folder of an archive, its name checked.
public struct TarEntry: Sendable, Hashable {
  /// The components of its name, at least one.
  public var components: [String]

  /// The bytes of its content; 0 for a folder.
  public var size: Int64

  /// Whether it is a folder.
  public var isFolder: Bool

  /// Its name, with slashes.
  public var name: String { components.joined(separator: "/") }
}

struct TarHeader {
  var name: [UInt8]
  var size: Int64
  var type: UInt8

  init(_ bytes: [UInt8]) throws(FileError) {
    guard bytes.count == 512, bytes[257..<262].elementsEqual("ustar".utf8) else {
      throw FileError(.tarDamaged, "a header is not one of a POSIX archive")
    }
    let sum = bytes.enumerated().reduce(0) { $0 + ((148..<156).contains($1.offset) ? 32 : Int64($1.element)) }
    guard Self.octal(bytes[148..<156]) == sum else { throw FileError(.tarDamaged, "the sum of a header is wrong") }
    guard let size = Self.octal(bytes[124..<136]) else { throw FileError(.tarDamaged, "a header says no size") }
    self.size = size
    type = bytes[156]
    let prefix = Array(bytes[345..<500].prefix { $0 != 0 })
    let own = Array(bytes[0..<100].prefix { $0 != 0 })
    name = prefix.isEmpty ? own : prefix + [UInt8(ascii: "/")] + own
  }

  /// Parses an octal number between spaces or NULs; nil otherwise, also for GNU's binary form.
  private static func octal(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let digits = bytes.drop { $0 == 32 }.prefix { (48...55).contains($0) }
    guard !digits.isEmpty, bytes[digits.endIndex...].allSatisfy({ $0 == 32 || $0 == 0 }) else { return nil }
    return digits.reduce(Int64(0)) { $0 << 3 | Int64($1 - 48) }
  }
}

/// The names accepted from an archive: relative and unambiguous on every system.
enum ArchiveName {
  /// Splits a name; a trailing slash is dropped.
  ///
  /// - Throws: `archive-name` for absolute names, dot segments, backslashes, control characters, components over 255
  ///   bytes, over 16 components (the result must be easy to remove), Windows device names and invalid UTF-8.
  static func components(_ bytes: [UInt8]) throws(FileError) -> [String] {
    guard let name = String(utf8: bytes) else { throw FileError(.archiveName, "a name is not UTF-8") }
    var parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    if parts.count > 1, parts.last == "" { parts.removeLast() }
    if parts.count > 1, parts.first == "." { parts.removeFirst() }
    guard parts.count <= 16 else { throw FileError(.archiveName, "a name has more than 16 parts") }
    for part in parts {
      guard !part.isEmpty, part != ".", part != "..", part.utf8.count <= 255 else { throw refusal(name) }
      let isPlain = part.unicodeScalars.allSatisfy { scalar in
        scalar.value >= 0x20 && scalar.value != 0x7f && scalar != "\\" && scalar != ":"
          && scalar.properties.generalCategory != .format && scalar.properties.generalCategory != .control
      }
      guard isPlain, part.last != ".", part.last != " " else { throw refusal(name) }
    }
    return parts
  }

  /// Folds a name for comparison, as case-insensitive and normalizing file systems do.
  static func folded(_ name: String) -> String { name.precomposedStringWithCanonicalMapping.lowercased() }

  private static func refusal(_ name: String) -> FileError {
    let shown = String(name.unicodeScalars.prefix(80).map { $0.isASCII && $0.value >= 0x20 ? Character($0) : "?" })
    return FileError(.archiveName, "the name \"\(shown)\" is not one that a bundle has")
  }
}

/// The fields of an extended header (POSIX.1-2001, "pax Extended Header").
struct PaxRecords: Sendable {
  private(set) var path: [UInt8]?
  private(set) var size: Int64?

  init() {}

  var isEmpty: Bool { path == nil && size == nil }

  /// Parses records, each: length, space, key, `=`, value, newline.
  init(_ bytes: [UInt8]) throws(FileError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let digits = rest.prefix { (48...57).contains($0) }
      guard (1...6).contains(digits.count) else { throw Self.damaged }
      let length = digits.reduce(0) { $0 * 10 + Int($1 - 48) }
      guard length > digits.count + 2, length <= rest.count else { throw Self.damaged }
      let record = rest.prefix(length).dropFirst(digits.count)
      rest = rest.dropFirst(length)
      guard record.first == UInt8(ascii: " "), record.last == UInt8(ascii: "\n"),
        let sign = record.firstIndex(of: UInt8(ascii: "="))
      else { throw Self.damaged }
      let key = String(decoding: record[(record.startIndex + 1)..<sign], as: UTF8.self)
      let value = record[(sign + 1)...].dropLast()
      switch key {
      case "path":
        guard path == nil, !value.contains(0) else { throw Self.damaged }
        path = Array(value)
      case "size":
        guard size == nil, let number = Int64(String(decoding: value, as: UTF8.self)), number >= 0 else {
          throw Self.damaged
        }
        size = number
      case "linkpath", "SCHILY.realsize", "GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.name":
        throw FileError(.archiveNotAFile, "an entry is a link or a sparse file")
      default: break
      }
    }
  }

  private static let damaged = FileError(.tarDamaged, "an extended header is damaged")
}

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
  public mutating func begin(_ name: String, size: Int64) throws(FileError) -> [UInt8] {
    precondition(left == 0, "the file before is not whole")
    _ = try ArchiveName.components(Array(name.utf8))
    guard size >= 0 else { throw FileError(.tarDamaged, "a file has a negative size") }
    left = size
    padding = Int((512 - size % 512) % 512)
    guard let (prefix, own) = Self.split(name), size < 1 << 33 else { return try extended(path: name, size: size) }
    return Self.header(name: own, prefix: prefix, size: size, type: "0", seconds: seconds)
  }

  /// Returns the next bytes of the file, with the padding after the last.
  public mutating func write(_ bytes: [UInt8]) throws(FileError) -> [UInt8] {
    guard Int64(bytes.count) <= left else { throw FileError(.tarDamaged, "a file is longer than was said") }
    left -= Int64(bytes.count)
    guard left == 0, padding > 0 else { return bytes }
    defer { padding = 0 }
    return bytes + [UInt8](repeating: 0, count: padding)
  }

  /// Returns the end of the archive.
  public consuming func finish() throws(FileError) -> [UInt8] {
    guard left == 0 else { throw FileError(.archiveCutOff, "a file is shorter than was said") }
    return [UInt8](repeating: 0, count: 1024)
  }

  private func extended(path: String, size: Int64) throws(FileError) -> [UInt8] {
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
      Array(zeroPadded(String(max(0, value), radix: 8), to: digits).utf8)
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
