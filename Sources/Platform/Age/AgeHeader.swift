import Foundation

/// The header of an age file: for whom its key is wrapped, and a sum under that key.
///
/// Source: age specification, "Header".
struct AgeHeader: Sendable {
  static let version = "age-encryption.org/v1"
  static let fileKeyLength = 16

  /// The most bytes of a header that is read: some thousand recipients.
  static let lengthLimit = 1 << 18

  /// The most stanzas: each costs a key agreement for each identity.
  static let stanzaLimit = 1024

  var stanzas: [AgeStanza]
  var sum: [UInt8]

  /// The bytes that the sum is of.
  private(set) var summed: [UInt8]

  /// A header for a file's key.
  init(_ stanzas: [AgeStanza], fileKey: SymmetricKey) {
    self.stanzas = stanzas
    summed = Array((Self.version + "\n" + stanzas.map(\.text).joined() + "---").utf8)
    sum = Self.sum(of: summed, fileKey: fileKey)
  }

  var bytes: [UInt8] { summed + Array((" " + UnpaddedBase64.encode(sum) + "\n").utf8) }

  /// Whether the header is unaltered, as the holder of the file's key can tell.
  func isValid(fileKey: SymmetricKey) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(sum, authenticating: summed, using: Self.sumKey(fileKey))
  }

  private static func sum(of bytes: [UInt8], fileKey: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: bytes, using: sumKey(fileKey)))
  }

  private static func sumKey(_ fileKey: SymmetricKey) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: fileKey, salt: [UInt8](), info: Array("header".utf8), outputByteCount: 32)
  }

  // MARK: Reading

  /// The header at the beginning of bytes and its length; nil where more bytes are needed.
  ///
  /// - Throws: as soon as the bytes cannot be the beginning of a header.
  static func read(_ bytes: [UInt8]) throws(AgeError) -> (header: AgeHeader, length: Int)? {
    var reader = AgeHeaderReader(bytes)
    return try reader.read()
  }

  /// A header as it was read.
  init(stanzas: [AgeStanza], sum: [UInt8], summed: [UInt8]) {
    self.stanzas = stanzas
    self.sum = sum
    self.summed = summed
  }
}

/// The text of headers, for tests that compare the reader with the writer.
package enum AgeHeaderText {
  /// The header at the beginning of bytes, as it would be written, and how many bytes it was read from; nil where more are needed.
  package static func read(_ bytes: [UInt8]) throws(AgeError) -> (text: [UInt8], length: Int)? {
    guard let (header, length) = try AgeHeader.read(bytes) else { return nil }
    let text = AgeHeader.version + "\n" + header.stanzas.map(\.text).joined() + "--- "
    return (Array((text + UnpaddedBase64.encode(header.sum) + "\n").utf8), length)
  }
}

/// A part of a header: the file's key wrapped for one recipient.
///
/// Source: age specification, "Recipient stanza".
struct AgeStanza: Hashable, Sendable {
  /// The recipient's type, and what it needs to know.
  var arguments: [String]

  var body: [UInt8]

  /// The lines as they stand in the header.
  var text: String {
    var text = "-> " + arguments.joined(separator: " ") + "\n"
    var rest = Substring(UnpaddedBase64.encode(body))
    // A line of full length is always followed by another, if need be by an empty one.
    while rest.utf8.count >= 64 {
      text += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return text + rest + "\n"
  }
}

/// Base64 without padding (RFC 4648, section 3.2), in its one canonical spelling.
enum UnpaddedBase64 {
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let padded = Data(bytes).base64EncodedString()
    return String(padded.prefix { $0 != "=" })
  }

  /// The bytes of a text; nil where it is padded, has other characters, or bits set that stand for nothing.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let text = String(text)
    guard !text.contains("="),
      let data = Data(base64Encoded: text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
    else { return nil }
    let bytes = [UInt8](data)
    return encode(bytes) == text ? bytes : nil
  }
}

