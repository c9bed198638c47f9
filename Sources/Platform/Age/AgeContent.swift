import Foundation

/// Encrypts a stream to an age file, piece by piece.
public struct AgeSealer: Sendable {
  private var payload: AgePayload
  private var waiting: [UInt8] = []
  private var prologue: [UInt8]
  private var armor: ArmorWriter?

  /// Makes a sealer for recipients, each of whom can open the file.
  public init(to recipients: [AgeRecipient], armored: Bool = false) throws(FileError) {
    guard !recipients.isEmpty else { throw FileError(.ageRecipient, "no recipient is given") }
    guard recipients.count <= AgeHeader.stanzaLimit else {
      throw FileError(.ageHeaderTooLarge, "more than \(AgeHeader.stanzaLimit) recipients are given")
    }
    let fileKey = [UInt8].random(AgeHeader.fileKeyLength)
    let stanzas = try recipients.map { (recipient) throws(FileError) in try recipient.wrap(fileKey) }
    let nonce = [UInt8].random(AgePayload.nonceLength)
    let key = SymmetricKey(data: fileKey)
    payload = AgePayload(fileKey: key, nonce: nonce)
    prologue = AgeHeader(stanzas, fileKey: key).bytes + nonce
    armor = armored ? ArmorWriter() : nil
  }

  /// The prologue, before the first piece; not secret: a copy of it opens a file with a damaged one.
  public var beginning: [UInt8] { prologue }

  /// The future content, before the first piece, for reading it back.
  public var content: AgeContent { AgeContent(prologueLength: prologue.count, payload: payload) }

  /// Adds a piece and returns the finished bytes.
  public mutating func seal(_ bytes: some Collection<UInt8>) throws(FileError) -> [UInt8] {
    waiting += bytes
    var sealed = takePrologue()
    // A full chunk waits for more: only the last carries the flag.
    var position = 0
    while waiting.count - position > AgePayload.chunk {
      sealed += try payload.seal(waiting[position..<(position + AgePayload.chunk)], isLast: false)
      position += AgePayload.chunk
    }
    waiting.removeFirst(position)
    return armor?.write(sealed) ?? sealed
  }

  /// Returns the end of the file.
  public consuming func finish() throws(FileError) -> [UInt8] {
    let sealed = takePrologue() + (try payload.seal(waiting[...], isLast: true))
    guard var armor else { return sealed }
    return armor.write(sealed) + armor.finish()
  }

  private mutating func takePrologue() -> [UInt8] {
    defer { prologue = [] }
    return prologue
  }
}

/// Decrypts an age file piece by piece, binary or armoured; every chunk returned is authenticated.
///
/// The content is known to be complete only after ``finish()``.
public struct AgeOpener: Sendable {
  private enum Stage {
    case beginning, header
    case nonce(SymmetricKey)
    case payload(AgePayload)
  }

  private var stage = Stage.beginning
  private var waiting: [UInt8] = []
  private var armor: ArmorReader?
  private let identities: [AgeIdentity]

  /// Makes an opener that tries each identity.
  public init(with identities: [AgeIdentity]) { self.identities = identities }

  /// Whether the first bytes are those of an age file, binary or armoured.
  public static func isAge(_ bytes: some Collection<UInt8>) -> Bool {
    bytes.starts(with: (AgeHeader.version + "\n").utf8) || ArmorReader.isArmor(bytes)
  }

  /// Adds a piece of the file and returns the authenticated content.
  public mutating func open(_ bytes: some Collection<UInt8>) throws(FileError) -> [UInt8] {
    if case .beginning = stage {
      waiting += bytes
      // Enough to recognize armour after some white space.
      guard waiting.count >= 64 else { return [] }
      return try begin()
    }
    return try take(bytes)
  }

  /// Returns the rest of the content.
  ///
  /// - Throws: ``FileError`` if the file is truncated.
  public consuming func finish() throws(FileError) -> [UInt8] {
    var opened: [UInt8] = []
    if case .beginning = stage { opened = try begin() }
    try armor?.finish()
    guard case .payload(var payload) = stage else { throw FileError(.ageHeader, "the file ends within its header") }
    guard let last = payload.open(waiting[...], isLast: true), !last.isEmpty || payload.chunks == 1 else {
      throw FileError(.agePayload, "the content is cut off or was altered in its last part")
    }
    return opened + last
  }

  private mutating func begin() throws(FileError) -> [UInt8] {
    let first = waiting
    waiting = []
    stage = .header
    if ArmorReader.isArmor(first) || first.first.map({ $0 <= 0x20 }) == true { armor = ArmorReader() }
    return try take(first)
  }

