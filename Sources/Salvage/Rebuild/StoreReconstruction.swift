internal import GRDB
import ManagedObjectModel
internal import Migration
internal import PersistentStore
package import Platform
internal import SQLiteFormat
internal import SystemPackage

/// One rebuild, from the evidence to the installed result.
struct StoreReconstruction {
  let path: FilePath
  let evidence: Evidence
  let model: SalvageModel?
  let options: Salvager.Options
  let migration: SalvageMigration
  let surroundings: Surroundings
  let output: FilePath

  /// Gets the progress that the options report.
  let relay: ProgressRelay

  var fileSystem: FileSystem { surroundings.fileSystem }

  private var folder: RebuildFolder { RebuildFolder(for: output, in: fileSystem) }

  func run() throws -> SalvageReport {
    _ = try fileSystem.realPath(output.folder)
    let lock = try folder.take()
    do {
      let report = try make()
      try? folder.remove()
      lock.release()
      return report
    } catch {
      // The earlier error counts; the next run removes the remains.
      try? folder.remove()
      throw error
    }
  }

  private func make() throws -> SalvageReport {
    let external = folder.externalPlace
    try folder.clear()
    let target = try SalvageTarget(output, beside: evidence.files, in: fileSystem)
    let asideTarget = try SalvageTarget(folder.asidePlace, beside: evidence.files, in: fileSystem)
    if try fileSystem.status(of: external, followingLinks: false) != nil,
      try fileSystem.status(of: evidence.files.path(of: .externalData)) != nil
    {
      throw FileError(.alreadyExists, operation: "write what was salvaged", path: external)
    }
    try requireSpace(at: output.folder)
    var made = try make(options)
    if let noWay = made.noWay {
      // Matching names carries over less than a migration, but more than an empty result.
      try folder.clear()
      var fitting = options
      fitting.keepsModel = { _ in false }
      made = try make(fitting, after: noWay)
    }
    made.report.store = PathText(path)
    made.report.output = PathText(output)
    try install(made.file, target, asideTarget, made.report)
    return made.report
  }

  /// Makes a store in the folder.
  ///
  /// - Parameter noWay: why rows leave the store's own model.
  /// - Returns: the store, and a failure that shows the lack of any migration from a model unknown to the app. Other
  ///   failures can be mended in the records or by the app.
  private func make(
    _ options: Salvager.Options, after noWay: MigrationError? = nil
  ) throws -> (file: FilePath, report: SalvageReport, noWay: MigrationError?) {
    var store: NewStore?
    let found = try SalvageRun(evidence: evidence, model: model, options: options).raw(to: folder.raw) { facts in
      let made = try NewStore(folder.store, facts, in: fileSystem)
      store = made
      return made
    }
    var report = try rebuild(found, store)
    if let foreign = found.foreignModel, options.migrates, case .coreData(let bundle) = model {
      report.noteFit(because: noWay ?? migration.obstacle(from: .model(foreign), in: bundle))
    }
    let (file, failure) = try migrate(found, &report)
    guard let failure, failure.kind.leavesNoWay, options.fitsModel, case .coreData(let bundle) = model,
      let own = found.layout?.model, bundle.version(matching: own.versionHashes()) == nil
    else { return (file, report, nil) }
    return (file, report, failure)
  }

  // MARK: The store of its own version

