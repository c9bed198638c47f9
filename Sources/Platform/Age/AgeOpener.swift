/// Decrypts an age file piece by piece, binary or armoured; every chunk returned is authenticated.
///
/// The content is known to be complete only after ``finish()``.
public struct AgeOpener: Sendable {
  private enum Stage {
    case beginning
    case header
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
  public mutating func open(_ bytes: some Collection<UInt8>) throws(AgeError) -> [UInt8] {
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
  /// - Throws: ``AgeError`` if the file is truncated.
  public consuming func finish() throws(AgeError) -> [UInt8] {
    var opened: [UInt8] = []
    if case .beginning = stage { opened = try begin() }
    try armor?.finish()
    guard case .payload(var payload) = stage else { throw AgeError(.header, "the file ends within its header") }
    guard let last = payload.open(waiting[...], isLast: true), !last.isEmpty || payload.chunks == 1 else {
      throw AgeError(.payload, "the content is cut off or was altered in its last part")
    }
    return opened + last
  }

  private mutating func begin() throws(AgeError) -> [UInt8] {
    let first = waiting
    waiting = []
    stage = .header
    if ArmorReader.isArmor(first) || first.first.map({ $0 <= 0x20 }) == true { armor = ArmorReader() }
    return try take(first)
  }

  private mutating func take(_ bytes: some Collection<UInt8>) throws(AgeError) -> [UInt8] {
    if armor != nil {
      waiting += try armor?.read(bytes) ?? []
    } else {
      waiting += bytes
    }
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
        throw AgeError(.payload, "part \(payload.chunks + 1) of the content was altered or is out of its order")
      }
      opened += chunk
      position += length
    }
    waiting.removeFirst(position)
    stage = .payload(payload)
    return opened
  }
}
