internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

extension Migrator {
  /// Makes good what a store lacks of its own model, and leaves it at its version.
  ///
  /// On a copy, verified, and swapped in with the journal of a migration; the original is kept as that of one.
  ///
  /// - Throws: `MigrationError`: `repair-refused` for what cannot be made good without guessing, `source-model-missing` where
  ///   the store's own model is not at hand; the store is then as it was.
  public func repair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Result {
    do throws(MigrationError) {
      return try migrate(path, options: Self.repairing(options))
    } catch {
      throw error.ofRepair
    }
  }

  /// Says what a repair would do; touches nothing.
  ///
  /// The repair is carried out on a private copy in the folder for temporary files, which is thrown away, so that it says
  /// exactly what the repair itself does.
  public func planRepair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> RepairAccount {
    do {
      let options = Self.repairing(options)
      let original = try StoreFileSet.locate(path, in: fileSystem)
      guard try fileSystem.status(of: original.main) != nil else {
        throw FileError(.notFound, operation: "plan the repair", path: path)
      }
      let view = StoreView(of: original, surroundings: surroundings)
      let found = try view.read { database in
        let facts = try StoreFacts(database)
        let repair = try repairStep(facts, database, options)
        // What the repair itself is refused for.
        _ = try way(from: facts, options)
        return repair
      }
      guard let step = found.step else { return found.nothing }
      return try view.onCopy { file in
        try FileIntegrity.checkSource(file, in: fileSystem)
        return try step.run(on: file, aside: file.sibling(suffix: "-set-aside")).account
      }
    } catch {
      var error = MigrationError(database: error, path: path)
      if error.path == nil { error.path = path }
      throw error.ofRepair
    }
  }

