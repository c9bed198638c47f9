internal import GRDB
internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles
internal import SystemPackage

/// One rebuild, from the evidence to the store in its place.
struct StoreReconstruction {
  let evidence: Evidence
  let model: SalvageModel?
  let options: Salvager.Options
  let surroundings: Surroundings
  let output: FilePath

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Salvages, rebuilds, checks, migrates and installs.
  func run() throws(SalvageError) -> SalvageReport {
    let target = try SalvageTarget(output, beside: evidence.files, in: fileSystem)
    let asideTarget = try SalvageTarget(Self.asidePath(output), beside: evidence.files, in: fileSystem)
    let place = StoreFileSet(main: target.path)
    let folder = RebuildFolder(for: output, in: fileSystem)
    do throws(SalvageError) {
      try filing { () throws(FileError) in
        let external = place.path(of: .externalData)
        if try fileSystem.status(of: external, followingLinks: false) != nil,
          try fileSystem.status(of: evidence.files.path(of: .externalData)) != nil
        {
          throw FileError(.alreadyExists, operation: "write what was salvaged", path: external)
        }
        try folder.make()
      }
      var raw = SalvageRun(evidence: evidence, model: model, options: options)
      let found = try raw.raw(to: folder.raw)
      var report = try rebuild(found, folder)
      let result = try migrate(found, folder, &report)
      try install(result, folder, target, asideTarget, &report)
      try filing { () throws(FileError) in try folder.remove() }
      return report
    } catch {
      // The error that led here is the one to report; what is left is removed by the next run.
      try? folder.remove()
      throw error
    }
  }

  /// The file of what is not part of the store.
  static func asidePath(_ output: FilePath) -> FilePath { output.sibling(suffix: "-set-aside") }

  // MARK: The store of its own version

  private func rebuild(_ found: RawSalvage, _ folder: RebuildFolder) throws(SalvageError) -> SalvageReport {
    var version: String?
    if case .coreData(let bundle) = model, let hashes = found.layout?.model.versionHashes() {
      version = bundle.version(matching: hashes)?.name
    }
    let account = SalvageReport.Rebuild(version: version, basis: found.basis)
    let uuid = surroundings.makeUUID().description
    let connection = try RebuildConnection(folder.store, isNew: true, referenceDate: PersistentStore.referenceDate())
    let isCoreData = found.layout != nil
    let usesLog = isCoreData || found.header?.usesWriteAheadLog == true
    var report = found.report
    let (rebuilt, remarks, hasForeignValues) = try connection.run { database in
      let vacuum = isCoreData ? 2 : found.header.map { $0.isAutoVacuum ? ($0.incrementalVacuum == 0 ? 1 : 2) : 0 } ?? 0
      // With the journal in memory a statement that fails can be taken back; of a new file it holds next to nothing.
      try database.execute(
        sql: """
          PRAGMA page_size = \(isCoreData ? 4096 : found.pageSize); PRAGMA auto_vacuum = \(vacuum);
          PRAGMA encoding = '\(found.encoding.pragmaName)'; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
          PRAGMA locking_mode = EXCLUSIVE
          """)
      try database.execute(sql: "ATTACH DATABASE ? AS raw", arguments: [RebuildConnection.address(folder.raw)])
      try database.execute(sql: "ATTACH DATABASE ? AS aside", arguments: [RebuildConnection.newAddress(folder.aside)])
      try database.execute(sql: "PRAGMA aside.journal_mode = MEMORY; PRAGMA aside.synchronous = OFF")
      try database.execute(sql: "BEGIN")
      let result = try fill(database, found, account, uuid: uuid)
      try database.execute(sql: "COMMIT")
      try database.execute(sql: "DETACH DATABASE aside; DETACH DATABASE raw")
      if usesLog {
        try database.execute(
          sql:
            "PRAGMA main.locking_mode = NORMAL; PRAGMA main.journal_mode = WAL; PRAGMA main.wal_checkpoint(TRUNCATE)")
      }
      return result
    }
    try connection.close()
    report.rebuild = rebuilt
    report.remarks += remarks
    if !rebuilt.isFaithful || hasForeignValues { report.isComplete = false }
    if let foreign = found.foreignModel, let layout = found.layout {
      report.setApart(entitiesOf: foreign, notIn: layout)
    }
    // What was found is in the new files now, and its room is wanted for the migration.
    try filing { () throws(FileError) in
      try fileSystem.unlink(folder.raw)
      try fileSystem.synchronizeFile(folder.store)
    }
    try RebuildCheck.run(folder.store, found.layout, in: fileSystem)
    return report
  }

