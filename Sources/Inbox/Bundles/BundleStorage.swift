package import Platform
package import SystemPackage

/// The storage of received bundles and their results.
///
/// The records list the bundles; a storage holds their bytes. Calls are idempotent and thread-safe.
package protocol BundleStorage: Sendable {
  /// Whether other machines share it; otherwise it is the home.
  var isShared: Bool { get }

  /// The workers' home; with shared storage each attempt has its own in it.
  var workHome: FilePath { get }

  var uses: BundleUses { get }

  // MARK: Bundles

  /// Stores a local file durably.
  func keep(_ bundle: InboxBundle, from path: FilePath) throws

  /// Notes that the records know a bundle, so its local file is only a copy.
  func release(_ bundle: InboxBundle) throws

  /// Returns the received file on this machine.
  ///
  /// - Throws: `bundle-missing`; `bundle-altered` if the bytes differ.
  func received(_ bundle: InboxBundle) throws -> FilePath

  /// Puts a bundle's results into its local folder.
  func place(_ bundle: InboxBundle) throws

  /// Removes a bundle, if any, with its results.
  func remove(_ id: String) throws

  /// A sentence unless removed bytes are known to be gone.
  func keepingWords(at date: Timestamp) throws -> String?

  /// Removes a bundle's results from the home; shared storage keeps them until the bundle is removed.
  func removeResults(of id: String) throws

  // MARK: Work

  func result(of making: BundleMaking) throws -> StoredResult?

  /// Fetches a job's input.
  ///
  /// - Parameter goesOn: polled; false cancels.
  /// - Returns: false if cancelled.
  func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool

  /// Stores a result, or returns the earlier one of the same input.
  func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult

  // MARK: Leftovers

  /// Removes some files unknown to the records, unless they may become known.
  func removeLeftovers(_ records: any InboxRecords) throws

  /// Removes copies of removed bundles or beyond the room.
  func removeCopies(_ records: any InboxRecords) throws

  // MARK: The place

  /// The mark that ties it to its records.
  func mark() throws -> String?

  /// Sets a mark, or returns the one that another process set first.
  func makeMark(_ mark: String) throws -> String

  func isEmpty() throws -> Bool
}

/// Bundles in the home, where workers use them in place.
struct FolderBundleStorage: BundleStorage {
  let workHome: FilePath
  let uses = BundleUses()
  private let folders: InboxFolders
  private let fileSystem: FileSystem

  init(home: FilePath, in fileSystem: FileSystem) {
    workHome = home
    folders = InboxFolders(home: home)
    self.fileSystem = fileSystem
  }

  var isShared: Bool { false }

  // MARK: Bundles

  /// Does nothing: the bundle's folder is permanent.
  func keep(_ bundle: InboxBundle, from path: FilePath) throws {}

  /// Does nothing: there is one copy only.
  func release(_ bundle: InboxBundle) throws {}

  func received(_ bundle: InboxBundle) throws -> FilePath {
    let path = folders.received(bundle.id, encrypted: bundle.isEncrypted)
    guard try fileSystem.status(of: path, followingLinks: false) != nil else {
      throw InboxError(.missing, operation: "read the bundle", path: path, detail: "its file is gone")
    }
    return path
  }

  /// Does nothing: the files were made there.
  func place(_ bundle: InboxBundle) throws {}

  func remove(_ id: String) throws {
    try fileSystem.removeTree(folders.bundle(id))
    try fileSystem.removeTree(folders.work(id))
  }

  /// Nil: removed files are gone.
  func keepingWords(at date: Timestamp) throws -> String? { nil }

  func removeResults(of id: String) throws {
    let folder = folders.bundle(id)
    for name in try fileSystem.entries(of: folder) where !InboxFolders.receivedNames.contains(name.string) {
      try fileSystem.removeTree(folder.appending(name))
    }
  }

  // MARK: Work

  /// Nil: each attempt recreates the result.
  func result(of making: BundleMaking) throws -> StoredResult? { nil }

  func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool { true }

  func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    StoredResult(
      making: making, archive: nil, opened: result.opened, salvaged: result.salvaged, placedBytes: result.placedBytes)
  }

  // MARK: Leftovers

  /// Does nothing: the inbox's start removes unknown files.
  func removeLeftovers(_ records: any InboxRecords) throws {}

  /// Does nothing: there are no copies.
  func removeCopies(_ records: any InboxRecords) throws {}

  // MARK: The place

  func mark() throws -> String? { try InboxPlace.mark(of: folders, in: fileSystem) }

  func makeMark(_ mark: String) throws -> String { try InboxPlace.makeMark(mark, of: folders, in: fileSystem) }

  func isEmpty() throws -> Bool { try fileSystem.entries(of: folders.bundles).isEmpty }
}

