public import Platform
public import SystemPackage

/// Writes a bundle: a BagIt bag in a gzipped tar archive, optionally encrypted.
///
/// The file is readable only by its owner, and gets its name once entirely on disk.
public struct BundleWriter: Sendable {
  /// The subject of a bundle, part of its name.
  public struct Subject: Sendable, Hashable {
    /// The app, such as `com.example.Garage`, if known.
    public var app: String?

    /// The store's name without extension.
    public var store: String

    /// The creation time.
    public var date: Timestamp

    /// Creates a subject.
    public init(app: String?, store: String, date: Timestamp) {
      self.app = app
      self.store = store
      self.date = date
    }
  }

  /// Receives the bytes done and the total; returns false to cancel.
  public typealias Progress = @Sendable (_ done: Int64, _ total: Int64) -> Bool

  private static let operation = "write the bundle"
  private static let piece = 1 << 20

  private let surroundings: Surroundings
  private let recipients: [AgeRecipient]
  private let isArmored: Bool

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - recipients: the keys to encrypt to; not encrypted if empty.
  ///   - isArmored: whether an encrypted bundle is text.
  public init(
    to recipients: [AgeRecipient] = [], armored isArmored: Bool = false, surroundings: Surroundings = .machine
  ) {
    self.recipients = recipients
    self.isArmored = isArmored
    self.surroundings = surroundings
  }

  /// Writes a bundle into a folder, named after its subject.
  ///
  /// - Throws: ``SupportBundleError``, leaving no file.
  public func write(
    _ items: [BundleItem], level: BundleLevel, subject: Subject, into folder: FilePath,
    progress: Progress = { _, _ in true }
  ) throws(SupportBundleError) -> BundleSummary {
    try write(items, level, subject, progress, at: folder) { bag in
      folder.appending("\(bag.name).lazaret.tar.gz" + (recipients.isEmpty ? "" : ".age"))
    }
  }

  /// Writes a bundle under a free name.
  ///
  /// - Throws: ``SupportBundleError``, leaving no file.
  public func write(
    _ items: [BundleItem], level: BundleLevel, subject: Subject, to path: FilePath,
    progress: Progress = { _, _ in true }
  ) throws(SupportBundleError) -> BundleSummary { try write(items, level, subject, progress, at: path) { _ in path } }

  private func write(
    _ items: [BundleItem], _ level: BundleLevel, _ subject: Subject, _ progress: Progress, at place: FilePath,
    named path: (Bag) -> FilePath
  ) throws(SupportBundleError) -> BundleSummary {
    do {
      let bag = try bag(of: items, level: level, subject: subject, progress: progress)
      return try write(bag, to: path(bag), level: level, progress: progress)
    } catch { throw SupportBundleError.told(error, operation: Self.operation, path: place) }
  }

  // MARK: The bag

  private struct Bag {
    var name: String
    /// The tag files and the content, in order.
    var files: [(item: BundleItem, sum: String)]
    var date: Timestamp
    var size: Int64 { files.reduce(0) { $0 + $1.item.size } }
  }

  private func bag(of items: [BundleItem], level: BundleLevel, subject: Subject, progress: Progress) throws -> Bag {
    let size = items.reduce(0) { $0 + $1.size }
    var (manifest, content, done) = (BagManifest(), [(item: BundleItem, sum: String)](), Int64(0))
    for item in items.sorted(by: { $0.name < $1.name }) {
      var digest = RunningDigest()
      try read(item) { bytes in
        digest.add(bytes)
        done += Int64(bytes.count)
        guard progress(done / 2, size) else { throw SupportBundleError.cancelled(Self.operation) }
      }
      let sum = digest.hexadecimal
      manifest.add("data/\(item.name)", sha256: sum)
      content.append((BundleItem("data/\(item.name)", item.content, words: item.words), sum))
    }
    let list = Array(manifest.text.utf8)
    let name = Self.prefix(of: subject) + FileDigest(of: list).hexadecimal.prefix(8)

    var info = BagTags()
    info.add("Bagging-Software", "lazaret \(LibraryVersion.current)")
    info.add("Bagging-Date", String(subject.date.rfc3339.prefix(10)))
    info.add("Payload-Oxum", "\(size).\(items.count)")
    info.add("External-Identifier", name)
    info.add("Lazaret-Bundle-Version", "1")
    info.add("Lazaret-Level", level.rawValue)
    info.add("Lazaret-Date", subject.date.rfc3339)
    if let app = subject.app { info.add("Lazaret-App", app) }
    info.add("Lazaret-Store", subject.store)
    var (tags, tagManifest) = ([(item: BundleItem, sum: String)](), BagManifest())
    func tag(_ name: String, _ bytes: [UInt8], _ words: String) {
      let sum = FileDigest(of: bytes).hexadecimal
      tags.append((BundleItem(name, .bytes(bytes), words: words), sum))
      tagManifest.add(name, sha256: sum)
    }
    tag("bag-info.txt", Array(info.text.utf8), "what the bundle is about")
    tag("bagit.txt", Array(BagTags.declaration.utf8), "that it is a BagIt bag")
    tag("manifest-sha256.txt", list, "the sum of each file")
    tag("tagmanifest-sha256.txt", Array(tagManifest.text.utf8), "the sums of those before")
    return Bag(name: name, files: tags + content, date: subject.date)
  }

  /// Returns a lower level for large bundles, where packing takes longer than it saves in transfer.
  static func packingLevel(_ bytes: Int64) -> Int { bytes > 128 << 20 ? 2 : 6 }

