/// An age header: the wrapped file key and a MAC.
///
/// Source: age specification, "Header".
struct AgeHeader: Sendable {
  static let version = "age-encryption.org/v1"
  static let fileKeyLength = 16

  /// The most bytes of a header: some thousand recipients.
  static let lengthLimit = 1 << 18

  /// The most stanzas: each costs a key agreement per identity.
  static let stanzaLimit = 1024

  var stanzas: [AgeStanza]
  var sum: [UInt8]

  private(set) var summed: [UInt8]

  var bytes: [UInt8] { summed + Array((" " + UnpaddedBase64.encode(sum) + "\n").utf8) }

  func isValid(fileKey: SymmetricKey) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(sum, authenticating: summed, using: Self.sumKey(fileKey))
  }

  private static func sumKey(_ fileKey: SymmetricKey) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(inputKeyMaterial: fileKey, salt: [UInt8](), info: Array("header".utf8), outputByteCount: 32)
  }

  // MARK: Reading

  /// Reads a header; nil if more bytes are needed.
  ///
  /// - Throws: as soon as the bytes cannot begin a header.
  static func read(_ bytes: [UInt8]) throws(FileError) -> (header: AgeHeader, length: Int)? {
    var reader = AgeHeaderReader(bytes)
    return try reader.read()
  }
}

extension AgeHeader {
  init(_ stanzas: [AgeStanza], fileKey: SymmetricKey) {
    let text = Array((Self.version + "\n" + stanzas.map(\.text).joined() + "---").utf8)
    let sum = Array(HMAC<SHA256>.authenticationCode(for: text, using: Self.sumKey(fileKey)))
    self.init(stanzas: stanzas, sum: sum, summed: text)
  }
}

package enum AgeHeaderText {
  /// Reads a header, for tests, and returns it as written; nil if more bytes are needed.
  package static func read(_ bytes: [UInt8]) throws(FileError) -> (text: [UInt8], length: Int)? {
    guard let (header, length) = try AgeHeader.read(bytes) else { return nil }
    let text = AgeHeader.version + "\n" + header.stanzas.map(\.text).joined() + "--- "
    return (Array((text + UnpaddedBase64.encode(header.sum) + "\n").utf8), length)
  }
}

/// The file key wrapped for one recipient.
///
/// Source: age specification, "Recipient stanza".
struct AgeStanza: Hashable, Sendable {
  var arguments: [String]

  var body: [UInt8]

  var text: String {
    var text = "-> " + arguments.joined(separator: " ") + "\n"
    var rest = Substring(UnpaddedBase64.encode(body))
    // A full line is always followed by another, if need be an empty one.
    while rest.utf8.count >= 64 {
      text += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return text + rest + "\n"
  }
}

/// Unpadded base64 (RFC 4648, section 3.2), canonical only.
enum UnpaddedBase64 {
  static func encode(_ bytes: [UInt8]) -> String { String(Base64.encode(bytes).prefix { $0 != "=" }) }

  /// Decodes canonical text; nil otherwise.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    guard !text.contains("=") else { return nil }
    return Base64.decode(text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
  }
}

struct AgeHeaderReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func read() throws(FileError) -> (header: AgeHeader, length: Int)? {
    guard let version = try nextLine() else {
      let expected = Array((AgeHeader.version + "\n").utf8)
      guard expected.starts(with: bytes.prefix(expected.count)) else { throw Self.notAge }
      return nil
    }
    guard version == AgeHeader.version else { throw Self.notAge }
    var stanzas: [AgeStanza] = []
    while true {
      let start = position
      guard let line = try nextLine() else { return nil }
      if line.hasPrefix("-> ") {
        guard stanzas.count < AgeHeader.stanzaLimit else {
          throw FileError(.ageHeaderTooLarge, "the header has more than \(AgeHeader.stanzaLimit) stanzas")
        }
        guard let stanza = try stanza(line.dropFirst(3)) else { return nil }
        stanzas.append(stanza)
      } else if line.hasPrefix("--- ") {
        guard !stanzas.isEmpty else { throw FileError(.ageHeader, "the header has no stanza") }
        guard let sum = UnpaddedBase64.decode(line.dropFirst(4)), sum.count == 32 else {
          throw FileError(.ageHeader, "the header's sum is not one of 32 bytes")
        }
        return (AgeHeader(stanzas: stanzas, sum: sum, summed: Array(bytes[..<(start + 3)])), position)
      } else {
        throw FileError(.ageHeader, "a line of the header is neither a stanza nor its end")
      }
    }
  }

  private static let notAge = FileError(.ageHeader, "it does not begin as an age file of version 1 does")

  private mutating func stanza(_ line: Substring) throws(FileError) -> AgeStanza? {
    let arguments = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard arguments.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (33...126).contains($0) } }) else {
      throw FileError(.ageHeader, "a stanza has an argument that is empty or not plain text")
    }
    var body: [UInt8] = []
    while true {
      guard let line = try nextLine() else { return nil }
      guard line.utf8.count <= 64, let part = UnpaddedBase64.decode(line) else {
        throw FileError(.ageHeader, "a stanza's body is not base64 in lines of 64 characters")
      }
      body += part
      if line.utf8.count < 64 { return AgeStanza(arguments: arguments, body: body) }
    }
  }

  /// Returns the next complete line.
  private mutating func nextLine() throws(FileError) -> String? {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard bytes.count <= AgeHeader.lengthLimit else { throw Self.tooLong }
      return nil
    }
    guard end < AgeHeader.lengthLimit else { throw Self.tooLong }
    let line = bytes[position..<end]
    guard line.allSatisfy({ (32...126).contains($0) }) else {
      throw FileError(.ageHeader, "the header has characters that are not plain text")
    }
    position = end + 1
    return String(decoding: line, as: UTF8.self)
  }

  private static let tooLong = FileError(.ageHeaderTooLarge, "the header is longer than \(AgeHeader.lengthLimit) bytes")
}