/// Bundles in use outside the inbox, such as by an export: their files stay.
package final class BundleUses: Sendable {
  private let asked = Mutex<[@Sendable (String) -> Bool]>([])

  init() {}

  /// Adds a check whether a bundle is in use.
  package func ask(_ isBeingUsed: @escaping @Sendable (String) -> Bool) { asked.withLock { $0.append(isBeingUsed) } }

  func isBeingUsed(_ bundle: String) -> Bool { asked.withLock { $0 }.contains { $0(bundle) } }
}

/// The input of a result; each is stored once.
package struct BundleMaking: Sendable, Hashable, Codable {
  var kind: InboxJob.Kind

  var bundle: String

  /// The SHA-256 of the whole input, in hexadecimal.
  var sum: String

  /// The input of a job.
  ///
  /// - Parameter models: see ``mark(of:order:in:)``.
  /// - Throws: `worker-failed` for salvaging a store that was not unpacked.
  init(_ kind: InboxJob.Kind, of bundle: InboxBundle, models: String) throws(InboxError) {
    self.kind = kind
    self.bundle = bundle.id
    var parts = ["lazaret-bundle-result", "1", kind.rawValue, LibraryVersion.current, bundle.sha256, "\(bundle.bytes)"]
    if kind == .salvage {
      guard let opened = bundle.opened, let id = bundle.quarantineID else {
        throw InboxError(.worker, operation: "salvage the store", detail: "nothing was unpacked of the bundle")
      }
      parts += [opened.sha256, id, models]
    }
    sum = FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  /// A digest of model files and version order.
  static func mark(of models: [FilePath], order: [String]?, in fileSystem: FileSystem) throws -> String {
    var parts: [String] = []
    func add(_ path: FilePath, _ name: String) throws {
      parts += [name, try FileDigest(of: fileSystem.open(path)).hexadecimal]
    }
    for model in models {
      parts.append("model")
      guard try fileSystem.status(of: model)?.kind == .directory else {
        try add(model, model.lastComponent?.string ?? "")
        continue
      }
      let files = try fileSystem.descendants(of: model).files.filter { $0.status.kind == .regular }
      let named = files.map { file in (file.relative.map(\.string).joined(separator: "/"), file.path) }
      for (name, path) in named.sorted(by: { $0.0 < $1.0 }) { try add(path, name) }
    }
    parts += (order ?? []).map { "version \($0)" }
    return FileDigest(ofTexts: parts).hexadecimal
  }
}

/// A bundle's result: the worker's answer and the archive.
package struct StoredResult: Sendable, Hashable, Codable {
  static let formatName = "lazaret-bundle-result"

  var format = formatName

  var version = 1

  var making: BundleMaking

  /// Nil if the files stay in the home.
  package var archive: InboxBundle.Archive?

  /// The result of an `open` job.
  var opened: WorkResult.Opened?

  /// The result of a `salvage` job.
  var salvaged: WorkResult.Salvaged?

  /// The size that the files count with.
  var placedBytes: Int64

  /// Whether it plausibly belongs to this input.
  func isPlausible(for making: BundleMaking) -> Bool {
    format == Self.formatName && version == 1 && self.making == making && placedBytes >= 0
      && archive?.isPlausible != false && (making.kind == .open) == (opened != nil) && opened?.isPlausible != false
      && salvaged?.isPlausible != false
  }
}

/// A local worker's result.
package struct MadeResult: Sendable {
  var folders: InboxFolders

  /// The result of an `open` job.
  var opened: WorkResult.Opened?

  /// The result of a `salvage` job.
  var salvaged: WorkResult.Salvaged?

  /// The size that the files count with.
  var placedBytes: Int64

  /// The SHA-256 of files present before, by path below the bundle's folder.
  var before: [String: String]

  package init(
    folders: InboxFolders, opened: WorkResult.Opened?, salvaged: WorkResult.Salvaged? = nil, placedBytes: Int64,
    before: [String: String] = [:]
  ) {
    self.folders = folders
    self.opened = opened
    self.salvaged = salvaged
    self.placedBytes = placedBytes
    self.before = before
  }
}

extension InboxBundle {
  package struct Archive: Sendable, Hashable, Codable {
    /// The input's digest.
    package var making: String

    /// Distinguishes archives of one input: letters, digits and hyphens.
    package var mark: String

    /// In hexadecimal.
    var sha256: String

    var bytes: Int64

    /// Whether its names are safe path components.
    var isPlausible: Bool {
      InboxFolders.isID(mark) && bytes >= 0
        && [making, sha256].allSatisfy { sum in
          sum.utf8.count == 64 && sum.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        }
    }
  }
}

/// A folder as a gzip-compressed tar archive.
///
/// The worker that made it has read hostile bytes: only regular files are packed.
enum BundleArchive {
  private static let piece = 1 << 20

  /// The limits on unpacking own archives.
  private static let limits = UnpackingLimits(bytes: 1 << 40, ratio: 2000, entries: 1_000_000)

  /// The regular files below a folder, by relative path.
  private static func files(
    of folder: FilePath, leavingOut names: Set<String>, in fileSystem: FileSystem
  ) throws(FileError) -> [(name: String, path: FilePath)] {
    try fileSystem.descendants(of: folder).files.filter { $0.status.kind == .regular }
      .map { (name: $0.relative.map(\.string).joined(separator: "/"), path: $0.path) }
      .filter { !names.contains($0.name) }.sorted { $0.name < $1.name }
  }

  /// The SHA-256 of regular files, by relative path.
  static func sums(
    of folder: FilePath, leavingOut names: Set<String>, in fileSystem: FileSystem
  ) throws -> [String: String] {
    try files(of: folder, leavingOut: names, in: fileSystem).reduce(into: [:]) { sums, file in
      sums[file.name] = try FileDigest(of: fileSystem.open(file.path)).hexadecimal
    }
  }

  /// Packs a folder's regular files into a new file.
  ///
  /// - Parameters:
  ///   - names: the excluded files.
  ///   - before: excluded while they have this SHA-256.
  static func pack(
    _ folder: FilePath, leavingOut names: Set<String>, unchangedSince before: [String: String], to path: FilePath,
    in fileSystem: FileSystem
  ) throws -> (sha256: String, bytes: Int64) {
    var packed = Packed(try fileSystem.create(path, permissions: .ownerReadWrite, truncating: true))
    var tar = TarWriter(secondsSince1970: 0)
    // Speed matters more than size: archives are read once or twice.
    var gzip = try GzipWriter(level: 1)
    for (name, path) in try files(of: folder, leavingOut: names, in: fileSystem) {
      let file = try fileSystem.open(path)
      if let known = before[name], try FileDigest(of: file).hexadecimal == known { continue }
      try packed.write(gzip.write(tar.begin(name, size: file.count)))
      var position: Int64 = 0
      while position < file.count {
        let bytes = try file.bytes(at: position, length: Int(min(Int64(piece), file.count - position)))
        guard !bytes.isEmpty else { break }
        position += Int64(bytes.count)
        try packed.write(gzip.write(tar.write(bytes)))
      }
      guard position == file.count else {
        throw FileError(.changed, operation: "pack the files", path: path, detail: "it became shorter meanwhile")
      }
    }
    try packed.write(gzip.write(tar.finish()))
    try packed.write(gzip.finish())
    let (sum, bytes) = (packed.digest.hexadecimal, packed.bytes)
    try packed.commit()
    return (sum, bytes)
  }

  private struct Packed: ~Copyable {
    private(set) var digest = RunningDigest()
    private(set) var bytes: Int64 = 0
    private let file: WritableFile

    init(_ file: consuming WritableFile) { self.file = file }

    mutating func write(_ bytes: [UInt8]) throws(FileError) {
      digest.add(bytes)
      self.bytes += Int64(bytes.count)
      try file.write(bytes)
    }

    consuming func commit() throws(FileError) { try file.commit() }
  }

  /// Unpacks an archive, replacing existing files.
  static func unpack(_ path: FilePath, into folder: FilePath, in fileSystem: FileSystem) throws {
    let file = try fileSystem.open(path)
    var gzip = try GzipReader(limits: limits)
    var unpacking = Unpacking(folder, fileSystem)
    var position: Int64 = 0
    while position < file.count {
      let bytes = try file.bytes(at: position, length: piece)
      guard !bytes.isEmpty else { break }
      position += Int64(bytes.count)
      try gzip.read(bytes) { try unpacking.add($0) }
    }
    try gzip.finish()
    try unpacking.finish()
  }

  private struct Unpacking: ~Copyable {
    private var tar = TarReader(limits: BundleArchive.limits)
    private let folder: FilePath
    private let fileSystem: FileSystem
    private var current: WritableFile?

    init(_ folder: FilePath, _ fileSystem: FileSystem) {
      self.folder = folder
      self.fileSystem = fileSystem
    }

    mutating func add(_ bytes: ArraySlice<UInt8>) throws {
      var events: [TarReader.Event] = []
      try tar.read(bytes) { events.append($0) }
      for event in events { try take(event) }
    }

    consuming func finish() throws(FileError) { try tar.finish() }

    private mutating func take(_ event: TarReader.Event) throws {
      switch event {
      case .entry(let entry):
        guard !entry.isFolder else { return }
        var path = folder
        for part in entry.components.dropLast() { path.append(part) }
        try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
        path.append(entry.components.last ?? "")
        // Replace an older file of that name; never write into it.
        try fileSystem.unlink(path)
        current = try fileSystem.create(path, permissions: .ownerReadWrite)
      case .content(let bytes): try current?.write(bytes)
      case .end: current = nil
      }
    }
  }
}
