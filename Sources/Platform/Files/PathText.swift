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
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self.text = text
      return
    }
    let values = try decoder.container(keyedBy: CodingKeys.self)
    text = try values.decode(String.self, forKey: .text)
    bytes = try values.decodeIfPresent(String.self, forKey: .bytes)
  }

  /// Writes a plain string where possible.
  public func encode(to encoder: any Encoder) throws {
    if bytes == nil {
      var container = encoder.singleValueContainer()
      try container.encode(text)
    } else {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(text, forKey: .text)
      try container.encode(bytes, forKey: .bytes)
    }
  }

  private enum CodingKeys: String, CodingKey {
    case text
    case bytes
  }
}

extension FilePath {
  package var rawBytes: [UInt8] {
    unsafe withPlatformString { start in
      var bytes: [UInt8] = []
      while unsafe start[bytes.count] != 0 { unsafe bytes.append(UInt8(bitPattern: start[bytes.count])) }
      return bytes
    }
  }

  /// Makes a path; nil if the bytes hold a zero.
  fileprivate init?(rawBytes: [UInt8]) {
    guard !rawBytes.contains(0) else { return nil }
    let characters = rawBytes.map { CChar(bitPattern: $0) } + [0]
    let path = unsafe characters.withUnsafeBufferPointer { buffer -> FilePath? in
      guard let start = buffer.baseAddress else { return nil }
      return unsafe FilePath(platformString: start)
    }
    guard let path else { return nil }
    self = path
  }
}
