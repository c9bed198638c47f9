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
        // Keep the first error; no code reads a remaining folder.
        try? fileSystem.removeTree(folder)
        throw error
      }
    } catch {
      throw SupportBundleError.told(error, operation: Self.operation, path: path)
    }
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

struct UnpackedBag {
  let folder: FilePath
  let fileSystem: FileSystem
  private var files: [String: (bytes: Int64, sha256: String)] = [:]

  private static let operation = "check the bundle"
  private static let required = ["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"]

  init(folder: FilePath, fileSystem: FileSystem) {
    self.folder = folder
    self.fileSystem = fileSystem
  }

  mutating func add(_ name: String, bytes: Int64, sha256: String) { files[name] = (bytes, sha256) }

  /// Verifies every file against the manifest.
  func checked(_ path: FilePath, sha256: String, bytes: Int64, isEncrypted: Bool) throws -> ReceivedBundle {
    for name in Self.required where files[name] == nil { throw damaged(path, "it has no \(name)") }
    guard let declaration = BagTags(try content("bagit.txt")), declaration["BagIt-Version"] == "1.0" else {
      throw damaged(path, "bagit.txt does not say that it is a bag of version 1.0")
    }
    guard let info = BagTags(try content("bag-info.txt")), info["Lazaret-Bundle-Version"] == "1",
      let level = info["Lazaret-Level"].flatMap(BundleLevel.init(rawValue:))
    else {
      throw damaged(path, "bag-info.txt does not say what is in it, or a later version of this software wrote it")
    }
    guard let manifest = BagManifest(try content("manifest-sha256.txt")),
      let tagManifest = BagManifest(try content("tagmanifest-sha256.txt"))
    else { throw damaged(path, "a list of its files is damaged") }
    var listed = Set<String>()
    for (name, sum) in manifest.sums {
      guard name.hasPrefix("data/") else { throw damaged(path, "its list names a file that is not below data/") }
      guard let file = files[name] else { throw damaged(path, "a file of its list is missing") }
      guard file.sha256 == sum else { throw damaged(path, "a file is not the one that the list says") }
      listed.insert(name)
    }
    for (name, sum) in tagManifest.sums {
      guard !name.hasPrefix("data/"), files[name]?.sha256 == sum else {
        throw damaged(path, "a file that describes the bundle is missing or was altered")
      }
      listed.insert(name)
    }
    listed.insert("tagmanifest-sha256.txt")
    guard Self.required.allSatisfy(listed.contains), files.keys.allSatisfy(listed.contains) else {
      throw damaged(path, "it holds a file that is on no list")
    }
    let content = files.filter { $0.key.hasPrefix("data/") }
    let size = content.values.reduce(0) { $0 + $1.bytes }
    if let oxum = info["Payload-Oxum"], oxum != "\(size).\(content.count)" {
      throw damaged(path, "it does not hold as many bytes and files as it says")
    }
    return ReceivedBundle(
      folder: folder, level: level, app: info["Lazaret-App"], store: info["Lazaret-Store"] ?? "store",
      date: info["Lazaret-Date"].flatMap(Timestamp.init), identifier: info["External-Identifier"] ?? "",
      isEncrypted: isEncrypted, sha256: sha256, bytes: bytes,
      files: content.map { ReceivedBundle.File(name: String($0.key.dropFirst(5)), bytes: $0.value.bytes) }
        .ordered { $0.name < $1.name })
  }

  private func content(_ name: String) throws -> [UInt8] {
    guard let file = files[name], file.bytes <= BagManifest.lengthLimit else {
      throw ArchiveError(.tooLarge, "a file that describes the bundle is too large")
    }
    return try fileSystem.contents(of: folder.appending(name), limit: BagManifest.lengthLimit)
  }

  private func damaged(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.bundleDamaged, operation: Self.operation, path: path, detail: detail)
  }
}

/// The lines of `bagit.txt` and `bag-info.txt`: a label, a colon, a value.
///
/// Source: RFC 8493, sections 2.1.1 and 2.2.2.
package struct BagTags: Sendable, Hashable {
  package static let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

  package private(set) var pairs: [(label: String, value: String)] = []

  package init() {}

  /// Adds a line, filtering its characters.
  package mutating func add(_ label: String, _ value: String) {
    pairs.append((label, String(value.map { $0.isNewline ? " " : $0 })))
  }

  /// The first value of a label, case-insensitive.
  package subscript(_ label: String) -> String? {
    pairs.first { $0.label.lowercased() == label.lowercased() }?.value
  }

  package var text: String { pairs.map { "\($0.label): \($0.value)\n" }.joined() }

  /// Parses tags; nil if malformed.
  ///
  /// White space at the start continues the previous line.
  package init?(_ bytes: [UInt8]) {
    guard let text = String(utf8: bytes) else { return nil }
    for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
      if line.first?.isWhitespace == true, !pairs.isEmpty {
        pairs[pairs.count - 1].value += " " + String(line.drop(while: \.isWhitespace))
        continue
      }
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { return nil }
      pairs.append((String(line[..<colon]), String(line[colon...].dropFirst().drop(while: \.isWhitespace))))
    }
  }

  package static func == (left: BagTags, right: BagTags) -> Bool { left.text == right.text }

  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
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
    guard let file = files.first(where: { $0.name.hasPrefix("store/") && $0.name.hasSuffix(".sqlite") }) else {
      return nil
    }
    return folder.appending("data").pushing(FilePath(file.name))
  }

  /// Encodes everything except the folder.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "identifier": identifier, "level": level, "app": app, "store": store, "date": date, "encrypted": isEncrypted,
      "sha256": sha256, "bytes": bytes, "files": files,
    ])
  }
}
