/// The content of an age file that is not armoured, of which any part can be read.
///
/// Each chunk of 64 KiB is sealed under its number, so that one can be opened without those before it.
public struct AgeContent: Sendable {
  /// The bytes of a chunk before it is sealed; the last one may have fewer.
  public static let chunkLength = AgePayload.chunk

  /// The bytes of a sealed chunk.
  public static let sealedChunkLength = AgePayload.chunk + AgePayload.tag

  /// The most bytes that are needed of a file's beginning.
  public static let longestPrologue = AgeHeader.lengthLimit + AgePayload.nonceLength

  /// The bytes before the first chunk: the header and the nonce.
  public let prologueLength: Int

  private let payload: AgePayload

  init(prologueLength: Int, payload: AgePayload) {
    self.prologueLength = prologueLength
    self.payload = payload
  }

  /// The content of a file that begins so; nil where more bytes are needed.
  ///
  /// - Throws: `age-no-identity` where none of the keys opens it, or what is wrong with the header.
  public init?(beginning bytes: [UInt8], with identities: [AgeIdentity]) throws(AgeError) {
    guard let (header, length) = try AgeHeader.read(bytes), bytes.count >= length + AgePayload.nonceLength else {
      return nil
    }
    let nonce = Array(bytes[length..<(length + AgePayload.nonceLength)])
    prologueLength = length + AgePayload.nonceLength
    payload = AgePayload(fileKey: try header.fileKey(with: identities), nonce: nonce)
  }

  /// The bytes before the first chunk of a file that begins so, which no key is needed for; nil where more bytes are needed.
  public static func prologueLength(beginning bytes: [UInt8]) throws(AgeError) -> Int? {
    guard let (_, length) = try AgeHeader.read(bytes), bytes.count >= length + AgePayload.nonceLength else {
      return nil
    }
    return length + AgePayload.nonceLength
  }

  /// The bytes of the content of a file; of one that is cut off what is left of it.
  ///
  /// - Parameters:
  ///   - sealed: the bytes of the file.
  ///   - prologue: the bytes before the first chunk.
  public static func length(sealed: Int64, prologue: Int) -> Int64 {
    let body = max(0, sealed - Int64(prologue))
    let (full, rest) = body.quotientAndRemainder(dividingBy: Int64(sealedChunkLength))
    return full * Int64(chunkLength) + max(0, rest - Int64(AgePayload.tag))
  }

  /// A chunk, counted from 0; nil where it was altered, or is out of its place.
  public func open(chunk: UInt64, _ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8]? {
    guard bytes.count >= AgePayload.tag, bytes.count <= Self.sealedChunkLength else { return nil }
    var payload = payload.at(chunk)
    return payload.open(bytes, isLast: isLast)
  }

  /// A chunk that was altered, as far as its bytes are there: a byte that was altered gives another one, and those around it are
  /// what they were.
  ///
  /// Nothing says that they are what was sealed. Only for what is proven by a digest that was sealed elsewhere.
  public func openUnproven(chunk: UInt64, _ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
    payload.at(chunk).unproven(bytes.dropLast(AgePayload.tag).prefix(Self.chunkLength), isLast: isLast)
  }
}

extension AgeHeader {
  /// The key of the file, where one of the identities unwraps it.
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
