package import Platform
package import SystemPackage

/// The bundles of an inbox in the home, where its workers work at them: one folder for each.
package struct FolderBundleStorage: BundleStorage {
  package let workHome: FilePath
  package let uses = BundleUses()
  private let folders: InboxFolders
  private let fileSystem: FileSystem

  /// The bundles of a home.
  package init(home: FilePath, in fileSystem: FileSystem) {
    workHome = home
    folders = InboxFolders(home: home)
    self.fileSystem = fileSystem
  }

  package var isShared: Bool { false }

  // MARK: Bundles

  /// Nothing is to be done: a bundle's own folder is where it stays.
  package func keep(_ bundle: InboxBundle, from path: FilePath) throws {}

  /// Nothing is to be done: the file in the folder is the only one.
  package func release(_ bundle: InboxBundle) throws {}

  package func received(_ bundle: InboxBundle) throws -> FilePath {
    let path = folders.received(bundle.id, encrypted: bundle.isEncrypted)
    guard try fileSystem.status(of: path, followingLinks: false) != nil else {
      throw InboxError(.missing, operation: "read the bundle", path: path, detail: "its file is gone")
    }
    return path
  }

  /// Nothing is to be done: it was made there.
  package func place(_ bundle: InboxBundle) throws {}

  package func remove(_ id: String) throws {
    try fileSystem.removeTree(folders.bundle(id))
    try fileSystem.removeTree(folders.work(id))
  }

  /// Nil: files that are removed are gone.
  package func keepingWords(at date: Timestamp) throws -> String? { nil }

  package func removeResults(of id: String) throws {
    let received = [folders.received(id, encrypted: true), folders.received(id, encrypted: false)]
    for name in try fileSystem.entries(of: folders.bundle(id)) {
      let path = folders.bundle(id).appending(name)
      if !received.contains(path) { try fileSystem.removeTree(path) }
    }
  }

  // MARK: Work

  /// Nil: the folder has what was made, and an attempt makes it anew.
  package func result(of making: BundleMaking) throws -> StoredResult? { nil }

  package func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool { true }

  package func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult {
    StoredResult(
      making: making, archive: nil, opened: result.opened, salvaged: result.salvaged, placedBytes: result.placedBytes)
  }

  // MARK: Leftovers

  /// Nothing is to be done: the start of the inbox removes what no record knows.
  package func removeLeftovers(_ records: any InboxRecords) throws {}

  /// Nothing is to be done: there are no copies.
  package func removeCopies(_ records: any InboxRecords) throws {}

  // MARK: The place

  package func mark() throws -> String? { try InboxPlace.mark(of: folders, in: fileSystem) }

  package func makeMark(_ mark: String) throws -> String {
    try InboxPlace.makeMark(mark, of: folders, in: fileSystem)
  }

  package func isEmpty() throws -> Bool { try fileSystem.entries(of: folders.bundles).isEmpty }
}

