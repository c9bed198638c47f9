public import Logging
public import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

/// Migrates stores to a model version: step by step on a verified copy, resumable after a kill.
///
/// The original is untouched until the last step has passed every check, then becomes the backup. An interrupted
/// migration resumes after its last finished step.
public struct Migrator: Sendable {
  let bundle: ModelBundle
  let surroundings: Surroundings
  let logger: Logger

  /// The app's version, for reports.
  package var appVersion: String?

  /// Opens and closes the live migrated store as its owner will; if it throws, the original is put back.
  package var checkOpening: @Sendable (FilePath) throws -> Void = { path in
    let store = try PersistentStore(opening: path)
    _ = try store.metadata()
    try store.close()
  }

  /// The folder for originals; nil chooses one by store name.
  ///
  /// Called when the swap is about to start.
  package var backupsFolder: (@Sendable (_ store: StoreFileSet, _ home: FilePath) throws(FileError) -> FilePath)?

  /// Called under the lock, because another migration may have done the work.
  package var isStillNeeded: @Sendable () throws -> Bool = { true }
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// Makes a migrator for an app's stores.
  ///
  /// - Parameter logger: Logs steps at `info`, mappings and SQL at `debug`, without values.
  public init(
    _ bundle: ModelBundle, surroundings: Surroundings = .machine,
    logger: Logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
  ) {
    self.bundle = bundle
    self.surroundings = surroundings
    self.logger = logger
  }

