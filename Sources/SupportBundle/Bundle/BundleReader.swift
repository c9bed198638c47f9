public import Platform
public import SystemPackage

/// Decrypts, unpacks and checks a bundle of any origin into a new folder.
///
/// Bundles are untrusted: the reader writes only there, makes no links, ignores file modes, and limits the unpacked
/// size.
public struct BundleReader: Sendable {
  private static let operation = "open the bundle"
  private static let piece = 256 << 10

  private let surroundings: Surroundings
  private let identities: [AgeIdentity]
  private let limits: UnpackingLimits

  /// Creates a reader.
  ///
  /// - Parameter identities: the secret keys to try on an encrypted bundle.
  public init(
    identities: [AgeIdentity] = [], limits: UnpackingLimits = UnpackingLimits(), surroundings: Surroundings = .machine
  ) {
    self.identities = identities
    self.limits = limits
    self.surroundings = surroundings
  }

  /// Unpacks a bundle into a folder that must not exist, and verifies every checksum.
  ///
  /// - Parameter progress: called with the bytes read and the total; false cancels.
  /// - Throws: ``SupportBundleError``, after removing the folder.
  public func unpack(
    _ path: FilePath, into folder: FilePath,
    progress: @Sendable (_ done: Int64, _ total: Int64) -> Bool = { _, _ in true }
  ) throws(SupportBundleError) -> ReceivedBundle {
    let fileSystem = surroundings.fileSystem
    do {
      guard try fileSystem.status(of: folder, followingLinks: false) == nil else {
        throw FileError(.alreadyExists, operation: Self.operation, path: folder)
      }
      let file = try fileSystem.open(path)
      let first = try file.bytes(at: 0, length: 4096)
      let isEncrypted = AgeOpener.isAge(first)
      guard isEncrypted || GzipReader.isGzip(first) else {
        throw SupportBundleError(
          .bundleUnreadable, operation: Self.operation, path: path,
          detail: "it is neither packed with gzip nor encrypted with age")
      }
      if isEncrypted, identities.isEmpty {
        throw SupportBundleError(.keyNeeded, operation: Self.operation, path: path, detail: "it is encrypted")
      }
      try fileSystem.makeDirectory(folder, permissions: .ownerReadWriteExecute)
      do {
        var unpacking = try Unpacking(folder, fileSystem, limits)
        var opener = isEncrypted ? AgeOpener(with: identities) : nil
        var gzip = try GzipReader(limits: limits)
        var digest = RunningDigest()
        for position in stride(from: 0, to: file.count, by: Self.piece) {
          let bytes = try file.bytes(at: position, length: Self.piece)
          guard !bytes.isEmpty else { break }
          digest.add(bytes)
          try gzip.read(try opener?.open(bytes) ?? bytes) { try unpacking.add($0) }
          guard progress(position + Int64(bytes.count), file.count) else {
            throw SupportBundleError.cancelled(Self.operation)
          }
        }
        if let opener { try gzip.read(try opener.finish()) { try unpacking.add($0) } }
        try gzip.finish()
        let bag = try unpacking.finish()
        return try bag.checked(path, sha256: digest.hexadecimal, bytes: file.count, isEncrypted: isEncrypted)
      } catch {
        // Keep the first error; no code reads a remaining folder.
        try? fileSystem.removeTree(folder)
        throw error
      }
    } catch { throw SupportBundleError.told(error, operation: Self.operation, path: path) }
  }

  private struct Unpacking: ~Copyable {
    private var tar: TarReader
    private let folder: FilePath
    private let fileSystem: FileSystem
    private var root: String?
    private var current: Current?
    private var bag: UnpackedBag
    private var made: Set<String> = []
    private var files = 0
    private let entries: Int

    private struct Current: ~Copyable {
      var name: String
      var file: WritableFile
      var digest = RunningDigest()
      var bytes: Int64 = 0
    }

    init(_ folder: FilePath, _ fileSystem: FileSystem, _ limits: UnpackingLimits) throws {
      tar = TarReader(limits: limits)
      self.folder = folder
      self.fileSystem = fileSystem
      bag = UnpackedBag(folder: folder, fileSystem: fileSystem)
      entries = limits.entries
    }

    /// Counts a file and the folders it needs.
    private mutating func count(_ parts: ArraySlice<String>) throws {
      files += 1
      var folder = ""
      for part in parts.dropLast() where files + made.count <= entries {
        folder += part + "/"
        made.insert(folder)
      }
      guard files + made.count <= entries else {
        throw FileError(.archiveTooLarge, "it has more than \(entries) files and folders")
      }
    }

    mutating func add(_ bytes: ArraySlice<UInt8>) throws {
      var events: [TarReader.Event] = []
      try tar.read(bytes) { events.append($0) }
      for event in events { try take(event) }
    }

    consuming func finish() throws -> UnpackedBag {
      try tar.finish()
      return bag
    }