/// Where the bundles of an inbox lie: as they were received, and what was unpacked and salvaged of them.
///
/// The records say which bundles there are; a storage keeps their bytes. Every call may be made again, and from any thread.
package protocol BundleStorage: Sendable {
  /// Whether bundles lie apart from this machine, so that others have them too; else they lie in the home.
  var isShared: Bool { get }

  /// The home below which workers of this machine work; each attempt at a job has one of its own in it where the storage is shared.
  var workHome: FilePath { get }

  /// Which bundles something of this process is working at, besides the inbox itself.
  var uses: BundleUses { get }

  // MARK: Bundles

  /// Keeps a bundle, whose file lies on this machine, for good: it is there when this returns.
  func keep(_ bundle: InboxBundle, from path: FilePath) throws

  /// Says that the records know a bundle, so that its file on this machine is one copy of two.
  func release(_ bundle: InboxBundle) throws

  /// The file of a bundle as it was received, on this machine.
  ///
  /// - Throws: `bundle-missing` where it is not there, `bundle-altered` where it is not what was received.
  func received(_ bundle: InboxBundle) throws -> FilePath

  /// Sees to it that what was unpacked and salvaged of a bundle is in its folder of this machine.
  func place(_ bundle: InboxBundle) throws

  /// Removes a bundle with everything that was made of it; no error where there is none.
  func remove(_ id: String) throws

  /// That what is removed is not gone, or that this is not known, as a sentence; nil where it is gone.
  func keepingWords(at date: Timestamp) throws -> String?

  /// Removes what was made of a bundle, where it lies in the home; in shared storage it stays until the bundle is removed.
  func removeResults(of id: String) throws

  // MARK: Work

  /// What was made before of the same things; nil where nothing was.
  func result(of making: BundleMaking) throws -> StoredResult?

  /// Puts what a job needs into the folders that it is worked at in.
  ///
  /// - Parameter goesOn: asked now and then; false ends it.
  /// - Returns: false where it was ended.
  func fetch(
    _ bundle: InboxBundle, for kind: InboxJob.Kind, into folders: InboxFolders, goesOn: () -> Bool
  ) throws -> Bool

  /// Keeps what was made, unless the same was made before.
  ///
  /// - Returns: what is kept: this, or what was there.
  func keep(_ result: MadeResult, of making: BundleMaking) throws -> StoredResult

  // MARK: Leftovers

  /// Removes what there is of bundles that no record knows, a part of it at each call.
  ///
  /// Nothing is removed that may be on its way to being known.
  func removeLeftovers(_ records: any InboxRecords) throws

  /// Removes the copies on this machine of bundles that the records do not know any more, and those that there is no room for.
  func removeCopies(_ records: any InboxRecords) throws

  // MARK: The place

  /// The mark that ties it to its records; nil where it has none.
  func mark() throws -> String?

  /// Gives it a mark, or finds the one that another process has just given it.
  func makeMark(_ mark: String) throws -> String

  /// Whether no bundle lies there.
  func isEmpty() throws -> Bool
}

/// Which bundles something of this process is working at besides the inbox itself, such as an export begun on the pages: their
/// files stay meanwhile.
package final class BundleUses: Sendable {
  private let asked = Mutex<[@Sendable (String) -> Bool]>([])

  /// Of none, until ``ask(_:)`` says who knows.
  package init() {}

  /// Adds a question that is asked from now on: whether a bundle of an identifier is being worked at.
  package func ask(_ isBeingUsed: @escaping @Sendable (String) -> Bool) {
    asked.withLock { $0.append(isBeingUsed) }
  }

  /// Whether a bundle is being worked at.
  package func isBeingUsed(_ bundle: String) -> Bool {
    asked.withLock { $0 }.contains { $0(bundle) }
  }
}

/// What a result is made of: the same things make the same result, which so is kept once.
package struct BundleMaking: Sendable, Hashable, Codable {
  /// What is done.
  package var kind: InboxJob.Kind

  /// The bundle that it is done to.
  package var bundle: String

  /// The SHA-256 of everything that it is made of, in hexadecimal digits.
  package var sum: String

  /// What a job would make of a bundle as it is.
  ///
  /// - Parameter models: the mark of the models; see ``mark(of:order:in:)``.
  /// - Throws: `worker-failed` where a store is to be salvaged that was not unpacked.
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

  /// A mark that tells models and the order of their versions from others, by what their files hold.
  static func mark(of models: [FilePath], order: [String]?, in fileSystem: FileSystem) throws -> String {
    var digest = RunningDigest()
    func add(_ text: String) { digest.add(Array("\(text.utf8.count):\(text)".utf8)) }
    func addFile(_ path: FilePath, _ name: String) throws {
      add(name)
      add(try FileDigest(of: fileSystem.open(path)).hexadecimal)
    }
    for model in models {
      add("model")
      guard try fileSystem.status(of: model)?.kind == .directory else {
        try addFile(model, model.lastComponent?.string ?? "")
        continue
      }
      let files = try fileSystem.descendants(of: model).files.filter { $0.status.kind == .regular }
      let named = files.map { file in (file.relative.map(\.string).joined(separator: "/"), file.path) }
      for (name, path) in named.sorted(by: { $0.0 < $1.0 }) { try addFile(path, name) }
    }
    for version in order ?? [] { add("version \(version)") }
    return digest.hexadecimal
  }
}
