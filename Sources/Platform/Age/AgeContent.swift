/// Random access to the content of a binary age file.
///
/// Each chunk of 64 KiB is sealed under its own number and opens alone.
public struct AgeContent: Sendable {
  /// The bytes of a plain chunk; the last may be shorter.
  public static let chunkLength = AgePayload.chunk

  /// The bytes of a sealed chunk.
  public static let sealedChunkLength = AgePayload.chunk + AgePayload.tag

  /// The longest prologue in bytes.
  public static let longestPrologue = AgeHeader.lengthLimit + AgePayload.nonceLength

  /// The bytes before the first chunk: header and nonce.
  public let prologueLength: Int

  private let payload: AgePayload

  init(prologueLength: Int, payload: AgePayload) {
    self.prologueLength = prologueLength
    self.payload = payload
  }

  /// Reads a file's prologue; nil if more bytes are needed.
  ///
  /// - Throws: `age-no-identity`, or the header's error.
  public init?(beginning bytes: [UInt8], with identities: [AgeIdentity]) throws(AgeError) {
    guard let (header, length) = try AgeHeader.read(bytes), bytes.count >= length + AgePayload.nonceLength else {
      return nil
    }
    let nonce = Array(bytes[length..<(length + AgePayload.nonceLength)])
    prologueLength = length + AgePayload.nonceLength
    payload = AgePayload(fileKey: try header.fileKey(with: identities), nonce: nonce)
  }

  /// Returns the prologue's length, without a key; nil if more bytes are needed.
  public static func prologueLength(beginning bytes: [UInt8]) throws(AgeError) -> Int? {
    guard let (_, length) = try AgeHeader.read(bytes), bytes.count >= length + AgePayload.nonceLength else {
      return nil
    }
    return length + AgePayload.nonceLength
  }

  /// Returns the length of the content, also of a truncated file.
  public static func length(sealed: Int64, prologue: Int) -> Int64 {
    let body = max(0, sealed - Int64(prologue))
    let (full, rest) = body.quotientAndRemainder(dividingBy: Int64(sealedChunkLength))
    return full * Int64(chunkLength) + max(0, rest - Int64(AgePayload.tag))
  }

  /// Opens a chunk, counted from 0; nil if it was altered or misplaced.
  public func open(chunk: UInt64, _ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8]? {
    guard bytes.count >= AgePayload.tag, bytes.count <= Self.sealedChunkLength else { return nil }
    var payload = payload.at(chunk)
    return payload.open(bytes, isLast: isLast)
  }

  /// Decrypts a chunk without authentication; only the altered bytes differ.
  ///
  /// Use it only for content that a digest sealed elsewhere confirms.
  public func openUnproven(chunk: UInt64, _ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
    payload.at(chunk).unproven(bytes.dropLast(AgePayload.tag).prefix(Self.chunkLength), isLast: isLast)
  }
}

extension AgeHeader {
  func fileKey(with identities: [AgeIdentity]) throws(AgeError) -> SymmetricKey {
    for stanza in stanzas {
      for identity in identities {
        guard let key = try identity.unwrap(stanza) else { continue }
        guard isValid(fileKey: key) else {
          throw AgeError(.headerAltered, "the header was altered after it was written")
        }
        return key
      }
    }
    throw AgeError(.noIdentity, "none of the secret keys that were given opens it")
  }
}