  private func rebuild(_ found: RawSalvage, _ store: NewStore?) throws -> SalvageReport {
    var version: String?
    if case .coreData(let bundle) = model, let own = found.layout?.model {
      version = bundle.version(matching: own.versionHashes(), identifiers: own.versionIdentifiers, cached: own)?.name
    }
    let account = SalvageReport.Rebuild(version: version, basis: found.basis)
    let uuid = surroundings.makeUUID().description
    let filled = try RebuildCheck.open(
      folder.store, isNew: true, referenceDate: PersistentStore.referenceDate(), isCancelled: relay.isCancelled
    ) { database in
      // A journal file allows rollback of a statement of any size.
      try database.execute(
        sql: """
          PRAGMA encoding = '\(found.encoding.pragmaName)'; PRAGMA main.journal_mode = TRUNCATE;
          PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -2048; PRAGMA threads = 1
          """)
      try WorkingConnection.attach(folder.raw, .immutable, as: "raw", to: database)
      try WorkingConnection.attach(folder.aside, .create, as: "aside", to: database)
      try database.execute(sql: "PRAGMA aside.journal_mode = MEMORY; PRAGMA aside.synchronous = OFF")
      try database.execute(sql: "BEGIN")
      let result = try fill(database, found, store, account, uuid: uuid)
      try database.execute(sql: "COMMIT")
      try database.execute(sql: "DETACH DATABASE aside; DETACH DATABASE raw")
      if found.layout != nil || found.header?.usesWriteAheadLog == true {
        try database.execute(sql: "PRAGMA main.locking_mode = NORMAL; PRAGMA main.journal_mode = WAL")
        try database.bringLogIntoMainFile()
      }
      return result
    }
    var report = found.report
    report.rebuild = filled.account
    report.remarks += filled.remarks
    report.take(filled.recounts)
    report.take(referredTo: filled.referredTo)
    report.foldShadowTables(of: found.entries)
    if !filled.account.isFaithful || !filled.isWhole { report.isComplete = false }
    if let foreign = found.foreignModel, let layout = found.layout {
      report.note(
        entitiesOf: foreign, notIn: layout, shared: Set(layout.tables.map { found.names.table($0.name).lowercased() }))
    }
    // The new files have all content; this makes room for the migration.
    try fileSystem.unlink(folder.raw)
    try RebuildCheck.run(folder.store, found.layout, in: fileSystem, isCancelled: relay.isCancelled)
    return report
  }

  private func fill(
    _ database: GRDB.Database, _ found: RawSalvage, _ store: NewStore?, _ account: SalvageReport.Rebuild, uuid: String
  ) throws -> Filled {
    func tell(_ done: Int64, _ total: Int64) throws {
      guard options.progress(.rebuild, done, total) else { throw SalvageError.cancelled() }
    }
    let raw = try RawTables(database)
    let aside = SetAsideRows(database)
    var filled = Filled(account: account)
    if let layout = found.layout {
      filled.isWhole = found.numbering?.disputed.isEmpty != false
      var assembly = StoreAssembly(
        database: database, layout: layout, found: found, store: store, raw: raw, aside: aside, filled: filled)
      try assembly.run(uuid: uuid, tell: tell)
      try assembly.countMissingFiles(of: evidence.files, in: fileSystem)
      filled = assembly.filled
    } else {
      var assembly = PlainAssembly(
        database: database, found: found, store: store, raw: raw, aside: aside, filled: filled)
      try assembly.run(tell: tell)
      filled = assembly.filled
    }
    if aside.isUsed { filled.account.setAsideFile = folder.asidePlace }
    return filled
  }

  // MARK: The migration

  /// Migrates to the current version; returns the file, and the failure if it keeps its own version.
  private func migrate(
    _ found: RawSalvage, _ report: inout SalvageReport
  ) throws -> (file: FilePath, failure: MigrationError?) {
    guard options.migrates, case .coreData(let bundle) = model, let layout = found.layout,
      layout.model.versionHashes() != bundle.current.versionHashes
    else { return (folder.store, nil) }
    var migration = migration.settled
    migration.output = folder.migrated
    let (relay, progress, isCancelled) = (relay, migration.progress, migration.isCancelled)
    migration.isCancelled = { relay.isCancelled() || isCancelled?() == true }
    migration.progress = { step, number, count in
      relay.tell(.migration, Int64(number - 1), Int64(count)) && progress(step, number, count)
    }
    do throws(MigrationError) {
      let result = try Migrator(bundle, surroundings: surroundings).migrate(folder.store, options: migration)
      guard result.store != folder.store, !result.isNothing else { return (folder.store, nil) }
      report.rebuild?.migratedTo = bundle.current.name
      report.rebuild?.steps = result.steps.map(\.step)
      report.rebuild?.migrationLosses = result.steps.flatMap(\.losses).map { loss in
        SalvageReport.MigrationLoss(
          entity: loss.entity, property: loss.property, count: loss.rows.map { Int64($0) }, text: loss.text)
      }
      if result.steps.contains(where: { !$0.losses.isEmpty || !$0.leftBehind.isEmpty }) {
        report.isComplete = false
        report.remarks.append("the migration left out what has no place in \(printable(bundle.current.name))")
      }
      return (folder.migrated, nil)
    } catch {
      if error.kind == .cancelled { throw SalvageError.cancelled() }
      // The file system failed: a repeated migration can succeed.
      if let fileError = error.fileError { throw SalvageError(fileError) }
      report.rebuild?.migrationFailure = "\(error.detail) [\(error.code)]"
      report.isComplete = false
      return (folder.store, error)
    }
  }
}

