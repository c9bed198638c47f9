public import ManagedObjectModel
package import Migration
public import PersistentStore
public import Platform
public import SystemPackage

/// Recovers rows from a damaged store's bytes into a new database.
///
/// The store is only read. Decisions follow this order: file layout, newest committed page images, tables and indexes,
/// their pages, rows. Memory is limited to a few bytes per page.
public struct Salvager: Sendable {
  /// The options of a salvage.
  public struct Options: Sendable {
    /// Whether to recover deleted rows too.
    public var findsDeleted: Bool

    /// Whether to migrate a rebuilt store to the model's current version.
    public var migrates: Bool

    /// Whether to convert rows of a store with another model to the given model's best fitting version; otherwise they
    /// keep the store's own.
    public var fitsModel: Bool

    /// Whether rows stay in a model outside the versions for ``fitsModel``: it is newer, or a migration leads on, which
    /// preserves more than column names do.
    var keepsModel: @Sendable (ManagedObjectModel) -> Bool = { _ in false }

    /// Whether to ignore the write-ahead log; one proven to be another database's is always ignored.
    public var ignoresLog: Bool

    /// The database's byte offset in the file; nil for the one that the model or schema matches, else the first.
    public var offset: Int64?

    /// The source of recovery kits.
    public var kit: KitSource

    /// Whether the recovery kit records exactly the salvaged state, like a backup's own kit.
    package var isKitOfThisState = false

    /// The recovery kits to consider by generation and date; nil for all of the store's.
    public var scope: EvidenceScope?

    /// A healthy store, such as a restored backup, to supply lost rows.
    public var donor: SalvageDonor?

    /// A substitute for lost metadata and model.
    package var standIn: StandInIdentity?

    /// Called with the work done and the total; false ends the run with `cancelled`.
    public var progress: @Sendable (_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool

    /// Whether to write the report beside the result; without the report there is no result.
    package var writesReport = false

    /// Creates options; live rows only by default.
    public init(
      findsDeleted: Bool = false, migrates: Bool = true, fitsModel: Bool = false, ignoresLog: Bool = false,
      offset: Int64? = nil, kit: KitSource = .none, scope: EvidenceScope? = nil, donor: SalvageDonor? = nil,
      progress: @escaping @Sendable (SalvagePhase, Int64, Int64) -> Bool = { _, _, _ in true }
    ) {
      self.findsDeleted = findsDeleted
      self.migrates = migrates
      self.fitsModel = fitsModel
      self.ignoresLog = ignoresLog
      self.offset = offset
      self.kit = kit
      self.scope = scope
      self.donor = donor
      self.progress = progress
    }
  }

  let surroundings: Surroundings
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// Creates a salvager with a file system.
  public init(fileSystem: FileSystem = FileSystem()) {
    var surroundings = Surroundings.machine
    surroundings.fileSystem = fileSystem
    self.init(surroundings: surroundings)
  }

  /// Creates a salvager with a file system, a clock and a source of identifiers.
  public init(surroundings: Surroundings) { self.surroundings = surroundings }

  /// Writes a store's rows as found, in their model version, into a new database.
  ///
  /// No row is repaired. Live rows are in tables with their own names; other rows, and those of uncertain tables, are
  /// in tables with the prefix `lazaret_`.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - output: the new database; the name must be free.
  ///   - model: the app's model or schema.
  /// - Throws: ``SalvageError`` if no database is found, or a file can't be read or written.
  public func salvageRaw(
    _ path: FilePath, to output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> SalvageReport {
    do { return try writeRaw(path, to: output, model, options) } catch { throw SalvageError(any: error) }
  }

  private func writeRaw(
    _ path: FilePath, to output: FilePath, _ model: SalvageModel?, _ options: Options
  ) throws -> SalvageReport {
    let evidence = try Evidence(path, in: fileSystem)
    let target = try SalvageTarget(output, beside: evidence.files, in: fileSystem)
    do {
      let run = SalvageRun(evidence: evidence, model: model, options: options)
      var report = try run.raw(to: target.unfinished, makesVirtualTables: true).report
      report.store = PathText(path)
      report.output = PathText(output)
      if options.writesReport { try report.write(beside: output, in: fileSystem) }
      do {
        try target.install()
      } catch {
        if options.writesReport { SalvageReport.remove(beside: output, in: fileSystem) }
        throw error
      }
      return report
    } catch {
      target.discard()
      throw error
    }
  }
}

/// A phase of a salvage.
public enum SalvagePhase: String, Sendable {
  case survey