  private mutating func take(_ bytes: some Collection<UInt8>) throws(FileError) -> [UInt8] {
    if armor != nil { waiting += try armor?.read(bytes) ?? [] } else { waiting += bytes }
    if case .header = stage {
      guard let (header, length) = try AgeHeader.read(waiting) else { return [] }
      stage = .nonce(try header.fileKey(with: identities))
      waiting.removeFirst(length)
    }
    if case .nonce(let fileKey) = stage {
      guard waiting.count >= AgePayload.nonceLength else { return [] }
      stage = .payload(AgePayload(fileKey: fileKey, nonce: Array(waiting.prefix(AgePayload.nonceLength))))
      waiting.removeFirst(AgePayload.nonceLength)
    }
    guard case .payload(var payload) = stage else { return [] }
    var opened: [UInt8] = []
    var position = 0
    let length = AgePayload.chunk + AgePayload.tag
    // A full chunk waits for more: it may be the last.
    while waiting.count - position > length {
      guard let chunk = payload.open(waiting[position..<(position + length)], isLast: false) else {
        throw FileError(.agePayload, "part \(payload.chunks + 1) of the content was altered or is out of its order")
      }
      opened += chunk
      position += length
    }
    waiting.removeFirst(position)
    stage = .payload(payload)
    return opened
  }
}

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
  public init?(beginning bytes: [UInt8], with identities: [AgeIdentity]) throws(FileError) {
    guard let (header, length) = try AgeHeader.read(bytes) else { return nil }
    prologueLength = length + AgePayload.nonceLength
    guard bytes.count >= prologueLength else { return nil }
    payload = AgePayload(fileKey: try header.fileKey(with: identities), nonce: Array(bytes[length..<prologueLength]))
  }

  /// Returns the prologue's length, without a key; nil if more bytes are needed.
  public static func prologueLength(beginning bytes: [UInt8]) throws(FileError) -> Int? {
    guard let (_, length) = try AgeHeader.read(bytes) else { return nil }
    return bytes.count >= length + AgePayload.nonceLength ? length + AgePayload.nonceLength : nil
  }

  /// Returns the length of the content, also of a truncated file.
  public static func length(sealed: Int64, prologue: Int) -> Int64 {
    let (full, rest) = max(0, sealed - Int64(prologue)).quotientAndRemainder(dividingBy: Int64(sealedChunkLength))
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
  func fileKey(with identities: [AgeIdentity]) throws(FileError) -> SymmetricKey {
    for stanza in stanzas {
      for identity in identities {
        guard let key = try identity.unwrap(stanza) else { continue }
        guard isValid(fileKey: key) else {
          throw FileError(.ageHeaderAltered, "the header was altered after it was written")
        }
        return key
      }
    }
    throw FileError(.ageNoIdentity, "none of the secret keys that were given opens it")
  }
}

/// The encrypted content: chunks of 64 KiB, each sealed with its number and a last-chunk flag.
///
/// Source: age specification, "Payload"; Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its
/// Nonce-Reuse Misuse-Resistance" (2015), STREAM.
struct AgePayload: Sendable {
  static let chunk = 64 << 10
  static let tag = 16
  static let nonceLength = 16

  private let key: SymmetricKey
  private var counter: UInt64 = 0

  init(fileKey: SymmetricKey, nonce: [UInt8]) {
    key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: fileKey, salt: nonce, info: Array("payload".utf8), outputByteCount: 32)
  }

  func at(_ chunk: UInt64) -> AgePayload {
    var copy = self
    copy.counter = chunk
    return copy
  }

  /// Decrypts the next chunk without authentication.
  ///
  /// ChaCha20 adds a key stream to the content; sealing zeros under the same number yields that stream.
  func unproven(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
    var copy = self
    guard let stream = try? copy.seal([UInt8](repeating: 0, count: bytes.count)[...], isLast: isLast) else {
      // Sealing zeros cannot fail; if it does, the chunk is lost.
      return [UInt8](repeating: 0, count: bytes.count)
    }
    return zip(bytes, stream).map { $0 ^ $1 }
  }

  var chunks: UInt64 { counter }

  mutating func seal(_ bytes: ArraySlice<UInt8>, isLast: Bool) throws(FileError) -> [UInt8] {
    do {
      let box = try ChaChaPoly.seal(bytes, using: key, nonce: nonce(isLast: isLast))
      counter += 1
      return Array(box.ciphertext) + Array(box.tag)
    } catch { throw FileError(.agePayload, "a part of the content could not be encrypted") }
  }

  /// Opens the next chunk; nil if its number or last-chunk flag is wrong.
  mutating func open(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> [UInt8]? {
    do {
      let box = try ChaChaPoly.SealedBox(
        nonce: nonce(isLast: isLast), ciphertext: bytes.dropLast(Self.tag), tag: bytes.suffix(Self.tag))
      let opened = try ChaChaPoly.open(box, using: key)
      counter += 1
      return Array(opened)
    } catch { return nil }
  }

  /// The chunk's number in eleven bytes, big-endian, then 1 for the last chunk.
  private func nonce(isLast: Bool) throws -> ChaChaPoly.Nonce {
    var bytes = [UInt8](repeating: 0, count: 12)
    for index in 0..<8 { bytes[3 + index] = UInt8(truncatingIfNeeded: counter >> UInt64(8 * (7 - index))) }
    bytes[11] = isLast ? 1 : 0
    return try ChaChaPoly.Nonce(data: bytes)
  }
}
