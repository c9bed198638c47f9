public import SystemPackage

/// A path in JSON: readable text, and the exact bytes of invalid UTF-8.
public struct PathText: Sendable, Hashable, Codable {
  /// The path, with invalid UTF-8 replaced.
  public var text: String

  /// The bytes in hexadecimal digits, if `text` is inexact.
  public var bytes: String?

  /// Makes the text of a path.
  public init(_ path: FilePath) {
    text = path.string
    if FilePath(text) != path { bytes = path.rawBytes.hexadecimal }
  }

  /// The path; nil if `bytes` is malformed.
  public var path: FilePath? {
    guard let bytes else { return FilePath(text) }
    return [UInt8](hexadecimal: bytes).flatMap { FilePath(rawBytes: $0) }
  }

  // In JSON a plain string where possible.
  /// Reads a plain string, or text and bytes.
  public init(from decoder: any Decoder) throws {
    if let text = try? String(from: decoder) {
      self.text = text
      return
    }
    let values = try decoder.container(keyedBy: CodingKeys.self)
    text = try values.decode(String.self, forKey: .text)
    bytes = try values.decodeIfPresent(String.self, forKey: .bytes)
  }

  /// Writes a plain string where possible.
  public func encode(to encoder: any Encoder) throws {
    guard let bytes else { return try text.encode(to: encoder) }
    try encoder.encode(["text": text, "bytes": bytes])
  }

  private enum CodingKeys: String, CodingKey { case text, bytes }
}

extension FilePath {
  package var rawBytes: [UInt8] { unsafe withPlatformString { unsafe nullTerminatedBytes($0) } }

  /// Makes a path; nil if the bytes hold a zero.
  package init?(rawBytes: [UInt8]) {
    guard !rawBytes.contains(0), let path = unsafe withNullTerminated(rawBytes, { unsafe FilePath(platformString: $0) })
    else { return nil }
    self = path
  }

  /// Makes the path relative to a folder; both are absolute.
  package func relative(to folder: FilePath) -> FilePath {
    let (from, to) = (Array(folder.components), Array(components))
    let common = zip(from, to).prefix { $0 == $1 }.count
    var relative = FilePath()
    for _ in from.dropFirst(common) { relative.append("..") }
    relative.append(to.dropFirst(common))
    return relative
  }

  package var leadsOutside: Bool { isAbsolute || components.first?.kind == .parentDirectory }

  package func ends(withAll other: FilePath) -> Bool {
    let (own, theirs) = (Array(components), Array(other.components))
    return !theirs.isEmpty && own.count >= theirs.count && Array(own.suffix(theirs.count)) == theirs
  }

  /// The folder of the file; the current one for a bare name.
  public var folder: FilePath {
    let parent = removingLastComponent()
    return parent.isEmpty ? "." : parent
  }

  /// Appends to the name, shortened if too long.
  ///
  /// Only for our own files; SQLite's have exactly the store's name before their suffix.
  public func sibling(suffix: String) -> FilePath { renamed(prefix: "", suffix: suffix) }

  /// Prepends a dot and appends to the name, shortened if too long.
  public func hiddenSibling(suffix: String) -> FilePath { renamed(prefix: ".", suffix: suffix) }

  private func renamed(prefix: String, suffix: String) -> FilePath {
    guard let name = lastComponent else { return self }
    return folder.appending(name.fitted(prefix: prefix, suffix: suffix))
  }
}

/// Returns the bytes up to the first zero.
package func nullTerminatedBytes(_ start: UnsafePointer<CChar>) -> [UInt8] {
  var bytes: [UInt8] = []
  while unsafe start[bytes.count] != 0 { unsafe bytes.append(UInt8(bitPattern: start[bytes.count])) }
  return bytes
}

private func withNullTerminated<Value>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> Value?) -> Value? {
  let characters = bytes.map { CChar(bitPattern: $0) } + [0]
  return unsafe characters.withUnsafeBufferPointer { unsafe $0.baseAddress.flatMap { unsafe body($0) } }
}

/// Quotes a path for a terminal; control characters and invalid UTF-8 become visible.
public func quoted(_ path: FilePath) -> String { "\"\(printable(path.string))\"" }

/// Quotes a path for a shell where needed.
///
/// Control characters become octal escapes in `$'…'`, which bash, zsh and the POSIX shell of 2024 read.
package func shellQuoted(_ path: FilePath) -> String {
  // A leading dash would make it an option.
  let path =
    path.components.first?.string.hasPrefix("-") == true && path.root == nil ? FilePath(".").pushing(path) : path
  let bytes = path.rawBytes
  if !bytes.isEmpty, bytes.allSatisfy({ $0.isOfWord || $0 == UInt8(ascii: "/") }) { return path.string }
  let text = path.string
  if FilePath(text) == path, printable(text) == text {
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
  var result = "$'"
  for byte in bytes {
    if byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "'"), byte != UInt8(ascii: "\\") {
      result.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      result += "\\" + zeroPadded(String(byte, radix: 8), to: 3)
    }
  }
  return result + "'"
}

extension FileSystem {
  /// Resolves links in the existing part of an absolute path.
  package func resolved(_ path: FilePath) throws(FileError) -> FilePath {
    var (there, rest) = (path, [FilePath.Component]())
    while true {
      if there.isEmpty { there = "." }
      if try status(of: there) != nil { return try realPath(there).appending(rest).lexicallyNormalized() }
      guard let last = there.lastComponent else { return path.lexicallyNormalized() }
      rest.insert(last, at: 0)
      there.removeLastComponent()
    }
  }
}

extension FilePath.Component {
  /// Adds to the name's bytes, which may be invalid UTF-8.
  func wrapped(prefix: String, suffix: String) -> FilePath.Component {
    FilePath.Component(platformBytes: Array(prefix.utf8) + platformBytes + Array(suffix.utf8)) ?? self
  }

  /// The longest file name in bytes.
  static let longest = 255

  /// The longest derived name: SQLite can append its own suffixes.
  static let longestMade = 240

  var isTooLong: Bool { platformBytes.count > Self.longest }

  /// Adds within the length limit.
  ///
  /// If the name is too long, 16 digits of its digest replace its end.
  package func fitted(prefix: String = "", suffix: String) -> FilePath.Component {
    let bytes = platformBytes
    let added = prefix.utf8.count + suffix.utf8.count
    guard bytes.count + added > Self.longestMade else { return wrapped(prefix: prefix, suffix: suffix) }
    let digest = "~" + FileDigest(of: bytes).hexadecimal.prefix(16)
    var kept = bytes.prefix(max(1, Self.longestMade - added - digest.utf8.count))
    // Do not cut a UTF-8 character in two.
    while kept.count > 1, bytes[kept.count] & 0xc0 == 0x80 { kept.removeLast() }
    let name = Array(prefix.utf8) + kept + Array((digest + suffix).utf8)
    return FilePath.Component(platformBytes: name) ?? self
  }

  package var platformBytes: [UInt8] { unsafe withPlatformString { unsafe nullTerminatedBytes($0) } }

  package init?(platformBytes: [UInt8]) {
    guard !platformBytes.isEmpty, !platformBytes.contains(0), !platformBytes.contains(UInt8(ascii: "/")),
      let component = unsafe withNullTerminated(platformBytes, { unsafe FilePath.Component(platformString: $0) })
    else { return nil }
    self = component
  }
}