    private mutating func take(_ event: TarReader.Event) throws {
      switch event {
      case .entry(let entry):
        guard root == nil || root == entry.components[0] else {
          throw FileError(.archiveName, "the archive holds more than one folder at its top")
        }
        root = entry.components[0]
        let parts = entry.components.dropFirst()
        guard !parts.isEmpty || entry.isFolder else {
          throw FileError(.archiveName, "a file lies outside of the bag's folder")
        }
        guard !entry.isFolder else { return }
        try count(parts)
        var path = folder
        for part in parts.dropLast() { path.append(part) }
        if parts.count > 1 { try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute) }
        path.append(parts.last ?? "")
        current = Current(
          name: parts.joined(separator: "/"), file: try fileSystem.create(path, permissions: .ownerReadWrite))
      case .content(let bytes):
        current?.digest.add(bytes)
        current?.bytes += Int64(bytes.count)
        try current?.file.write(bytes)
      case .end:
        guard let ended = current.take() else { return }
        bag.files[ended.name] = (ended.bytes, ended.digest.hexadecimal)
      }
    }
  }
}

/// An unpacked bundle with verified files.
public struct ReceivedBundle: Sendable, Hashable, Encodable {
  /// The folder of the bag.
  public var folder: FilePath

  /// How much of the store is in it.
  public var level: BundleLevel

  /// The app according to the sender; untrusted.
  public var app: String?

  /// The store's name according to the sender; untrusted.
  public var store: String

  /// The creation date according to the sender.
  public var date: Timestamp?

  /// The sender's identifier.
  public var identifier: String

  /// Whether the bundle was encrypted.
  public var isEncrypted: Bool

  /// The SHA-256 of the bundle as received, in hexadecimal digits.
  public var sha256: String

  /// The size as received, in bytes.
  public var bytes: Int64

  /// The files below `data/`.
  public var files: [File]

  /// A file below `data/`.
  public struct File: Sendable, Hashable, Encodable {
    /// The path below `data/`.
    public var name: String

    /// The size in bytes.
    public var bytes: Int64
  }

  /// The path of the store's main file; nil if the level has none.
  public var storePath: FilePath? {
    files.first { $0.name.hasPrefix("store/") && $0.name.hasSuffix(".sqlite") }
      .map { folder.appending("data").pushing(FilePath($0.name)) }
  }

  /// All but ``folder``.
  private enum CodingKeys: String, CodingKey {
    case level, app, store, date, identifier, sha256, bytes, files
    case isEncrypted = "encrypted"
  }
}

/// The facts readable without unpacking a bundle, to ask for consent to send it.
public struct BundleLook: Sendable, Hashable {
  /// Whether the bundle is encrypted to certain keys.
  public var isEncrypted: Bool

  /// How much of the store is in it; nil if encrypted.
  public var level: BundleLevel?

  /// The size in bytes.
  public var bytes: Int64

  private static let operation = "look at the bundle"
  private static let limit: Int64 = 1 << 20

  /// Reads the beginning of a file.
  ///
  /// - Throws: ``SupportBundleError``: `bundle-unreadable`, or a file error.
  public init(at path: FilePath, in fileSystem: FileSystem) throws(SupportBundleError) {
    do {
      let file = try fileSystem.open(path)
      let first = try file.bytes(at: 0, length: 4096)
      bytes = file.count
      isEncrypted = AgeOpener.isAge(first)
      if isEncrypted { return }
      guard GzipReader.isGzip(first) else { throw Self.unreadable(path) }
      level = try Self.level(of: file)
      if level == nil { throw Self.unreadable(path) }
    } catch let error as SupportBundleError {
      throw error
    } catch let error as FileError where error.kind.subject == .archive {
      throw Self.unreadable(path)
    } catch {
      throw SupportBundleError.told(error, operation: Self.operation, path: path)
    }
  }

  private static func unreadable(_ path: FilePath) -> SupportBundleError {
    SupportBundleError(
      .bundleUnreadable, operation: operation, path: path, detail: "it is not a bundle that lazaret export wrote",
      hint: "Give the file that lazaret export wrote; nothing else is sent.")
  }

  /// Reads the level from `bag-info.txt`; nil if missing or unknown.
  private static func level(of file: ReadableFile) throws -> BundleLevel? {
    var gzip = try GzipReader(limits: UnpackingLimits(bytes: 64 << 20))
    var tar = TarReader()
    var info: [UInt8] = []
    var stage = Stage.before
    for position in stride(from: 0, to: min(file.count, limit), by: 16 << 10) where stage != .after {
      let packed = try file.bytes(at: position, length: 16 << 10)
      guard !packed.isEmpty else { break }
      try gzip.read(packed) { piece in
        guard stage != .after else { return }
        try tar.read(piece) { event in
          switch event {
          case .entry(let entry):
            if stage == .before, !entry.isFolder, entry.components.count == 2, entry.components[1] == "bag-info.txt" {
              stage = .within
            }
          case .content(let bytes):
            guard stage == .within else { return }
            guard info.count + bytes.count <= BagManifest.lengthLimit else {
              throw FileError(.archiveTooLarge, "a file that describes the bundle is too large")
            }
            info += bytes
          case .end: if stage == .within { stage = .after }
          }
        }
      }
    }
    guard stage == .after, let tags = BagTags(info), tags["Lazaret-Bundle-Version"] == "1" else { return nil }
    return tags["Lazaret-Level"].flatMap(BundleLevel.init(rawValue:))
  }

  private enum Stage { case before, within, after }
}
