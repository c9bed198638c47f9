package import SystemPackage

/// A copy of a store in a private folder of its own, for SQLite to open where the original must not change.
package struct PrivateCopy: ~Copyable {
  /// The copied store.
  package let files: StoreFileSet

  private let folder: PrivateFolder

  /// Copies the parts that hold records: the main file, the log and the journal; large values in files stay where they are.
  ///
  /// - Parameters:
  ///   - original: the store; it is only read, and must not change meanwhile (the caller holds a reader's lock and compares).
  ///   - temporary: the folder to make the private one in; the system's own if nil.
  /// - Throws: `no-space` with the number of bytes that are lacking, or what copying throws.
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
}

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
