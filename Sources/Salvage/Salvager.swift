public import ManagedObjectModel
package import Migration
public import PersistentStore
public import Platform
public import SystemPackage

/// Gets the rows out of a damaged store, from its bytes alone, into a new database.
///
/// The evidence is only read. What is found is decided in this order: the layout of the file, the newest committed image of
/// each page, the tables and indexes, the pages of each, the rows. Memory is bounded by a few bytes for each page.
public struct Salvager: Sendable {
  /// What to do.
  public struct Options: Sendable {
    /// Whether deleted rows are looked for too.
    public var findsDeleted: Bool

    /// Whether a rebuilt store is migrated to the current version of the model.
    public var migrates: Bool

    /// Whether the rows are put into the version of the given model that fits them best where the store is of another
    /// model; else they stay in the store's own.
    public var fitsModel: Bool

    /// Whether rows stay in a model that is none of the versions that ``fitsModel`` asks for, such as the store's own: where a migration
    /// leads on from there, which carries over more than the names of columns do, or where it is a newer one.
    package var keepsModel: @Sendable (ManagedObjectModel) -> Bool = { _ in false }

    /// Whether the write-ahead log is left out whatever it is; one that shows that it is another database's always is.
    public var ignoresLog: Bool

    /// The byte of the file at which the database begins, where there are several; nil for the one that the model or schema
    /// has something of, else the first.
    public var offset: Int64?

    /// Where a recovery kit of the store is looked for.
    public var kit: KitSource

    /// Whether the recovery kit was noted of the very state that is salvaged, as the one in a backup is of that backup.
    package var isKitOfThisState = false

    /// Which recovery kits say something of the store, by generation and date; nil for all that are the store's.
    public var scope: EvidenceScope?

    /// A healthy store, such as a restored backup, that lost rows are taken from; nil for none.
    public var donor: SalvageDonor?

    /// What stands in for the store's metadata and model where its bytes have none; nil for nothing.
    package var standIn: StandInIdentity?