  /// Whether there is something that a repair would add; false where nothing is missing, or only what has to be left out.
  package func hasSomethingToRepair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Bool {
    do {
      let options = Self.repairing(options)
      let view = StoreView(of: try StoreFileSet.locate(path, in: fileSystem), surroundings: surroundings)
      return try view.read { database in try repairStep(StoreFacts(database), database, options).step != nil }
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  private static func repairing(_ options: Options) -> Options {
    var options = options
    options.onlyRepairs = true
    options.version = nil
    options.via = []
    if options.repair == .nothing { options.repair = .structure }
    return options
  }

  // MARK: The step

  /// A repair that is to be carried out.
  struct RepairStep {
    let entry: LayoutCache.Entry

    /// The version that the store is of; nil for a model that only the store carries.
    let version: String?
    let scope: RepairScope

    /// What `NSCoreDataNow` says, in seconds since 2001-01-01T00:00:00Z.
    var referenceDate: Double

    var name: String { MigrationStep.repairName(of: version) }

    /// Repairs a copy that is open nowhere else, and brings everything into its main file.
    ///
    /// - Parameter aside: where what a repair of records takes out goes; there is no such file yet.
    func run(
      on copy: FilePath, aside: FilePath
    ) throws(MigrationError) -> (account: RepairAccount, made: MadeValues, renumberings: [String: Renumbering]) {
      let connection = try StepConnection(copy, .write, referenceDate: referenceDate)
      let outcome = try connection.run { database in
        // Both version bytes of the header say WAL, as in every store of Core Data's (format section 3.1).
        try database.execute(
          sql: """
            PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;
            PRAGMA wal_autocheckpoint = 0
            """)
        if scope == .data {
          try WorkingConnection.attach(aside, .create, as: "aside", to: database)
          try database.execute(sql: "PRAGMA aside.synchronous = OFF")
        }
        var run = try RepairRun(database, entry, version: version, scope: scope)
        try run.run()
        if scope == .data { try database.execute(sql: "DETACH DATABASE aside") }
        try database.bringLogIntoMainFile()
        return (run.account, run.made, run.renumberings)
      }
      try connection.close()
      return outcome
    }
  }

  /// The repair that a store needs; nil for none, with the account that says so.
  func repairStep(
    _ facts: StoreFacts, _ database: Database, _ options: Options
  ) throws -> (step: RepairStep?, nothing: RepairAccount) {
    guard options.repair != .nothing else {
      return (nil, RepairAccount(version: version(of: facts)?.name, scope: .nothing))
    }
    let (model, version) = try ownModel(facts)
    let entry = try LayoutCache().entry(for: model)
    let step = RepairStep(
      entry: entry, version: version, scope: options.repair,
      referenceDate: surroundings.now().secondsSinceReferenceDate)
    var run = try RepairRun(database, entry, version: version, scope: options.repair)
    guard try run.hasNothingToAdd() else { return (step, run.account) }
    // Nothing else needs the number, and counting takes as long as reading the store.
    if options.onlyRepairs {
      try Self.requireSound(database)
      try run.countRows()
      try run.tellDangling()
    }
    return (nil, run.account)
  }

  /// Refuses a store that SQLite's check finds damaged, its indexes included: that there is nothing to repair would be said of it.
  private static func requireSound(_ database: Database) throws {
    // Values that a constraint of the app's own forbids are no damage.
    let lines = try IntegrityCheck.evidenceLines(of: database).lines.filter { line in
      line != "ok" && !line.contains(" value in ") && !line.hasPrefix("CHECK constraint failed")
    }
    guard lines.isEmpty else {
      throw MigrationError(.sourceDamaged, detail: "SQLite finds its pages or indexes damaged")
    }
  }

  /// The model that a store was written with, and the version of the bundle that it is.
  private func ownModel(_ facts: StoreFacts) throws(MigrationError) -> (ManagedObjectModel, String?) {
    switch try source(facts) {
    case .version(let name), .stored(let name, _):
      guard let known = bundle.version(named: name) else {
        throw MigrationError(.unknownVersion, operation: "plan the repair", detail: "there is no such version")
      }
      return (known.model, name)
    case .model(let model): return (model, nil)
    }
  }

  // MARK: In a run

  /// Carries the repair out as the first step of a run.
  func carryOut(_ repair: RepairStep, _ run: inout StepRun) throws(MigrationError) {
    var repair = repair
    repair.referenceDate = run.journal.referenceDate
    guard run.options.progress(repair.name, run.number, run.journal.steps.count) else {
      throw MigrationError(.cancelled, detail: "it was cancelled before step \(printable(repair.name))")
    }
    MigrationTrace.current?.begin(named: repair.name, number: run.number)
    let (folder, number, members) = (run.folder, run.number, run.journal.members)
    try wrapping(MigrationError.init) { () throws(FileError) in
      try folder.removeUnfinished(number)
      try folder.removeAside()
    }
    try requireSpace(for: run, .rebuild)
    let source = run.source
    let (account, made) = try reading(source, members) { () throws(MigrationError) in
      do throws(MigrationError) {
        return try verified(repair, source.path, folder.unfinished(number), aside: folder.asidePath)
      } catch {
        throw error.ofRepair
      }
    }
    if !account.setsAside { try wrapping(MigrationError.init) { () throws(FileError) in try folder.removeAside() } }
    run.journal.made = made
    var step = StepAccount(step: repair.name, way: .repair)
    step.repair = account
    try record([step], of: [], &run)
    MigrationTrace.current?.finish(named: repair.name, number: number, step)
  }

  /// Repairs a copy of a file, checks it and pushes it to the disk.
  private func verified(
    _ repair: RepairStep, _ source: FilePath, _ target: FilePath, aside: FilePath
  ) throws(MigrationError) -> (RepairAccount, MadeValues) {
    let fileSystem = fileSystem
    // What is damaged is not repaired but salvaged; the pages are checked while the copy is changed.
    let (_, outcome) = try concurrently { () throws(MigrationError) in
      try FileIntegrity.checkSource(source, in: fileSystem)
    } _: { () throws(MigrationError) in
      try wrapping(MigrationError.init) { () throws(FileError) in try fileSystem.duplicate(source, to: target) }
      return try repair.run(on: target, aside: aside)
    }
    let verification = RepairVerification(
      layout: repair.entry.layout, account: outcome.account, renumberings: outcome.renumberings,
      aside: repair.scope == .data ? aside : nil)
    _ = try concurrently { () throws(MigrationError) in
      try wrapping(MigrationError.init) { () throws(FileError) in
        try fileSystem.synchronizeFile(target)
        if repair.scope == .data { try fileSystem.synchronizeFile(aside) }
      }
      try FileIntegrity.check(target, in: fileSystem)
    } _: { () throws(MigrationError) in
      try verification.check(target, against: source)
    }
    return (outcome.account, outcome.made)
  }
}

extension MigrationStep {
  /// What a repair is called among the steps of a migration.
  static func repairName(of version: String?) -> String { "repair of \(version ?? "the store's model")" }
}