  /// Migrates a store.
  ///
  /// - Throws: `MigrationError`; the store is then unchanged, or the next call resumes.
  public func migrate(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Result {
    try recorded(path, options) { try run(path, options) }
  }

  private func run(_ path: FilePath, _ options: Options) throws -> Result {
    let finished = options.output == nil ? try finishInterruptedSwap(path) : nil
    let result = try begin(path, options)
    // An earlier run's nearly finished result is this run's, unless more is to do.
    return result.isNothing ? finished ?? result : result
  }

  private func begin(_ path: FilePath, _ options: Options) throws -> Result {
    let original = try StoreFileSet.locate(path, in: fileSystem)
    var place = original
    if let output = options.output {
      place = try StoreFileSet.locate(output, in: fileSystem)
      if let member = try place.members(in: fileSystem).first {
        throw FileError(.alreadyExists, operation: "migrate the store", path: member.path)
      }
    }
    try requireStore(original)
    let folder = WorkingFolder(for: place, in: fileSystem)
    var attempt = 1
    while true {
      let lock = try takeLock(folder)
      do {
        let result = try migrate(original, to: place, folder, options)
        lock.release()
        return result
      } catch {
        let error = MigrationError(any: error)
        // Another process wrote to the store, so start over.
        guard error.fileError?.kind == .changed, attempt < Self.attempts else { throw error }
        try folder.remove()
        attempt += 1
      }
    }
  }

  /// Throws if there is no store.
  ///
  /// Reports `notFound` only under the folder lock, which every exchange holds, because a name may be missing during an
  /// exchange.
  private func requireStore(_ original: StoreFileSet) throws(FileError) {
    if try fileSystem.status(of: original.main) != nil { return }
    let lock = try FolderLock(original.folder, in: fileSystem)
    let isThere = try fileSystem.status(of: original.main) != nil
    lock.release()
    if isThere { return }
    // An interrupted replacement is finished by the next call.
    let isReplaced = try isReplacing(original)
    throw FileError(isReplaced ? .changed : .notFound, operation: "migrate the store", path: original.main)
  }

  /// The attempts if another process keeps writing.
  static let attempts = 3

  private func migrate(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ options: Options
  ) throws -> Result {
    if options.output == nil, let done = try finishLocked(original, folder) { return done }
    guard try isStillNeeded() else {
      try folder.remove()
      return Result(store: original.main)
    }
    let work = try beginWork(original, folder, options)
    guard !work.journal.steps.isEmpty else {
      if options.output != nil {
        // Nothing to do, but the caller expects a file.
        if work.source.original != nil {
          try fileSystem.duplicate(work.source.path, to: folder.unfinished(0))
          try fileSystem.synchronizeFile(folder.unfinished(0))
          try installStep(0, as: 0, folder)
        }
        return try deliver(original, to: place, folder, work.journal, resumed: 0)
      }
      try folder.remove()
      var result = Result(store: original.main)
      result.repair = work.nothing
      return result
    }
    MigrationTrace.current?.plan(work.journal, work.path)
    let journal = try carryOutOrClear(work, folder, options)
    if options.output == nil {
      return try swap(original, folder, journal, options.home, resumed: work.journal.finished)
    }
    return try deliver(original, to: place, folder, journal, resumed: work.journal.finished)
  }

  /// Removes the working folder on failure.
  func beginWork(_ original: StoreFileSet, _ folder: WorkingFolder, _ options: Options) throws -> Work {
    do {
      return try resumeOrPlan(original, folder, options)
    } catch {
      let error = MigrationError(any: error)
      // Keep an earlier run's finished steps.
      if let journal = try? folder.journal(), journal.finished > 0, error.isEnvironmental { throw error }
      // Report the first error only; the next run cleans up.
      try? folder.remove()
      throw error
    }
  }

  private func carryOutOrClear(_ work: Work, _ folder: WorkingFolder, _ options: Options) throws -> MigrationJournal {
    do {
      return try carryOut(work, folder, options)
    } catch {
      let error = MigrationError(any: error)
      // A failure of the store itself would repeat: keep nothing.
      if !error.isEnvironmental, error.kind != .cancelled { try? folder.remove() }
      // Keep only finished steps and the record of app code already run.
      if let journal = try? folder.journal(), journal.isWorthNothing { try? folder.remove() }
      throw error
    }
  }

  /// Makes the working folder and excludes other migrations of the store.
  func takeLock(_ folder: WorkingFolder) throws -> FolderLock {
    var attempts = 1_000
    while true {
      do throws(FileError) {
        try folder.make()
        let before = try fileSystem.status(of: folder.path, followingLinks: false)?.identity
        let lock = try FolderLock(folder.path, in: fileSystem)
        // The folder may be gone; the lock is then void.
        let after = try fileSystem.status(of: folder.path, followingLinks: false)?.identity
        if let before, before == after { return lock }
      } catch {
        attempts -= 1
        if error.kind != .notFound || attempts == 0 { throw MigrationError(error) }
      }
    }
  }

  struct Work {
    var path: MigrationPath

    var repair: RepairStep?

    /// The account if only a repair was requested and has nothing to add.
    var nothing: RepairAccount?
    var journal: MigrationJournal
    var source: StepSource
  }

  struct StepSource {
    let path: FilePath

    /// The store itself if it is only read: it has no WAL and is watched for changes.
    var original: StoreFileSet?
  }

  // MARK: The copy

  private func resumeOrPlan(_ original: StoreFileSet, _ folder: WorkingFolder, _ options: Options) throws -> Work {
    try checkExternalData(original)
    let members = MigrationJournal.members(try original.members(in: fileSystem))
    if let journal = try folder.journal(), journal.members == members,
      journal.request == request(options), journal.phase == .stepping, journal.store.path == original.main,
      let file = try lastFile(journal, folder)
    {
      if let path = try rest(of: journal, file, options) {
        return Work(path: path, repair: nil, nothing: nil, journal: journal, source: StepSource(path: file))
      }
    }
    try folder.clear()
    // Without a WAL the store can be read in place.
    let isWhole = members.allSatisfy { $0.part == .main || $0.size == 0 }
    if !isWhole { try copy(original, folder, members) }
    let source = isWhole ? StepSource(path: original.main, original: original) : StepSource(path: folder.step(0))
    let (path, repair, nothing) = try reading(source, members) {
      let (path, repair, nothing) = try wayAndRepair(source.path, options)
      // If tables are missing, records are counted after the repair.
      if repair == nil { try refuseLosses(path, source.path, options) }
      return (path, repair, nothing)
    }
    let repairs = repair.map { [MigrationJournal.Step(repairOf: $0.version, $0.entry.layout.model)] } ?? []
    let journal = MigrationJournal(
      request: request(options), store: PathText(original.main), members: members, begun: surroundings.now().rfc3339,
      steps: repairs
        + path.steps.map { step in
          MigrationJournal.Step(
            source: step.sourceName ?? "", destination: step.destinationName,
            sourceChecksum: ManagedObjectModel.versionChecksum(of: step.mapping.sourceHashes),
            destinationChecksum: ManagedObjectModel.versionChecksum(of: step.mapping.destinationHashes))
        })
    try folder.write(journal)
    return Work(
      path: path, repair: repair, nothing: options.onlyRepairs ? nothing : nil, journal: journal, source: source)
  }

  /// Reads a step's source and, for the store itself, checks for concurrent writes.
  ///
  /// - Throws: `changed-meanwhile` above all; else the reading error.
  func reading<Value>(
    _ source: StepSource, _ members: [MigrationJournal.Member], _ body: () throws -> Value
  ) throws -> Value {
    guard let original = source.original else { return try body() }
    func check() throws {
      guard MigrationJournal.members(try original.members(in: fileSystem)) == members else {
        throw FileError(.changed, operation: "copy the store", path: original.main)
      }
    }
    // The lock blocks writers in rollback mode; in WAL mode their traces show.
    do {
      let lock = try SharedStoreLock(on: original, in: fileSystem)
      try check()
      let value = Swift.Result { try body() }
      try check()
      lock.release()
      return try value.get()
    } catch { throw MigrationError(any: error, path: original.main) }
  }

  /// The last finished file, if it matches the journal.
  private func lastFile(_ journal: MigrationJournal, _ folder: WorkingFolder) throws -> FilePath? {
    let number = journal.finished
    guard number > 0 else { return nil }
    let path = folder.step(number)
    let status = try fileSystem.status(of: path, followingLinks: false)
    guard let status, MigrationJournal.FileStamp(status) == journal.steps[number - 1].file else { return nil }
    return path
  }

  /// Copies the set and checkpoints the copy; the original is only read.
  private func copy(_ original: StoreFileSet, _ folder: WorkingFolder, _ members: [MigrationJournal.Member]) throws {
    let target = StoreFileSet(main: folder.unfinished(0))
    do {
      let lock = try SharedStoreLock(on: original, in: fileSystem)
      var size: Int64 = 0
      for member in members {
        size += try fileSystem.status(of: original.path(of: member.part))?.occupiedSize ?? member.size
      }
      try requireSpace(size, at: folder.path)
      for member in members {
        try fileSystem.duplicate(original.path(of: member.part), to: target.path(of: member.part))
      }
      let now = MigrationJournal.members(try original.members(in: fileSystem))
      lock.release()
      guard now == members else { throw FileError(.changed, operation: "copy the store", path: original.main) }
    } catch { throw MigrationError(any: error, path: original.main) }
    try StepConnection.checkpoint(target.main, .write)
    try installStep(0, as: 0, folder)
  }

  func installStep(_ unfinished: Int, as number: Int, _ folder: WorkingFolder) throws {
    let path = folder.unfinished(unfinished)
    for suffix in ["-wal", "-shm", "-journal"] { try fileSystem.unlink(path.sibling(suffix: suffix)) }
    try fileSystem.install(path, at: folder.step(number), replacing: true)
  }

  /// Throws if the disk is too full, with the bytes needed.
  ///
  /// - Parameters:
  ///   - needed: The bytes of the next task.
  ///   - whole: The peak need, for the error; by default `needed`.
  func requireSpace(_ needed: Int64, of whole: Int64? = nil, at folder: FilePath) throws(FileError) {
    MigrationTrace.current?.need(needed)
    let free = try fileSystem.freeSpace(at: folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "migrate the store", path: folder,
      detail: "the migration needs \(whole ?? needed) bytes and \(free) are free",
      hint: "Free \((whole ?? needed) - free) bytes, then try again; the store is as it was.",
      details: .init(neededBytes: whole ?? needed))
  }
}

extension Migrator {
  /// The options of a migration.
  public struct Options: Sendable {
    /// The target version; nil for the current one.
    public var version: String?

