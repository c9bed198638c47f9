internal import GRDB
public import Logging
public import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

/// Migrates stores to a version of a model: on a copy, step by step, verified, and resumed after a kill.
///
/// The original is not touched until the last step has passed every check; then it becomes the backup. A process that finds a
/// migration that was interrupted goes on from its last finished step.
public struct Migrator: Sendable {
  let bundle: ModelBundle
  let surroundings: Surroundings
  let logger: Logger

  /// The app's own version, for reports.
  package var appVersion: String?

  /// Opens the migrated store in its place as its owner will, and closes it again; what it throws brings the original
  /// back.
  package var checkOpening: @Sendable (FilePath) throws -> Void = { path in
    let store = try PersistentStore(opening: path)
    _ = try store.metadata()
    try store.close()
  }

  /// The folder that the original of a store goes to, made where it is not there; nil chooses one by the name of the store.
  ///
  /// Asked when the migrated store is whole and is about to take the original's place.
  package var backupsFolder: (@Sendable (_ store: StoreFileSet, _ home: FilePath) throws(FileError) -> FilePath)?

  /// Asked once other migrations of the same store are kept out, because one of them may have done it meanwhile.
  package var isStillNeeded: @Sendable () throws -> Bool = { true }
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// A migrator for the stores of an app.
  ///
  /// - Parameter logger: told of each step at `info`, of each mapping and each statement of SQL at `debug`, without values.
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
  /// - Throws: `MigrationError`; the store is then as it was, or the migration goes on when it is called again.
  public func migrate(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Result {
    try recorded(path, options) { () throws(MigrationError) in try run(path, options) }
  }

  private func run(_ path: FilePath, _ options: Options) throws(MigrationError) -> Result {
    if options.output == nil, let finished = try finishInterruptedSwap(path) {
      // What an earlier run had done but for its end is this run's result, unless there is more to do.
      let result = try begin(path, options)
      return result.isNothing ? finished : result
    }
    return try begin(path, options)
  }

  private func begin(_ path: FilePath, _ options: Options) throws(MigrationError) -> Result {
    let original = try wrapping(MigrationError.init) { () throws(FileError) in
      try StoreFileSet.locate(path, in: fileSystem)
    }
    let place = try wrapping(MigrationError.init) { () throws(FileError) in
      guard let output = options.output else { return original }
      return try StoreFileSet.locate(output, in: fileSystem)
    }
    if options.output != nil,
      let member = try wrapping(MigrationError.init, { () throws(FileError) in try place.members(in: fileSystem) })
        .first
    {
      throw MigrationError(FileError(.alreadyExists, operation: "migrate the store", path: member.path))
    }
    try wrapping(MigrationError.init) { () throws(FileError) in try requireStore(original) }
    let folder = WorkingFolder(for: place, in: fileSystem)
    var attempt = 1
    while true {
      let lock = try takeLock(folder)
      do throws(MigrationError) {
        let result = try migrate(original, to: place, folder, options)
        _ = consume lock
        return result
      } catch {
        // Another process wrote to the store meanwhile: what was made of it is void, and the next attempt starts afresh.
        guard error.fileError?.kind == .changed, attempt < Self.attempts else { throw error }
        try wrapping(MigrationError.init) { () throws(FileError) in try folder.remove() }
        attempt += 1
      }
    }
  }

  /// Makes sure that there is a store.
  ///
  /// While another process exchanges it, its name can be missing for a moment. That it is not there is said only of a place
  /// that no process is changing: under the lock of its folder, which every exchange holds from its first step to its last.
  private func requireStore(_ original: StoreFileSet) throws(FileError) {
    if try fileSystem.status(of: original.main) != nil { return }
    let lock = try FolderLock(original.folder, in: fileSystem)
    let isThere = try fileSystem.status(of: original.main) != nil
    _ = consume lock
    if isThere { return }
    // A process that was replacing it has ended in the middle of that: the next call finishes it first.
    let isReplaced = try isReplacing(original)
    throw FileError(isReplaced ? .changed : .notFound, operation: "migrate the store", path: original.main)
  }

  /// How often a migration is begun where another process writes to the store each time.
  static let attempts = 3

  private func migrate(
    _ original: StoreFileSet, to place: StoreFileSet, _ folder: WorkingFolder, _ options: Options
  ) throws(MigrationError) -> Result {
    if options.output == nil, let done = try finishedByAnother(original, folder) { return done }
    guard try isNeeded() else {
      try wrapping(MigrationError.init) { () throws(FileError) in try folder.remove() }
      return Result(store: original.main, backup: nil, accounts: [], resumed: 0)
    }
    let work = try prepared(original, folder, options)
    guard !work.journal.steps.isEmpty else {
      if options.output != nil {
        // Nothing to do, but a caller waits for the file.
        if work.source.original != nil {
          try wrapping(MigrationError.init) { () throws(FileError) in
            try fileSystem.duplicate(work.source.path, to: folder.unfinished(0))
            try fileSystem.synchronizeFile(folder.unfinished(0))
          }
          try finish(0, as: 0, folder)
        }
        return try deliver(original, to: place, folder, work.journal, resumed: 0)
      }
      try wrapping(MigrationError.init) { () throws(FileError) in try folder.remove() }
      var result = Result(store: original.main, backup: nil, accounts: [], resumed: 0)
      result.repair = work.nothing
      return result
    }
    MigrationTrace.current?.plan(work.journal, work.path)
    let journal = try finished(work, folder, options)
    if options.output == nil {
      return try swap(original, folder, journal, options.home, resumed: work.journal.finished)
    }
    return try deliver(original, to: place, folder, journal, resumed: work.journal.finished)
  }

  /// What a run that ended while this one waited for the lock has left to be finished.
  private func finishedByAnother(
    _ original: StoreFileSet, _ folder: WorkingFolder
  ) throws(MigrationError) -> Result? {
    do { return try finishLocked(original, folder) } catch { throw MigrationError(database: error, path: nil) }
  }

  private func isNeeded() throws(MigrationError) -> Bool {
    do { return try isStillNeeded() } catch { throw MigrationError(database: error, path: nil) }
  }

  /// The work of a migration; where it cannot be begun, nothing of the working folder is left.
  func prepared(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ options: Options
  ) throws(MigrationError) -> Work {
    do throws(MigrationError) {
      return try prepare(original, folder, options)
    } catch {
      // Steps that an earlier run finished are kept; without a journal there are none.
      if let journal = try? folder.journal(), journal.finished > 0, error.isEnvironmental { throw error }
      // The first error is the one to report; what is left is removed by the next run.
      try? folder.remove()
      throw error
    }
  }

  private func finished(
    _ work: Work, _ folder: WorkingFolder, _ options: Options
  ) throws(MigrationError) -> MigrationJournal {
    do throws(MigrationError) {
      return try carryOut(work, folder, options)
    } catch {
      // What failed for a reason in the store fails again: nothing of it is kept.
      if !error.isEnvironmental, error.kind != .cancelled { try? folder.remove() }
      // Nothing stays but finished steps, from which the next run goes on, and what it must know of code that has run.
      if let journal = try? folder.journal(), journal.isWorthNothing { try? folder.remove() }
      throw error
    }
  }

  /// Makes the working folder and keeps other migrations of the same store out.
  func takeLock(_ folder: WorkingFolder) throws(MigrationError) -> FolderLock {
    var attempts = 1_000
    while true {
      do throws(FileError) {
        try folder.make()
        let before = try fileSystem.status(of: folder.path, followingLinks: false)?.identity
        let lock = try FolderLock(folder.path, in: fileSystem)
        // The process that had the lock may have removed the folder; then the lock is on nothing.
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

    /// The repair that comes before the steps; nil where the store lacks nothing, or an earlier run has finished it.
    var repair: RepairStep?

    /// What a repair that has nothing to add says of what stays as it is; nil where more than a repair was asked for.
    var nothing: RepairAccount?
    var journal: MigrationJournal
    var source: StepSource
  }

  /// The file that the next step starts from.
  struct StepSource {
    let path: FilePath

    /// The store itself where that is only read: it has no log, and it has not been written to as long as it is unchanged.
    var original: StoreFileSet?
  }

  // MARK: The copy

  /// Takes up an interrupted migration, or plans a new one.
  private func prepare(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ options: Options
  ) throws(MigrationError) -> Work {
    try wrapping(MigrationError.init) { () throws(FileError) in try checkExternalData(original) }
    let members = try wrapping(MigrationError.init) { () throws(FileError) in
      MigrationJournal.members(try original.members(in: fileSystem))
    }
    if let journal = try wrapping(MigrationError.init, { () throws(FileError) in try folder.journal() }),
      journal.members == members,
      journal.request == request(options), journal.phase == .stepping, journal.store.path == original.main,
      let file = try lastFile(journal, folder)
    {
      if let path = try rest(of: journal, file, options) {
        return Work(path: path, repair: nil, nothing: nil, journal: journal, source: StepSource(path: file))
      }
    }
    try wrapping(MigrationError.init) { () throws(FileError) in try folder.clear() }
    // Without a log the store itself can be read; it is never written to.
    let isWhole = members.allSatisfy { $0.part == .main || $0.size == 0 }
    if !isWhole { try copy(original, folder, members) }
    let source = isWhole ? StepSource(path: original.main, original: original) : StepSource(path: folder.step(0))
    let (path, repair, nothing) = try reading(source, members) { () throws(MigrationError) in
      let (path, repair, nothing) = try wayAndRepair(source.path, options)
      // Of a store that lacks tables, records are counted when it has been repaired.
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

  /// Reads the source of a step, and makes sure that no process wrote to it meanwhile where it is the store itself.
  ///
  /// - Throws: `changed-meanwhile` whatever else failed, where one did; else what reading failed with.
  func reading<Value>(
    _ source: StepSource, _ members: [MigrationJournal.Member], _ body: () throws(MigrationError) -> Value
  ) throws(MigrationError) -> Value {
    guard let original = source.original else { return try body() }
    func check() throws(MigrationError) {
      try wrapping(MigrationError.init) { () throws(FileError) in
        guard MigrationJournal.members(try original.members(in: fileSystem)) == members else {
          throw FileError(.changed, operation: "copy the store", path: original.main)
        }
      }
    }
    // In rollback mode the lock keeps writers out; in WAL mode they are seen by what they leave behind.
    do {
      let lock = try SharedStoreLock(on: original, in: fileSystem)
      try check()
      let value: Value
      do throws(MigrationError) {
        value = try body()
      } catch {
        try check()
        throw error
      }
      try check()
      _ = consume lock
      return value
    } catch {
      throw MigrationError(database: error, path: original.main)
    }
  }

  /// The last finished file, where it is still what the journal says; nil where no step is finished.
  private func lastFile(_ journal: MigrationJournal, _ folder: WorkingFolder) throws(MigrationError) -> FilePath? {
    let number = journal.finished
    guard number > 0 else { return nil }
    let path = folder.step(number)
    let status = try wrapping(MigrationError.init) { () throws(FileError) in
      try fileSystem.status(of: path, followingLinks: false)
    }
    guard let status, MigrationJournal.FileStamp(status) == journal.steps[number - 1].file else { return nil }
    return path
  }

  /// Copies the set as it is and brings its log into the copy; the original is only read.
  private func copy(
    _ original: StoreFileSet, _ folder: WorkingFolder, _ members: [MigrationJournal.Member]
  ) throws(MigrationError) {
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
      _ = consume lock
      guard now == members else {
        throw FileError(.changed, operation: "copy the store", path: original.main)
      }
    } catch {
      throw MigrationError(database: error, path: original.main)
    }
    let copied = try StepConnection(target.main, .write)
    try copied.run { database in
      // Opening undoes a hot journal; leaving WAL mode brings the log into the file.
      try database.bringLogIntoMainFile()
      try database.execute(sql: "PRAGMA journal_mode = DELETE")
    }
    try copied.close()
    try finish(0, as: 0, folder)
  }

  /// Gives a finished file its name; it has been pushed to the disk.
  func finish(_ unfinished: Int, as number: Int, _ folder: WorkingFolder) throws(MigrationError) {
    try wrapping(MigrationError.init) { () throws(FileError) in
      let path = folder.unfinished(unfinished)
      for suffix in ["-wal", "-shm", "-journal"] { try fileSystem.unlink(path.sibling(suffix: suffix)) }
      try fileSystem.install(path, at: folder.step(number), replacing: true)
    }
  }

  /// Stops where the disk is too full, and says how much is needed.
  ///
  /// - Parameters:
  ///   - needed: what the next piece of work needs.
  ///   - whole: what all that is left to be done needs at once, which is told; the same if not given.
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
  /// How a store is migrated.
  public struct Options: Sendable {
    /// The version to go to; the current one if nil.
    public var version: String?

    /// Whether it is one step, whatever mappings, stages and versions lie between.
    public var isDirect = false

    /// The versions that it goes through in any case, in this order.
    public var via: [String] = []

    /// What becomes of a migration that would delete what the version it leads to still has.
    public var whenMigrationLoses = LossRemedy.refuse

    /// How much of what the store lacks of its own model is made good before it is migrated.
    public var repair = RepairScope.structure

    /// Whether it is only repaired, and stays at its version.
    var onlyRepairs = false

    /// Whether names decide where renaming identifiers disagree: for salvages, which keep what is there.
    package var matchesNames = false

    /// Where the migrated store is written; nil for the place of the original.
    public var output: FilePath?

    /// The folder that holds `Backups/`; nil for the store's own.
    public var home: FilePath?

    /// Mappings to use in place of inferred ones where their hashes fit.
    public var mappings: [MappingModel] = []

    /// Whether even what only adds and renames is carried out as a rebuild, which also makes the file compact.
    public var alwaysRebuilds = false

    /// The policies that mappings ask for.
    public var policies = MigrationPolicies()

    /// Code of the app that runs before and after steps.
    public var stages: [MigrationStage] = []

    /// Free text for policies and handlers.
    public var userInfo: [String: String] = [:]

    /// Called before each step with its name, its number from 1, and their number; false ends the migration.
    public var progress: @Sendable (_ step: String, _ number: Int, _ count: Int) -> Bool = { _, _, _ in true }

    /// Whether the migration is to end; nil does not ask.
    ///
    /// Asked twice a second, on another thread, while SQLite works on a statement, which may take minutes.
    public var isCancelled: (@Sendable () -> Bool)?

    /// Whether the home (or the store's folder) keeps records of it: a report in `Reports/` where it fails, a line in
    /// `migrations.jsonl` where it ends well.
    public var isRecorded = false

    /// To the current version, in place.
    public init() {}
  }

  /// What a migration did.
  public struct Result: Sendable, Hashable, Encodable {
    /// The migrated store.
    public var store: FilePath

    /// The original, whole, where it was replaced.
    public var backup: FilePath?

    /// What each step did; empty where the store was of the version already.
    public var steps: [StepAccount]

    /// What was made good of what the store lacked of its own model, and what stays as it is; nil without a repair.
    public var repair: RepairAccount?

    /// How many of the steps an earlier run had finished.
    public var resumedSteps: Int

    /// What it cost; nil where nothing had to be done.
    public var metrics: MigrationMetrics?

    /// The file with what a repair of records has taken out: beside the original, or the result where that is elsewhere.
    public var setAside: FilePath? {
      guard repair?.setsAside == true else { return nil }
      return (backup ?? store).sibling(suffix: RepairAccount.asideSuffix)
    }

    /// Whether there was nothing to do.
    public var isNothing: Bool { steps.isEmpty && repair?.isNothing != false }

    /// Writes where the store is now, what was done, and what it cost.
    public func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "store": PathText(store), "backup": backup.map { PathText($0) }, "resumedSteps": resumedSteps,
        "metrics": metrics, "steps": steps, "repair": repair,
      ])
    }

    /// - Parameters:
    ///   - accounts: what each step did, a repair first.
    ///   - resumed: how many of them an earlier run had finished.
    init(store: FilePath, backup: FilePath?, accounts: [StepAccount], resumed: Int) {
      self.store = store
      self.backup = backup
      steps = accounts.filter { $0.repair == nil }
      repair = accounts.lazy.compactMap(\.repair).first
      resumedSteps = max(0, resumed - (accounts.count - steps.count))
    }
  }
}

extension Migrator {
  /// The digest of everything that decides what a migration makes of a store: versions, mappings, policies and stages.
  ///
  /// The code of policies and handlers is not part of it, only which there are.
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

  /// What version hashes do not say of a model and what decides about values all the same: renaming identifiers, defaults.
  private static func unhashed(_ model: ManagedObjectModel) -> String {
    var parts: [String] = []
    for entity in model.entities.values.ordered(by: { precedesByCodeUnit($0.name, $1.name) }) {
      if let identifier = entity.explicitRenamingIdentifier { parts.append("\(entity.name)=\(identifier)") }
      for property in entity.properties.values.ordered(by: { precedesByCodeUnit($0.name, $1.name) }) {
        let identifier = property.traits.explicitRenamingIdentifier
        let value = property.attribute?.defaultValue?.plainText
        guard identifier != nil || value != nil else { continue }
        parts.append("\(entity.name).\(property.name)=\(identifier ?? "") \(value ?? "")")
      }
    }
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
