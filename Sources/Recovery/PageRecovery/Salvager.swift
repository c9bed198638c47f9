package import ManagedObjectModel
internal import PersistentStore
public import StoreFiles
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