    /// Whether to take one step only.
    public var isDirect = false

    /// The versions to pass through, in order.
    public var via: [String] = []

    /// The reaction to a loss of data the target still has.
    public var whenMigrationLoses = LossRemedy.refuse

    /// The extent of the repair before the migration.
    public var repair = RepairScope.structure

    var onlyRepairs = false

    /// Whether names win over renaming identifiers, for salvages.
    package var matchesNames = false

    /// The output path; nil replaces the original.
    public var output: FilePath?

    /// The folder of `Backups/`; nil for the store's own.
    public var home: FilePath?

    /// The custom mappings, used if their hashes match.
    public var mappings: [MappingModel] = []

    /// Whether to always rebuild, which also compacts the file.
    public var alwaysRebuilds = false

    /// The policies of mappings.
    public var policies = MigrationPolicies()

    /// The app code around steps.
    public var stages: [MigrationStage] = []

    /// Free text for policies and handlers.
    public var userInfo: [String: String] = [:]

    /// Called before each step with its name, number from 1, and the step count; false cancels.
    public var progress: @Sendable (_ step: String, _ number: Int, _ count: Int) -> Bool = { _, _, _ in true }

    /// Whether to cancel; nil for never.
    ///
    /// Polled twice a second on another thread, because an SQL statement may take minutes.
    public var isCancelled: (@Sendable () -> Bool)?

    /// Whether to write a failure report to `Reports/` or a line to `migrations.jsonl`, in the home or the store's
    /// folder.
    public var isRecorded = false

    /// Makes options for the current version, in place.
    public init() {}
  }

  /// The result of a migration.
  public struct Result: Sendable, Hashable, Encodable {
    /// The migrated store.
    public var store: FilePath