/// Reads a header line by line, in its one canonical form.
struct AgeHeaderReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func read() throws(AgeError) -> (header: AgeHeader, length: Int)? {
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
          throw AgeError(.headerTooLarge, "the header has more than \(AgeHeader.stanzaLimit) stanzas")
        }
        guard let stanza = try stanza(line.dropFirst(3)) else { return nil }
        stanzas.append(stanza)
      } else if line.hasPrefix("--- ") {
        guard !stanzas.isEmpty else { throw AgeError(.header, "the header has no stanza") }
        guard let sum = UnpaddedBase64.decode(line.dropFirst(4)), sum.count == 32 else {
          throw AgeError(.header, "the header's sum is not one of 32 bytes")
        }
        let header = AgeHeader(stanzas: stanzas, sum: sum, summed: Array(bytes[..<(start + 3)]))
        return (header, position)
      } else {
        throw AgeError(.header, "a line of the header is neither a stanza nor its end")
      }
    }
  }

  private static let notAge = AgeError(.header, "it does not begin as an age file of version 1 does")

  private mutating func stanza(_ line: Substring) throws(AgeError) -> AgeStanza? {
    let arguments = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard arguments.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (33...126).contains($0) } }) else {
      throw AgeError(.header, "a stanza has an argument that is empty or not plain text")
    }
    var body: [UInt8] = []
    while true {
      guard let line = try nextLine() else { return nil }
      guard line.utf8.count <= 64, let part = UnpaddedBase64.decode(line) else {
        throw AgeError(.header, "a stanza's body is not base64 in lines of 64 characters")
      }
      body += part
      if line.utf8.count < 64 { return AgeStanza(arguments: arguments, body: body) }
    }
  }

  /// The next line without its end; nil where it is not whole.
  private mutating func nextLine() throws(AgeError) -> String? {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard bytes.count <= AgeHeader.lengthLimit else { throw Self.tooLong }
      return nil
    }
    guard end < AgeHeader.lengthLimit else { throw Self.tooLong }
    let line = bytes[position..<end]
    guard line.allSatisfy({ (32...126).contains($0) }) else {
      throw AgeError(.header, "the header has characters that are not plain text")
    }
    position = end + 1
    return String(decoding: line, as: UTF8.self)
  }

  private static let tooLong = AgeError(
    .headerTooLarge, "the header is longer than \(AgeHeader.lengthLimit) bytes")
}

/// Something that is no age file, or none that can be opened or made.
///
/// The detail never holds anything of what was encrypted, nor of a secret key.
public typealias AgeError = Failure<AgeErrorKind>

/// Why something is no age file, or none that can be opened or made.
public enum AgeErrorKind: String, FailureKind {
  /// A recipient (`age1…`) is none.
  case recipient = "age-recipient"

  /// An identity (`AGE-SECRET-KEY-1…`) is none.
  case identity = "age-identity"

  /// The header is not that of an age file.
  case header = "age-header"

  /// The header is longer, or has more stanzas, than any real one.
  case headerTooLarge = "age-header-too-large"

  /// No identity that was given opens the file.
  case noIdentity = "age-no-identity"

  /// The header was altered after it was written.
  case headerAltered = "age-header-altered"

  /// The content was altered, or is cut off.
  case payload = "age-payload"

  /// The armour around the file is damaged.
  case armor = "age-armor"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "use the age encryption"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .recipient: "Give the public key that begins with age1, as the vendor published it."
    case .identity: "Give the file with the secret key, as it was written when the key was made."
    case .header, .armor: "Check that the whole file arrived, and that it is one that was encrypted with age."
    case .headerTooLarge: "Encrypt it to fewer recipients."
    case .noIdentity: "Give the secret key that belongs to one of the recipients it was encrypted to."
    case .headerAltered, .payload: "Ask for the file again: what arrived is not what was sent."
    }
  }
}

extension AgeError {
  /// An error in the usual words but for what is wrong, a sentence without its full stop.
  init(_ kind: Kind, _ detail: String) { self.init(kind, detail: detail) }
}