  private func fill(
    _ database: GRDB.Database, _ found: RawSalvage, _ account: SalvageReport.Rebuild, uuid: String
  ) throws -> (SalvageReport.Rebuild, [String], Bool) {
    func tell(_ done: Int64, _ total: Int64) throws {
      guard options.progress(.rebuild, done, total) else { throw SalvageError.cancelled() }
    }
    if let layout = found.layout {
      var assembly = try StoreAssembly(database, layout: layout, found: found, account: account)
      try assembly.run(uuid: uuid, tell: tell)
      if assembly.aside.isUsed { assembly.account.setAsideFile = Self.asidePath(output) }
      return (assembly.account, assembly.remarks, assembly.hasForeignValues)
    }
    var assembly = try PlainAssembly(database, found: found, account: account)
    try assembly.run(tell: tell)
    if assembly.aside.isUsed { assembly.account.setAsideFile = Self.asidePath(output) }
    return (assembly.account, assembly.remarks, false)
  }

  // MARK: The migration

  /// Migrates to the current version; returns the file that is the result.
  private func migrate(
    _ found: RawSalvage, _ folder: RebuildFolder, _ report: inout SalvageReport
  ) throws(SalvageError) -> FilePath {
    guard options.migrates, case .coreData(let bundle) = model, let layout = found.layout,
      layout.model.versionHashes() != bundle.current.versionHashes
    else { return folder.store }
    var migration = Migrator.Options()
    migration.output = folder.migrated
    migration.progress = { [options] _, number, count in
      options.progress(.migration, Int64(number - 1), Int64(count))
    }
    do throws(MigrationError) {
      let result = try Migrator(bundle, surroundings: surroundings).migrate(folder.store, options: migration)
      guard result.store != folder.store, !result.steps.isEmpty else { return folder.store }
      report.rebuild?.migratedTo = bundle.current.name
      report.rebuild?.steps = result.steps.map(\.step)
      if result.steps.contains(where: { !$0.losses.isEmpty || !$0.leftBehind.isEmpty }) { report.isComplete = false }
      return folder.migrated
    } catch {
      if error.kind == .cancelled { throw .cancelled() }
      if let fileError = error.fileError, error.isEnvironmental { throw SalvageError(fileError) }
      report.rebuild?.migrationFailure = "\(error.detail) [\(error.code)]"
      report.isComplete = false
      return folder.store
    }
  }

  // MARK: Into its place

  private func install(
    _ result: FilePath, _ folder: RebuildFolder, _ target: SalvageTarget, _ aside: SalvageTarget,
    _ report: inout SalvageReport
  ) throws(SalvageError) {
    let place = StoreFileSet(main: target.path)
    let external = place.path(of: .externalData)
    var made: [FilePath] = []
    var hasExternal = false
    do throws(FileError) {
      if report.rebuild?.setAsideFile != nil {
        try fileSystem.synchronizeFile(folder.aside)
        try fileSystem.install(folder.aside, at: aside.path, replacing: false)
        made.append(aside.path)
      }
      if found(report) {
        hasExternal = try copyExternalData(to: external)
      }
      try fileSystem.synchronizeFile(result)
      try fileSystem.install(result, at: target.path, replacing: false)
    } catch {
      // The error that led here is the one to report.
      for path in made { try? fileSystem.unlink(path) }
      if hasExternal || error.path?.string.hasPrefix(external.string) == true { try? removeTree(external) }
      throw SalvageError(error)
    }
  }

  private func found(_ report: SalvageReport) -> Bool { report.isCoreData || report.rebuild?.basis == .bestFit }

  /// Copies the files of large values; they are named by the records, and stay as they are.
  private func copyExternalData(to target: FilePath) throws(FileError) -> Bool {
    let source = evidence.files.path(of: .externalData)
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return false }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      do {
        _ = try fileSystem.copy(file.path, to: target.appending(file.relative))
      } catch {
        throw error as? FileError
          ?? FileError(.other, operation: "copy the large values", path: file.path)
      }
    }
    try fileSystem.synchronizeDirectory(target)
    return true
  }

  private func removeTree(_ path: FilePath) throws(FileError) {
    let content = try fileSystem.descendants(of: path)
    for file in content.files { try fileSystem.unlink(file.path) }
    for folder in content.folders.reversed() { try fileSystem.removeDirectory(path.appending(folder)) }
    try fileSystem.removeDirectory(path)
  }

  private func filing<Value>(_ body: () throws(FileError) -> Value) throws(SalvageError) -> Value {
    do throws(FileError) { return try body() } catch { throw SalvageError(error) }
  }
}
