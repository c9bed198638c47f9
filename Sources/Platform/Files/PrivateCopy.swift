package import SystemPackage

/// A copy of a store in a private folder, for SQLite to open in the original's stead.
package struct PrivateCopy: ~Copyable {
  package let files: StoreFileSet

  private let folder: PrivateFolder

  /// Copies main file, log and journal, without the external data.
  ///
  /// - Parameters:
  ///   - original: the store, kept unchanged by the caller (with a read lock and a comparison).
  ///   - temporary: the parent of the private folder; the system's by default.
  /// - Throws: `no-space` with the missing bytes, or the error of copying.
  package init(
    of original: StoreFileSet, in temporary: FilePath? = nil, surroundings: Surroundings = .machine
  ) throws {
    let fileSystem = surroundings.fileSystem
    let members = try original.members(in: fileSystem)
      .filter { [.main, .wal, .journal].contains($0.part) && $0.status.kind == .regular }
    let folder = try PrivateFolder(
      in: temporary, needing: members.reduce(0) { $0 + $1.status.occupiedSize }, to: "copy the store to look at it",
      surroundings)
    let files = StoreFileSet(main: folder.path.appending("Store.sqlite"))
    for member in members { _ = try fileSystem.copy(member.path, to: files.path(of: member.part)) }
    self.folder = folder
    self.files = files
  }

  /// Removes the copy.
  package consuming func remove() {}
}

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
    fileSystem: FileSystem,
    now: @escaping @Sendable () -> Timestamp,
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
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return UniversalIdentifier(sixteen: bytes)
  }

  /// The text in upper case, as Core Data writes it.
  public var description: String { bytes.uuidText }
}