  /// Keeps the first characters, if portable in file names.
  static func portable(_ text: String) -> String {
    String(
      text.unicodeScalars.prefix(60).map { scalar in
        scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789._-".unicodeScalars.contains(scalar))
          ? Character(scalar) : "_"
      })
  }

  /// Returns the common name prefix of a subject.
  static func prefix(of subject: Subject) -> String {
    [subject.app, subject.store, subject.date.fileName].compactMap { $0 }.map { plain($0) + "-" }.joined()
  }

  private static func plain(_ text: String) -> String {
    let name = portable(text)
    return name.isEmpty || name.hasPrefix(".") ? "_" + name : name
  }

  // MARK: The file

  private func write(_ bag: Bag, to path: FilePath, level: BundleLevel, progress: Progress) throws -> BundleSummary {
    let fileSystem = surroundings.fileSystem
    let unfinished = path.hiddenSibling(suffix: ".unfinished")
    guard try fileSystem.status(of: path, followingLinks: false) == nil else {
      throw FileError(.alreadyExists, operation: Self.operation, path: path)
    }
    try fileSystem.unlink(unfinished)
    let file = try fileSystem.create(unfinished, permissions: .ownerReadWrite)
    do {
      var output = Output(
        gzip: try GzipWriter(level: Self.packingLevel(bag.size)),
        sealer: recipients.isEmpty ? nil : try AgeSealer(to: recipients, armored: isArmored), file: file)
      var tar = TarWriter(secondsSince1970: bag.date.secondsSince1970)
      var done: Int64 = 0
      for (item, _) in bag.files {
        try output.add(try tar.begin("\(bag.name)/\(item.name)", size: item.size))
        try read(item) { bytes in
          try output.add(try tar.write(bytes))
          done += Int64(bytes.count)
          guard progress((bag.size + done) / 2, bag.size) else { throw SupportBundleError.cancelled(Self.operation) }
        }
        if item.size == 0 { try output.add(try tar.write([])) }
      }
      try output.add(try tar.finish())
      let (bytes, sum) = try output.finish()
      try fileSystem.install(unfinished, at: path, replacing: false)
      return BundleSummary(
        path: PathText(path), bytes: bytes, sha256: sum, level: level, recipients: recipients.map(\.description),
        items: bag.files.map { .init(name: $0.item.name, bytes: $0.item.size, sha256: $0.sum) })
    } catch {
      // Keep the first error; hidden remains are removed next time.
      try? fileSystem.unlink(unfinished)
      throw error
    }
  }

  /// Reads an item in pieces; a file must have its given length.
  private func read(_ item: BundleItem, visit: ([UInt8]) throws -> Void) throws {
    switch item.content {
    case .bytes(let bytes): if !bytes.isEmpty { try visit(bytes) }
    case .file(let path, let size):
      let file = try surroundings.fileSystem.open(path)
      var position: Int64 = 0
      while position < size {
        let bytes = try file.bytes(at: position, length: Int(min(Int64(Self.piece), size - position)))
        guard !bytes.isEmpty else { break }
        try visit(bytes)
        position += Int64(bytes.count)
      }
      guard position == size, file.count == size else {
        throw FileError(.changed, operation: Self.operation, path: path)
      }
    }
  }

  private struct Output: ~Copyable {
    var gzip: GzipWriter
    var sealer: AgeSealer?
    var file: WritableFile
    var digest = RunningDigest()
    var bytes: Int64 = 0

    mutating func add(_ content: [UInt8]) throws { try write(try gzip.write(content)) }

    private mutating func write(_ packed: [UInt8]) throws {
      if !packed.isEmpty { try put(try sealer?.seal(packed) ?? packed) }
    }

    private mutating func put(_ content: [UInt8]) throws {
      guard !content.isEmpty else { return }
      digest.add(content)
      bytes += Int64(content.count)
      try file.write(content)
    }

    mutating func finish() throws -> (bytes: Int64, sha256: String) {
      try write(try gzip.finish())
      if let sealer { try put(try sealer.finish()) }
      try file.synchronize()
      return (bytes, digest.hexadecimal)
    }
  }
}

/// A written bundle; only this file is sent.
public struct BundleSummary: Sendable, Hashable, Codable {
  /// The path.
  public var path: PathText

  /// The size in bytes.
  public var bytes: Int64

  /// The hexadecimal SHA-256 of the file.
  public var sha256: String

  /// How much of the store is in it.
  public var level: BundleLevel

  /// The public keys of the recipients; empty if not encrypted.
  public var recipients: [String]

  /// The files within.
  public var items: [Item]

  /// A file in a bundle.
  public struct Item: Sendable, Hashable, Codable {
    /// The path in the bag.
    public var name: String

    /// The size in bytes, unpacked.
    public var bytes: Int64

    /// The hexadecimal SHA-256.
    public var sha256: String
  }
}

/// A file for a bundle.
public struct BundleItem: Sendable {
  /// The source of its bytes.
  public enum Content: Sendable {
    case bytes([UInt8])

    /// A file that stays unchanged.
    case file(FilePath, size: Int64)
  }

  /// The path below `data/`, with slashes.
  public var name: String

  /// The source of its bytes.
  public var content: Content

  /// The description for consent.
  public var words: String

  /// Creates a file for a bundle.
  public init(_ name: String, _ content: Content, words: String) {
    self.name = name
    self.content = content
    self.words = words
  }

  /// The size in bytes.
  public var size: Int64 {
    switch content {
    case .bytes(let bytes): Int64(bytes.count)
    case .file(_, let size): size
    }
  }
}
