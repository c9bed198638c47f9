/// What a run takes from outside: the file system, the clock and randomness.
///
/// Passed in everywhere, so that the same input gives the same bytes and no test has to wait.
public struct Surroundings: Sendable {
  /// The file system.
  public var fileSystem: FileSystem

  /// The clock.
  public var now: @Sendable () -> Timestamp

  /// Where new identifiers come from.
  public var makeUUID: @Sendable () -> UniversalIdentifier

  /// Puts surroundings together.
  public init(
    fileSystem: FileSystem,
    now: @escaping @Sendable () -> Timestamp,
    makeUUID: @escaping @Sendable () -> UniversalIdentifier
  ) {
    self.fileSystem = fileSystem
    self.now = now
    self.makeUUID = makeUUID
  }

  /// The machine's own.
  public static let machine = Surroundings(
    fileSystem: FileSystem(), now: { SystemCalls.now() }, makeUUID: { UniversalIdentifier.random() })
}

/// A UUID (RFC 9562) as its 16 bytes.
public struct UniversalIdentifier: Sendable, Hashable, CustomStringConvertible {
  /// Always 16.
  public let bytes: [UInt8]

  /// The identifier of those bytes; nil unless there are 16.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  private init(sixteen bytes: [UInt8]) { self.bytes = bytes }

  /// A random identifier, version 4.
  public static func random() -> UniversalIdentifier {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// A random identifier, version 4, from a generator of the caller's.
  public static func random(using generator: inout some RandomNumberGenerator) -> UniversalIdentifier {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return UniversalIdentifier(sixteen: bytes)
  }

  /// The usual text in upper case, as Core Data writes it.
  public var description: String { bytes.uuidText }
}
