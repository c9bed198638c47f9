import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage

/// A restored backup for reading: in unnamed files, or in a private folder if it was salvaged.
struct RestoredContent {
  enum Values {
    /// Whole, in the backup.
    case packed(BackupExtraction)

    /// Below the support folder of a salvaged store or an original.
    case files(FilePath)

    /// Returns the digests of the named values that are there, by path.
    func digests(of names: Set<String>, in fileSystem: FileSystem) throws -> [String: String] {
      let paths = Set(names.map(ReferencedValues.path))
      var digests: [String: String] = [:]
      switch self {
      case .packed(let extraction):
        for item in try extraction.manifest.externalData?.items ?? [] where paths.contains(item.name.text) {
          digests[item.name.text] = item.sha256
        }
      case .files(let folder):
        for path in paths {
          let file = folder.appending(FilePath(path).components)
          guard try fileSystem.status(of: file)?.kind == .regular else { continue }
          digests[path] = try FileDigest(of: fileSystem.open(file)).hexadecimal
        }
      }
      return digests
    }
  }

  /// The database, or the main file of evidence.
  let main: ReadableFile

  let values: Values

  /// The losses; nil if there are none.
  let report: RestoreReport?
}

extension BackupRestorer {
  /// Reads a restored backup while the body runs.
  ///
  /// Only a damaged backup that is to be salvaged gets names, in a private folder.
  ///
  /// - Parameters:
  ///   - temporary: the parent of the private folder; the system's if nil.
  ///   - alternative: a second parent; the backups' folder if nil.
  func withContent<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ content: RestoredContent, _ folder: FilePath) throws -> Value
  ) throws -> Value {
    // A salvage unpacks the backup once more.
    var options = options
    options.progress = RisingProgress(options.progress).report
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let content: RestoredContent
    do {
      content = try unnamedContent(id, at: home.path.appending("Store.sqlite"), options)
    } catch {
      let error = BackupError(any: error)
      guard options.salvages, error.kind != .cancelled, !error.isEnvironmental else { throw error }
      return try withRestored(id, options: options, temporary: temporary, or: alternative) {
        store, folder, report in
        let values = RestoredContent.Values.files(store.path(of: .externalData))
        return try body(RestoredContent(main: try fileSystem.open(store.main), values: values, report: report), folder)
      }
    }
    return try body(content, home.path)
  }

  private func unnamedContent(
    _ id: BackupIdentifier, at path: FilePath, _ options: Options
  ) throws -> RestoredContent {
    let (files, extraction) = try restoreUnnamed(id, at: path, progress: options.progress)
    guard let main = files[.main] else {
      throw FileError(.notFound, operation: "read the restored store", path: path)
    }
    var values = RestoredContent.Values.packed(extraction)
    if try extraction.manifest.kind == .original, let place = place as? FolderPlace {
      values = .files(place.support(of: id, in: extraction.section))
    }
    return RestoredContent(main: main, values: values, report: nil)
  }
}

extension BackupRestorer {
  /// The maximum number of other backups to restore in search of metadata.
  private static let attempts = 3

  /// Replaces a database with lost pages by its salvaged remains.
  func salvage(
    _ folder: RestoreFolder, _ manifest: BackupManifest, _ kit: RecoveryKit?, _ options: Options
  ) throws -> SalvageReport {
    let (own, taken) = (folder.store.path(of: .externalData), folder.remains.path(of: .externalData))
    try fileSystem.rename(folder.store.main, to: folder.remains.main)
    // The salvage expects the external values beside its input.
    let hasValues = try fileSystem.status(of: own, followingLinks: false) != nil
    if hasValues { try fileSystem.rename(own, to: taken) }
    var salvaging = Salvager.Options(migrates: false, kit: kit.map { .kit($0) } ?? .none)
    salvaging.isKitOfThisState = true
    salvaging.standIn = try standIn(for: folder.remains, manifest, options, folder.target.folder)
    var report: SalvageReport
    do throws(SalvageError) {
      report = try Salvager(surroundings: surroundings).salvage(
        folder.remains.main, to: folder.store.main, model: options.model, options: salvaging)
    } catch {
      throw BackupError(salvaging: error)
    }
    try fileSystem.unlink(folder.remains.main)
    if hasValues {
      // Without a known model none were copied.
      if try fileSystem.status(of: own, followingLinks: false) == nil {
        try fileSystem.rename(taken, to: own)
      } else {
        try fileSystem.removeTree(taken)
      }
    }
    report.store = nil
    report.output = PathText(folder.target.main)
    if report.rebuild?.setAsideFile != nil { report.rebuild?.setAsideFile = folder.asideTarget }
    return report
  }

  /// Returns substitutes for missing metadata and model: from another backup of the same model version, else from the
  /// manifest.
  private func standIn(
    for remains: StoreFileSet, _ manifest: BackupManifest, _ options: Options, _ alternative: FilePath
  ) throws -> StandInIdentity? {
    let hashes = (manifest.model?.entityHashes ?? [:]).compactMapValues { VersionHash(hex: $0) }
    guard manifest.store.kind == StoreKind.coreData.rawValue, !hashes.isEmpty else { return nil }
    let seen = identity(of: remains.main)
    if seen.metadata != nil, seen.model != nil { return nil }
    let noted = StandInIdentity(
      metadata: StoreMetadata(
        versionHashes: hashes, identifiers: manifest.model?.identifiers ?? [],
        uuid: manifest.store.uuid ?? surroundings.makeUUID().description),
      model: nil, origin: "the manifest of backup \(manifest.id)")
    if case .coreData(let bundle) = options.model, bundle.version(matching: hashes) != nil { return noted }
    let others = try BackupCatalog(of: place).backups.filter { other in
      other.id != manifest.id && !other.isApart && other.isWhole && other.proof?.result != .failed
        && other.manifest?.store.uuid == manifest.store.uuid
        && other.manifest?.model?.entityHashes == manifest.model?.entityHashes
    }
    for other in others.prefix(Self.attempts) {
      var reading = Options(progress: options.progress)
      reading.salvages = false
      do {
        let found = try withContent(other.id, options: reading, temporary: nil, or: alternative) {
          content, _ throws in identity(of: content.main)
        }
        guard let metadata = found.metadata else { continue }
        return StandInIdentity(metadata: metadata, model: found.model, origin: "backup \(other.id)")
      } catch {
        let error = BackupError(any: error)
        // An unreadable backup is no help, but does not prevent the salvage.
        if error.kind == .cancelled { throw error }
      }
    }
    return noted
  }

  /// Returns a store's metadata and model, as far as readable.
  func identity(of path: FilePath) -> (metadata: StoreMetadata?, model: ManagedObjectModel?) {
    // The salvage itself reports an unreadable store.
    let found = try? Examiner(fileSystem: fileSystem).examine(path, options: .init(depth: .quick, countsRecords: false))
    return (found?.metadata, found?.storeModel)
  }

  private func identity(of file: ReadableFile) -> (metadata: StoreMetadata?, model: ManagedObjectModel?) {
    let found = try? Examiner(fileSystem: fileSystem).examine(
      main: file, log: nil, journal: nil, of: StoreFileSet(main: file.path), members: [],
      options: .init(depth: .quick, countsRecords: false))
    return (found?.metadata, found?.storeModel)
  }
}