extension StoreReconstruction {
  /// Installs the set-aside rows, the large values, the report, then the store.
  func install(
    _ result: FilePath, _ target: SalvageTarget, _ aside: SalvageTarget,
    _ report: SalvageReport
  ) throws {
    let external = folder.externalPlace
    var isReported = false
    do {
      let hasAside = report.rebuild?.setAsideFile != nil
      if hasAside { try fileSystem.synchronizeFile(folder.aside) } else { try fileSystem.unlink(folder.aside) }
      let hasExternal = report.isCoreData ? try copyExternalData(to: folder.external) : false
      try fileSystem.synchronizeFile(result)
      try folder.noteInstallation()
      if hasAside { try fileSystem.install(folder.aside, at: aside.path, replacing: false) }
      if hasExternal {
        try fileSystem.rename(folder.external, to: external)
        try fileSystem.synchronizeDirectory(external.folder)
      }
      if options.writesReport {
        try report.write(beside: output, in: fileSystem)
        isReported = true
      }
      try fileSystem.install(result, at: target.path, replacing: false)
    } catch {
      // The earlier error counts; the next run removes the rest.
      try? folder.takeBack()
      if isReported { SalvageReport.remove(beside: output, in: fileSystem) }
      throw SalvageError(any: error, path: target.path)
    }
  }

  /// The records have the files' names.
  private func copyExternalData(to target: FilePath) throws(FileError) -> Bool {
    let source = evidence.files.path(of: .externalData)
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return false }
    let content = try evidence.files.largeValues(in: fileSystem)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      do {
        _ = try fileSystem.copy(file.path, to: target.appending(file.relative))
      } catch {
        throw error as? FileError ?? FileError(.other, operation: "copy the large values", path: file.path)
      }
    }
    for folder in content.folders { try fileSystem.synchronizeDirectory(target.appending(folder)) }
    try fileSystem.synchronizeDirectory(target)
    return true
  }

  func requireSpace(at folder: FilePath) throws(FileError) {
    let needed = try SalvageNeeds(of: evidence.files, in: fileSystem).workingBytes(model, migrates: options.migrates)
    let free = try fileSystem.freeSpace(at: folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "salvage the store", path: folder,
      detail: "the salvage needs \(needed) bytes and \(free) are free",
      hint: "Free \(needed - free) bytes, then try again; the store is as it was.", details: .init(neededBytes: needed))
  }
}

/// The disk space for a salvage.
package struct SalvageNeeds: Sendable, Hashable {
  /// The database and its WAL.
  var storeBytes: Int64 = 0

  /// The large values in files.
  var externalBytes: Int64 = 0

  package init(of files: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    for part in [StoreFileSet.Part.main, .wal] {
      storeBytes += try fileSystem.status(of: files.path(of: part))?.occupiedSize ?? 0
    }
    for file in try files.largeValues(in: fileSystem).files where file.status.kind == .regular {
      externalBytes += file.status.occupiedSize
    }
  }

  /// The largest size of the result's folder during a salvage.
  func workingBytes(_ model: SalvageModel?, migrates: Bool) -> Int64 {
    var copies: Int64 = 1
    if migrates, case .coreData(let bundle)? = model, bundle.versions.count > 1 { copies = 2 }
    return copies * storeBytes + externalBytes
  }

  /// The space for a kept result and its copy at the store's path.
  package func installingBytes(_ model: SalvageModel?) -> Int64 {
    max(workingBytes(model, migrates: true), 2 * storeBytes + 2 * externalBytes)
  }
}