    /// The replaced original.
    public var backup: FilePath?

    /// The steps' accounts; empty at the target version.
    public var steps: [StepAccount]

    /// The repair, if any, with remaining problems.
    public var repair: RepairAccount?

    /// The steps an earlier run finished.
    public var resumedSteps: Int

    /// The metrics; nil if there was no work.
    public var metrics: MigrationMetrics?

    /// The set-aside file of a repair, next to the original, or to a result elsewhere.
    public var setAside: FilePath? {
      guard repair?.setsAside == true else { return nil }
      return (backup ?? store).sibling(suffix: RepairAccount.asideSuffix)
    }

    /// Whether there was nothing to do.
    public var isNothing: Bool { steps.isEmpty && repair?.isNothing != false }

    /// Encodes the store, the steps and the metrics.
    public func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "store": PathText(store), "backup": backup.map { PathText($0) }, "resumedSteps": resumedSteps,
        "metrics": metrics, "steps": steps, "repair": repair,
      ])
    }

    /// - Parameters:
    ///   - journal: The finished steps, a repair first; nil if there was no work.
    ///   - resumed: The steps of an earlier run.
    init(store: FilePath, backup: FilePath? = nil, _ journal: MigrationJournal? = nil, resumed: Int = 0) {
      let accounts = (journal?.steps ?? []).compactMap(\.account)
      self.store = store
      self.backup = backup
      steps = accounts.filter { $0.repair == nil }
      repair = accounts.lazy.compactMap(\.repair).first
      resumedSteps = max(0, resumed - (accounts.count - steps.count))
    }
  }
}

extension Migrator {
  /// The digest of versions, mappings, policies and stages, but not of their code.
  func request(_ options: Options) -> String {
    var parts = bundle.versions.map { "\($0.name) \($0.checksum) \(Self.unhashed($0.model))" }
    parts.append("repair \(options.repair.rawValue) \(options.onlyRepairs)")
    parts.append("names \(options.matchesNames)")
    parts += ["to \(options.version ?? bundle.current.name)", "direct \(options.isDirect)"]
    parts += options.via.map { "via \($0)" } + ["losses \(options.whenMigrationLoses.rawValue)"]
    parts += ["rebuild \(options.alwaysRebuilds)"]
    for mapping in options.mappings { parts += Self.parts(of: mapping) }
    parts += options.policies.names.map { "policy \($0)" }
    parts += options.stages.map { stage in
      "stage \(stage.source ?? "") \(stage.destination ?? "") \(stage.willMigrate != nil) \(stage.didMigrate != nil)"
    }
    parts += options.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    return FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  /// The model facts outside version hashes that affect values: renaming identifiers, defaults.
  private static func unhashed(_ model: ManagedObjectModel) -> String {
    var parts: [String] = []
    for entity in model.entities.values {
      if let identifier = entity.explicitRenamingIdentifier { parts.append("\(entity.name)=\(identifier)") }
      for property in entity.properties.values {
        let identifier = property.traits.explicitRenamingIdentifier
        let value = property.attribute?.defaultValue?.plainText
        guard identifier != nil || value != nil else { continue }
        parts.append("\(entity.name).\(property.name)=\(identifier ?? "") \(value ?? "")")
      }
    }
    parts.sort(by: precedesByCodeUnit)
    return FileDigest(of: Array(parts.joined(separator: "\n").utf8)).hexadecimal
  }

  private static func parts(of mapping: MappingModel) -> [String] {
    var parts = [
      "mapping \(ManagedObjectModel.versionChecksum(of: mapping.sourceHashes)) "
        + ManagedObjectModel.versionChecksum(of: mapping.destinationHashes)
    ]
    for entity in mapping.entityMappings {
      parts.append(
        "\(entity.name) \(entity.kind) \(entity.sourceEntityName ?? "") \(entity.destinationEntityName ?? "") "
          + "\(entity.policyClassName ?? "") \(entity.sourceFilter.map { "\($0)" } ?? "")")
      parts += entity.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      for property in entity.propertyMappings {
        parts.append("\(property.destination) \(property.value) \(property.replacesNilWithDefault)")
        parts += property.userInfo.ordered { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      }
    }
    return parts
  }
}

/// The reaction to a migration that would delete what the target still has.
///
/// This means same-named entities or properties with different renaming identifiers, and entities with records that the
/// target has by name or identifier. Data the target simply lacks, or replaces by a rename, is excluded.
public enum LossRemedy: String, Sendable, Hashable, CaseIterable {
  case refuse

  /// Migrate as Core Data would, keep the original and report the loss.
  case migrate
}
