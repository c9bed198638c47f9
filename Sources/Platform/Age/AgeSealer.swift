/// Encrypts a stream to an age file, piece by piece.
public struct AgeSealer: Sendable {
  private var payload: AgePayload
  private var waiting: [UInt8] = []
  private var prologue: [UInt8]
  private var armor: ArmorWriter?

  /// Makes a sealer for recipients, each of whom can open the file.
  public init(to recipients: [AgeRecipient], armored: Bool = false) throws(AgeError) {
    guard !recipients.isEmpty else { throw AgeError(.recipient, "no recipient is given") }
    guard recipients.count <= AgeHeader.stanzaLimit else {
      throw AgeError(.headerTooLarge, "more than \(AgeHeader.stanzaLimit) recipients are given")
    }
    let fileKey = Self.random(AgeHeader.fileKeyLength)
    var stanzas: [AgeStanza] = []
    for recipient in recipients { stanzas.append(try recipient.wrap(fileKey)) }
    let nonce = Self.random(AgePayload.nonceLength)
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
  public mutating func seal(_ bytes: some Collection<UInt8>) throws(AgeError) -> [UInt8] {
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
  public consuming func finish() throws(AgeError) -> [UInt8] {
    let sealed = takePrologue() + (try payload.seal(waiting[...], isLast: true))
    guard var armor else { return sealed }
    return armor.write(sealed) + armor.finish()
  }

  private static func random(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  private mutating func takePrologue() -> [UInt8] {
    defer { prologue = [] }
    return prologue
  }
}