  /// Assigning pages to tables.
  case placement

  case rows

  /// Moving rows into a new store, and repairing inconsistencies.
  case rebuild

  case migration
}

extension Salvager {
  /// A store's rows as found and their model, for display.
  package struct Findings: Sendable {
    package var report: SalvageReport

    package var model: ManagedObjectModel?
  }

  /// Writes a store's rows as found into the caller's private file, without a sync, as it can be recreated.
  ///
  /// - Throws: ``SalvageError``; the output is then removed.
  package func look(
    at path: FilePath, into output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> Findings {
    do {
      let evidence = try Evidence(path, in: fileSystem)
      let run = SalvageRun(evidence: evidence, model: model, options: options)
      let found = try run.raw(to: output)
      return Findings(report: found.report, model: found.foreignModel ?? found.layout?.model)
    } catch {
      // The first error is the one to report.
      try? fileSystem.unlink(output)
      throw SalvageError(any: error)
    }
  }
}

extension Salvager {
  /// Rebuilds a clean store from a damaged one's rows in its model version, and migrates it to the current version.
  ///
  /// References to lost records are removed; conflicting and unfit rows are set aside into a file beside the result
  /// (suffix `-set-aside`); the report counts each. If the version is unknown, the bundle's best fitting one is used;
  /// without a model, the store's own schema. The result passes every check before it gets its name. If records prevent
  /// the migration, the store keeps its version, and the report says so.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - output: the new store; its name and that of the file beside it must be free.
  ///   - model: the app's model or schema.
  /// - Throws: ``SalvageError``; the output is then removed.
  public func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> SalvageReport {
    try salvage(path, to: output, model: model, options: options, migration: SalvageMigration())
  }

  /// Salvages with the app's own migration.
  package func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel?, options: Options, migration: SalvageMigration
  ) throws(SalvageError) -> SalvageReport {
    do {
      let evidence = try Evidence(path, in: fileSystem)
      let relay = ProgressRelay(options.progress)
      var options = options
      options.progress = relay.tell
      if options.fitsModel, options.migrates, case .coreData(let bundle) = model {
        options.keepsModel = { migration.keeps($0, in: bundle) }
      }
      return try StoreReconstruction(
        path: path, evidence: evidence, model: model, options: options, migration: migration,
        surroundings: surroundings, output: output, relay: relay
      ).run()
    } catch {
      throw SalvageError(any: error)
    }
  }

  /// Removes the leftovers of a killed salvage.
  ///
  /// - Throws: `locked` if another process salvages to that path, or a file system error.
  package static func clearInterrupted(_ output: FilePath, in fileSystem: FileSystem) throws(FileError) {
    try RebuildFolder(for: output, in: fileSystem).clearInterrupted()
  }
}

/// The caller's knowledge of a store's schema.
public enum SalvageModel: Sendable {
  /// The versions of the app's model; the store's version is detected.
  case coreData(ModelBundle)

  /// The schema of a plain SQLite store.
  case sqlite(SchemaScript)
}

/// A substitute for lost metadata and model.
package struct StandInIdentity: Sendable {
  var metadata: StoreMetadata

  var model: ManagedObjectModel?

  /// The origin, such as `the backup b-2026-11-21-10-11-12`.
  var origin: String

  package init(metadata: StoreMetadata, model: ManagedObjectModel?, origin: String) {
    self.metadata = metadata
    self.model = model
    self.origin = origin
  }
}

extension StoreIdentity {
  mutating func take(_ standIn: StandInIdentity?) -> [String] {
    guard let standIn else { return [] }
    var remarks: [String] = []
    if metadata == nil {
      metadata = standIn.metadata
      remarks.append("the store's metadata was not found; it is from \(standIn.origin)")
    }
    if cachedModel == nil, let model = standIn.model, model.versionHashes() == metadata?.versionHashes {
      cachedModel = model
      remarks.append("the model that the store carries was not found; it is from \(standIn.origin)")
    }
    return remarks
  }
}

/// The path of the result, written under a hidden name beside it and renamed once whole and durable.
struct SalvageTarget {
  let path: FilePath

