internal import Backup
internal import Lazaret
package import ManagedObjectModel
package import PersistentStore
package import Platform
internal import SQLiteFormat
import Salvage
package import SystemPackage

/// A file with a model: a store, a backup, a quarantined store, a bundle.
///
/// ```swift
/// let model = try ModelCarrier("Released/App-1.0.store")?.load()
/// ```
package struct ModelCarrier: Sendable {
  package enum Kind: String, Sendable, Hashable {
    case store

    /// A backup, or another packed store.
    case backup

    case bundle

    case unpackedBundle = "unpacked-bundle"
  }

  /// The file, or an unpacked bundle's folder.
  let path: FilePath

  package let kind: Kind

  /// The files of a store without names.
  private let opened: OpenedFiles?

  private let surroundings = Surroundings.machine

  /// A bound; a bundle has one.
  private static let maximumModels = 100

  /// Takes the opened files of a store.
  package init(_ opened: OpenedFiles, at path: FilePath) {
    self.path = path
    kind = .store
    self.opened = opened
  }

  /// Looks at a file; nil if missing or without a model.
  ///
  /// - Throws: `FileError` if unreadable.
  package init?(_ path: FilePath) throws(FileError) {
    self.path = path
    opened = nil
    let fileSystem = surroundings.fileSystem
    guard let status = try fileSystem.status(of: path) else { return nil }
    switch status.kind {
    case .directory:
      guard try fileSystem.status(of: path.appending("bagit.txt")) != nil,
        try fileSystem.status(of: path.appending("data"))?.kind == .directory
      else { return nil }
      kind = .unpackedBundle
    case .regular:
      let head = try fileSystem.open(path).bytes(at: 0, length: 4096)
      switch FileKind(firstBytes: head) {
      case _ where AgeOpener.isAge(head): kind = .bundle
      case _ where PackedFileUnpacking.compression(of: head) == .zstd: kind = .backup
      case .database: kind = .store
      // Far more than the one that a bundle has.
      case .gzip: kind = (try? BundleLook(at: path, in: fileSystem)) == nil ? .backup : .bundle
      case .databaseOfVersion2, .writeAheadLog, .rollbackJournal, .empty, .zeros, .transactions, .berkeleyDatabase,
        .locateDatabase, .otherDatabase, .markup, .json, .text, .zip, .archive, .binaryPropertyList, .propertyList,
        .picture, .media, .document, .program, .script, .sealed, .encrypted, .other:
        return nil
      }
    case .symbolicLink, .other: return nil
    }
  }

  /// Returns the model as the only version, named after the file; a bundle is unpacked to temporary files.
  ///
  /// - Throws: `model-no-versions` without a readable model, errors of the backup or bundle, and `unavailable`.
  package func load() throws -> ModelBundle {
    switch kind {
    case .store: return try bundle(of: model(ofStore: path, opened))
    case .backup:
      let backup = try unpacked()
      return try bundle(of: model(ofStore: backup.path, backup.files))
    case .unpackedBundle: return try bundle(of: model(inBundle: path.appending("data")))
    case .bundle:
      let folder = try PrivateFolder(in: nil, needing: 0, to: "unpack the bundle", surroundings)
      defer { withExtendedLifetime(folder) {} }
      let received = try BundleReader(surroundings: surroundings).unpack(path, into: folder.path.appending("Bundle"))
      return try bundle(of: model(inBundle: received.folder.appending("data")))
    }
  }

  /// Returns the schema of a plain store or its backup; nil for other files.
  ///
  /// - Throws: errors of the backup, and `schema-script-refused` if damaged.
  package func schema() throws -> AppModel? {
    switch kind {
    case .store: return try AppModel.schema(ofStore: path, opened, in: surroundings.fileSystem)
    case .backup:
      let backup = try unpacked()
      return try AppModel.schema(ofStore: backup.path, backup.files, in: surroundings.fileSystem)
    case .bundle, .unpackedBundle: return nil
    }
  }

  private func unpacked() throws -> SalvageDonor {
    try UnpackedBackup(
      .file(path), of: path, home: path.folder, trust: .anyStore, scope: EvidenceScope(lineage: nil, event: nil),
      surroundings: surroundings
    ).donor
  }

  /// The file name without extensions.
  package var versionName: String {
    var name = path.lastComponent?.string ?? "Store"
    for ending in [".gz", ".zst", ".age", ".tar", ".sqlite", ".store", ".db", ".sqlite3", ".lazaret", ".json"]
    where name.lowercased().hasSuffix(ending) && name.count > ending.count { name.removeLast(ending.count) }
    return name
  }

  private func bundle(of model: ManagedObjectModel) throws(ModelError) -> ModelBundle {
    let version = ModelVersion(name: versionName, model: model, isCurrent: true)
    guard let bundle = ModelBundle(name: versionName, path: path, versions: [version]) else { throw missing("") }
    return bundle
  }

  private func missing(_ detail: String) -> ModelError {
    let words = (kind == .unpackedBundle ? .bundle : kind).rawValue
    return ModelError(
      .noVersions, operation: "read the model of the \(words)", path: path, detail: detail,
      hint: "Name the model that it was written with.")
  }

  /// Returns a store's model, if its metadata names it.
  private func model(ofStore store: FilePath, _ opened: OpenedFiles? = nil) throws -> ManagedObjectModel {
    let options = Examiner.Options(depth: .quick, countsRecords: false)
    let examiner = Examiner(fileSystem: surroundings.fileSystem)
    let examination =
      if let opened, let main = opened[.main] {
        try examiner.examine(
          main: main, log: opened[.wal], journal: opened[.journal], of: StoreFileSet(main: store), members: [],
          options: options)
      } else { try examiner.examine(store, options: options) }
    if let model = examination.storeModel { return model }
    try examination.requireReachable(at: path)
    if examination.kind == .sqlite { throw missing("it is a plain store, whose schema is no model") }
    let note = examination.health.notes.first { $0.code.hasPrefix("model-cache") }
    throw missing(note?.words ?? "the store carries no model; those of systems before 2015 do not")
  }

  /// Returns a bundle's compiled model, or the one in its store.
  private func model(inBundle data: FilePath) throws -> ManagedObjectModel {
    let fileSystem = surroundings.fileSystem
    func files(_ folder: FilePath, _ ending: String) throws(FileError) -> [FilePath] {
      guard try fileSystem.status(of: folder)?.kind == .directory else { return [] }
      return try fileSystem.entries(of: folder).filter { $0.extension == ending }
        .ordered { precedesByCodeUnit($0.string, $1.string) }.prefix(Self.maximumModels).map { folder.appending($0) }
    }
    if let compiled = try files(data.appending("model").appending("store"), "mom").first {
      return try ModelBundle.load(path: compiled, fileSystem: fileSystem).current.model
    }
    if let store = try files(data.appending("store"), "sqlite").first { return try model(ofStore: store) }
    throw missing("the model of its store is not in it")
  }
}
