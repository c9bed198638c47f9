import Foundation

/// The environment of a run: file system, clock and randomness.
///
/// Injected, so that equal input gives equal bytes and tests need not wait.
public struct Surroundings: Sendable {
  /// The file system.
  public var fileSystem: FileSystem

  /// The clock.
  public var now: @Sendable () -> Timestamp

  /// The source of new identifiers.
  public var makeUUID: @Sendable () -> UniversalIdentifier

  /// Makes an environment.
  public init(
    fileSystem: FileSystem, now: @escaping @Sendable () -> Timestamp,
    makeUUID: @escaping @Sendable () -> UniversalIdentifier
  ) {
    self.fileSystem = fileSystem
    self.now = now
    self.makeUUID = makeUUID
  }

  /// The machine's environment.
  public static let machine = Surroundings(
    fileSystem: FileSystem(), now: { SystemCalls.now() }, makeUUID: { UniversalIdentifier.random() })
}

/// A UUID (RFC 9562) as its 16 bytes.
public struct UniversalIdentifier: Sendable, Hashable, CustomStringConvertible {
  /// The 16 bytes.
  public let bytes: [UInt8]

  /// Makes an identifier; nil unless there are 16 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  private init(sixteen bytes: [UInt8]) { self.bytes = bytes }

  /// Makes a random identifier, version 4.
  public static func random() -> UniversalIdentifier {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Makes a random identifier, version 4, from a given generator.
  public static func random(using generator: inout some RandomNumberGenerator) -> UniversalIdentifier {
    var bytes = [UInt8].random(16, using: &generator)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return UniversalIdentifier(sixteen: bytes)
  }

  /// The text in upper case, as Core Data writes it.
  public var description: String { bytes.uuidText }
}

extension [UInt8] {
  /// Returns bytes of the system's generator, which are fit for secrets.
  static func random(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return random(count, using: &generator)
  }

  fileprivate static func random(_ count: Int, using generator: inout some RandomNumberGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }
}

/// A deterministic random number generator (SplitMix64), not for secrets.
///
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= Self.step
    return state.mixed
  }

  package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15
}

extension UInt64 {
  /// The bits mixed as in SplitMix64; injective.
  @inlinable @inline(__always) package var mixed: UInt64 {
    var mixed = self
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// The software versions noted in receipts and manifests.
public struct SoftwareVersions: Sendable, Hashable, Codable {
  /// The app's version, given by the caller.
  public var app: String?

  /// This library's version.
  public var library: String

  /// The SQLite of this process.
  public var sqlite: String?

  /// The SQLite that last wrote the store, by its header.
  public var storeWrittenBySQLite: String?

  /// The operating system.
  public var operatingSystem: String

  /// Collects the versions.
  public init(
    app: String? = nil, library: String, sqlite: String? = nil, storeWrittenBySQLite: String? = nil,
    operatingSystem: String
  ) {
    self.app = app
    self.library = library
    self.sqlite = sqlite
    self.storeWrittenBySQLite = storeWrittenBySQLite
    self.operatingSystem = operatingSystem
  }
}

/// The version of this library and of the system.
public enum LibraryVersion {
  /// The semantic version; written into every receipt and report.
  public static let current = "0.1.0"

  package static var operatingSystem: String {
    #if os(Linux)
      "Linux, \(ProcessInfo.processInfo.operatingSystemVersionString)"
    #else
      ProcessInfo.processInfo.operatingSystemVersionString
    #endif
  }
}