  let unfinished: FilePath

  private let fileSystem: FileSystem

  init(_ path: FilePath, beside store: StoreFileSet, in fileSystem: FileSystem) throws {
    self.path = path
    self.fileSystem = fileSystem
    unfinished = path.hiddenSibling(suffix: ".unfinished")
    let folder = try fileSystem.realPath(path.folder)
    for part in StoreFileSet.Part.allCases {
      let member = store.path(of: part)
      guard member.folder == folder, member.lastComponent == path.lastComponent else { continue }
      throw FileError(
        .alreadyExists, operation: "write what was salvaged", path: path, detail: "it is a part of the store itself",
        hint: "Choose another name for the result.")
    }
    for part in [StoreFileSet.Part.main, .wal, .journal, .sharedMemory] {
      let taken = StoreFileSet(main: path).path(of: part)
      if try fileSystem.status(of: taken, followingLinks: false) != nil {
        throw FileError(
          .alreadyExists, operation: "write what was salvaged", path: taken,
          hint: "Move it away, or choose another name for the result.")
      }
    }
    try fileSystem.unlink(unfinished)
  }

  /// Syncs the result and renames it.
  func install() throws {
    try fileSystem.synchronizeFile(unfinished)
    try fileSystem.install(unfinished, at: path, replacing: false)
  }

  /// Removes an unfinished result; the original error is the one to report.
  func discard() { try? fileSystem.unlink(unfinished) }
}

package struct SalvageMigration: Sendable {
  /// The app's mappings and stages; the salvage itself sets the output and the treatment of losses.
  var options: Migrator.Options

  package init(_ options: Migrator.Options = Migrator.Options()) { self.options = options }

  var settled: Migrator.Options {
    var options = options
    (options.version, options.output, options.home, options.isRecorded) = (nil, nil, nil, false)
    options.repair = .structure
    // The source stays, and the report lists what the migration drops; refusing would leave the app without any record.
    options.whenMigrationLoses = .migrate
    options.matchesNames = true
    return options
  }

  /// The error that prevents migrating a model's stores to the bundle's current version, if any.
  package func obstacle(from source: MigrationPath.Source, in bundle: ModelBundle) -> MigrationError? {
    do {
      _ = try Migrator(bundle).way(from: source, settled)
      return nil
    } catch {
      return MigrationError(any: error)
    }
  }

  /// Whether rows stay in the store's own model, which is newer or no version of the bundle.
  ///
  /// They do if a migration leads on, if the app must fix one, or if the model is newer, as a newer app has all of it.
  func keeps(_ model: ManagedObjectModel, in bundle: ModelBundle) -> Bool {
    guard let obstacle = obstacle(from: .model(model), in: bundle) else { return true }
    return !obstacle.kind.leavesNoWay
  }
}

/// Serializes progress calls, and polls for cancellation while SQLite works.
final class ProgressRelay: Sendable {
  typealias Progress = @Sendable (_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool

  private struct State {
    var phase = SalvagePhase.survey
    var done: Int64 = 0
    var total: Int64 = 0
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let progress: Progress

  init(_ progress: @escaping Progress) { self.progress = progress }

  /// Reports progress; returns false if cancelled.
  func tell(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool {
    state.withLock { state in
      (state.phase, state.done, state.total) = (phase, done, total)
      if !progress(phase, done, total) { state.isCancelled = true }
      return !state.isCancelled
    }
  }

  /// Whether the caller cancels; repeats the last report to ask.
  func isCancelled() -> Bool {
    state.withLock { state in
      if !progress(state.phase, state.done, state.total) { state.isCancelled = true }
      return state.isCancelled
    }
  }
}
