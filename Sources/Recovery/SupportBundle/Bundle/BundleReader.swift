public import AgeEncryption
public import Archives
public import StoreFiles
public import SystemPackage

/// Opens a bundle from anywhere: decrypts, unpacks and checks it, into a new folder.
///
/// A bundle is hostile: nothing is written outside of the folder, no link is made, no file gets a mode of the bundle's, and
/// no more is unpacked than the limits allow.
public struct BundleReader: Sendable {
  private static let operation = "open the bundle"
  private static let piece = 256 << 10

  private let surroundings: Surroundings
  private let identities: [AgeIdentity]
  private let limits: UnpackingLimits

  /// A reader.
  ///
  /// - Parameter identities: the secret keys to try where a bundle is encrypted.
  public init(
    identities: [AgeIdentity] = [], limits: UnpackingLimits = UnpackingLimits(), surroundings: Surroundings = .machine
  ) {
    self.identities = identities
    self.limits = limits
    self.surroundings = surroundings
  }

  /// Unpacks a bundle into a folder that does not exist yet, and checks every sum.
  ///
  /// - Parameter progress: called with the bytes read and those in all; false ends the reading.
  /// - Throws: ``SupportBundleError``; the folder is gone then.
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
        var position: Int64 = 0
        while position < file.count {
          let bytes = try file.bytes(at: position, length: Self.piece)
          guard !bytes.isEmpty else { break }
          position += Int64(bytes.count)
          digest.add(bytes)
          let packed = opener != nil ? try opener?.open(bytes) ?? [] : bytes
          try gzip.read(packed) { try unpacking.add($0) }
          guard progress(position, file.count) else { throw SupportBundleError.cancelled(Self.operation) }
        }
        if let opener {
          try gzip.read(try opener.finish()) { try unpacking.add($0) }
        }
        try gzip.finish()
        let bag = try unpacking.finish()
        let sum = digest.hexadecimal
        return try bag.checked(path, sha256: sum, bytes: file.count, isEncrypted: isEncrypted)
      } catch {
        // The first error is the one that counts; a folder that is left is not hidden and holds nothing unchecked
        // that anything reads.
        try? fileSystem.removeTree(folder)
        throw error
      }
    } catch {
      throw SupportBundleError.told(error, operation: Self.operation, path: path)
    }
  }

  /// Writes the files of an archive, and sums them up.
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

    /// Counts a file with the folders that it needs, before any of them is made.
    private mutating func count(_ parts: ArraySlice<String>) throws {
      files += 1
      var folder = ""
      for part in parts.dropLast() {
        folder += part + "/"
        made.insert(folder)
        guard files + made.count <= entries else { break }
      }
      guard files + made.count <= entries else {
        throw ArchiveError(.tooLarge, "it has more than \(entries) files and folders")
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
          throw ArchiveError(.name, "the archive holds more than one folder at its top")
        }
        root = entry.components[0]
        let parts = entry.components.dropFirst()
        guard !parts.isEmpty || entry.isFolder else {
          throw ArchiveError(.name, "a file lies outside of the bag's folder")
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
        bag.add(
          ended.name, bytes: ended.bytes,
          sha256: ended.digest.hexadecimal)
      }
    }
  }
}