    /// Called with the work done and the work in all; false ends the run with `cancelled`.
    public var progress: @Sendable (_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool

    /// Live rows only, unless told otherwise.
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

  package let surroundings: Surroundings
  package var fileSystem: FileSystem { surroundings.fileSystem }

  /// A salvager that reads and writes through a file system.
  public init(fileSystem: FileSystem = FileSystem()) {
    var surroundings = Surroundings.machine
    surroundings.fileSystem = fileSystem
    self.init(surroundings: surroundings)
  }

  /// A salvager with a file system, a clock and a source of identifiers.
  public init(surroundings: Surroundings) { self.surroundings = surroundings }

  /// Writes the rows of a store as they are found, in the version that they were in, into a new database.
  ///
  /// Nothing is repaired. Live rows are in tables of their own names; rows that are not live, or not certain to be part of
  /// any table, are in tables whose names begin with `lazaret_`.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - output: the new database; nothing may have its name.
  ///   - model: what is known of the store.
  /// - Throws: ``SalvageError`` where nothing of a database is found, or a file cannot be read or written.
  public func salvageRaw(
    _ path: FilePath, to output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> SalvageReport {
    let evidence = try Evidence(path, in: fileSystem)
    let target = try SalvageTarget(output, beside: evidence.files, in: fileSystem)
    do throws(SalvageError) {
      let run = SalvageRun(evidence: evidence, model: model, options: options)
      var report = try run.raw(to: target.unfinished, makesVirtualTables: true).report
      try target.install()
      report.store = PathText(path)
      report.output = PathText(output)
      return report
    } catch {
      target.discard()
      throw error
    }
  }
}

/// What a salvage is doing.
public enum SalvagePhase: String, Sendable {
  case survey

  /// Finding out whose the pages are.
  case placement

  case rows

  /// Putting the rows into a new store, and repairing what does not fit.
  case rebuild

  case migration
}

extension Salvager {
  /// The rows of a store as they are found, for looking at them, with the model that tells what they mean.
  package struct Findings: Sendable {
    /// The account of the rows.
    package var report: SalvageReport

    /// The model of the version that the store is of, as far as that can be told.
    package var model: ManagedObjectModel?
  }

  /// Writes the rows of a store as they are found into a file that is the caller's alone.
  ///
  /// As `salvageRaw`, but nothing is pushed to the disk, since it can be made again at any time.
  ///
  /// - Throws: ``SalvageError``; nothing is left then.
  package func look(
    at path: FilePath, into output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> Findings {
    let evidence = try Evidence(path, in: fileSystem)
    do throws(SalvageError) {
      let run = SalvageRun(evidence: evidence, model: model, options: options)
      let found = try run.raw(to: output)
      return Findings(report: found.report, model: found.foreignModel ?? found.layout?.model)
    } catch {
      // The first error is the one to report.
      try? fileSystem.unlink(output)
      throw error
    }
  }
}

extension Salvager {
  /// Makes a clean store of the rows of a damaged one, of the version it was written with, and migrates it to the current
  /// version of the model.
  ///
  /// References to records that are gone are cut, contradicting and unfit rows are set aside into a file beside the result
  /// (its name with `-set-aside`), and the report counts each. Where nothing tells the version, the one of the bundle that
  /// fits best is taken; without any model the tables are made as the store's schema lists them. The result has passed
  /// every check before it gets its name. Where the migration fails for a reason in the records, the store stays of its own
  /// version and the report says so.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - output: the new store; nothing may have its name, nor that of the file beside it.
  ///   - model: what is known of the store.
  /// - Throws: ``SalvageError``; nothing is left then.
  public func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> SalvageReport {
    try salvage(path, to: output, model: model, options: options, migration: SalvageMigration())
  }

  /// The same, with the app's own way to its current version.
  package func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel?, options: Options, migration: SalvageMigration
  ) throws(SalvageError) -> SalvageReport {
    var report = try StoreReconstruction(
      evidence: try Evidence(path, in: fileSystem), model: model, options: options, migration: migration,
      surroundings: surroundings, output: output
    ).run()
    report.store = PathText(path)
    report.output = PathText(output)
    return report
  }

  /// Takes back what a killed salvage left at the place of its result.
  ///
  /// - Throws: `locked` where another process salvages to that place, or what the file system says.
  package static func clearInterrupted(_ output: FilePath, in fileSystem: FileSystem) throws(FileError) {
    try StoreReconstruction.clearInterrupted(output, in: fileSystem)
  }
}

/// What a caller knows of a store that is to be salvaged.
public enum SalvageModel: Sendable {
  /// The versions of the app's model; the one that the store was written with is found out.
  case coreData(ModelBundle)

  /// The schema of a plain SQLite store.
  case sqlite(SchemaScript)
}

/// What stands in for a store's own metadata and model where nothing of them is found in its bytes.
package struct StandInIdentity: Sendable {
  /// The metadata.
  package var metadata: StoreMetadata

  /// The model that the store was written with; nil where it is not at hand.
  package var model: ManagedObjectModel?

  /// Where it is from, such as `the backup b-2026-11-21-10-11-12`.
  package var origin: String

  /// What is known of a store from elsewhere.
  package init(metadata: StoreMetadata, model: ManagedObjectModel?, origin: String) {
    self.metadata = metadata
    self.model = model
    self.origin = origin
  }
}

extension StoreIdentity {
  /// Takes what is missing from elsewhere; returns what is to be said of that.
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

/// The place of the result: written under a hidden name beside it, and put there when it is whole and on the disk.
package struct SalvageTarget {
  /// Where the result will be.
  package let path: FilePath

  /// Where it is written.
  package let unfinished: FilePath

  private let fileSystem: FileSystem

  package init(_ path: FilePath, beside store: StoreFileSet, in fileSystem: FileSystem) throws(SalvageError) {
    self.path = path
    self.fileSystem = fileSystem
    unfinished = path.hiddenSibling(suffix: ".unfinished")
    do throws(FileError) {
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
    } catch {
      throw SalvageError(error)
    }
  }

  /// Pushes the result to the disk and gives it its name.
  package func install() throws(SalvageError) {
    try wrapping(SalvageError.init) { () throws(FileError) in
      try fileSystem.synchronizeFile(unfinished)
      try fileSystem.install(unfinished, at: path, replacing: false)
    }
  }

  /// Removes an unfinished result; the error that led here is the one to report.
  package func discard() { try? fileSystem.unlink(unfinished) }
}

/// How a salvaged store is migrated to the app's version.
package struct SalvageMigration: Sendable {
  /// How: the app's mappings, stages and ways; where the result goes and what may be lost is the salvage's own affair.
  package var options: Migrator.Options

  /// By inference alone unless told otherwise.
  package init(_ options: Migrator.Options = Migrator.Options()) { self.options = options }

  /// The options of the migration of a salvaged store.
  var settled: Migrator.Options {
    var options = options
    (options.version, options.output, options.home, options.isRecorded) = (nil, nil, nil, false)
    options.repair = .structure
    // The evidence stays, and what the migration leaves out is told; refusing would leave the app without any record.
    options.whenMigrationLoses = .migrate
    options.matchesNames = true
    return options
  }

  /// The reason why no salvaged store of a model can be brought to the current version of a bundle; nil where a way leads there.
  package func obstacle(from source: MigrationPath.Source, in bundle: ModelBundle) -> MigrationError? {
    do throws(MigrationError) {
      _ = try Migrator(bundle).way(from: source, settled)
      return nil
    } catch {
      return error
    }
  }

  /// Whether the rows of a store stay in its own model, which is no version of the bundle or a newer one: where a way leads on,
  /// where the app has to mend one, or where it is newer than the app's, so that a newer app has all of it.
  func keeps(_ model: ManagedObjectModel, in bundle: ModelBundle) -> Bool {
    guard let obstacle = obstacle(from: .model(model), in: bundle) else { return true }
    return !obstacle.kind.leavesNoWay
  }
}
