internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
public import Platform
public import SystemPackage

extension Migrator {
  /// Adds the parts of its own model a store lacks, without changing its version.
  ///
  /// It repairs and verifies a copy and swaps it in with a migration's journal; the original is kept.
  ///
  /// - Throws: `MigrationError`: `repair-refused` if it would need guessing, `source-model-missing` without the store's
  ///   model; the store is then unchanged.
  public func repair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Result {
    do throws(MigrationError) {
      return try migrate(path, options: Self.repairing(options))
    } catch { throw error.ofRepair }
  }

  /// Plans a repair without changing the store.
  ///
  /// It repairs a temporary private copy, so the account is exact.
  public func planRepair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> RepairAccount {
    do {
      let options = Self.repairing(options)
      let original = try StoreFileSet.locate(path, in: fileSystem)
      guard try fileSystem.status(of: original.main) != nil else {
        throw FileError(.notFound, operation: "plan the repair", path: path)
      }
      let view = StoreView(original: original, surroundings: surroundings)
      let found = try view.read { database in
        let facts = try StoreFacts(database)
        let repair = try repairStep(facts, database, options)
        _ = try way(from: facts, options)
        return repair
      }
      guard let step = found.step else { return found.nothing }
      return try view.onCopy { file in
        try FileIntegrity.check(file, in: fileSystem, orThrow: .sourceDamaged)
        return try step.run(on: file, aside: file.sibling(suffix: "-set-aside")).account
      }
    } catch { throw MigrationError(any: error, path: path).told(at: path).ofRepair }
  }

  package func hasSomethingToRepair(_ path: FilePath, options: Options = Options()) throws(MigrationError) -> Bool {
    do {
      let options = Self.repairing(options)
      let view = StoreView(original: try StoreFileSet.locate(path, in: fileSystem), surroundings: surroundings)
      return try view.read { database in try repairStep(StoreFacts(database), database, options).step != nil }
    } catch { throw MigrationError(any: error, path: path) }
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

  struct RepairStep {
    let entry: LayoutCache.Entry

    /// Nil for a model only the store has.
    let version: String?
    let scope: RepairScope

    /// In seconds since 2001-01-01T00:00:00Z.
    var referenceDate: Double

    var name: String { MigrationStep.repairName(of: version) }

    /// Repairs and checkpoints a private copy.
    ///
    /// - Parameter aside: The path for set-aside records.
    func run(
      on copy: FilePath, aside: FilePath
    ) throws -> (account: RepairAccount, made: MadeValues, renumberings: [String: Renumbering]) {
      let connection = try StepConnection(copy, .write, referenceDate: referenceDate)
      let outcome = try connection.run { database in
        try database.beginExclusiveLog()
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

  /// The needed repair, or nil with the account.
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
    // Counting takes as long as reading the store.
    if options.onlyRepairs {
      try Self.requireSound(database)
      try run.countRows()
      try run.tellDangling()
    }
    return (nil, run.account)
  }

  /// Rejects a store SQLite's check finds damaged, indexes included; else it would pass as needing no repair.
  private static func requireSound(_ database: Database) throws {
    // Violated app constraints are no damage.
    let lines = try IntegrityCheck.evidenceLines(of: database).lines.filter { line in
      line != "ok" && !line.contains(" value in ") && !line.hasPrefix("CHECK constraint failed")
    }
    guard lines.isEmpty else {
      throw MigrationError(.sourceDamaged, detail: "SQLite finds its pages or indexes damaged")
    }
  }

  private func ownModel(_ facts: StoreFacts) throws -> (ManagedObjectModel, String?) {
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

  func carryOut(_ repair: RepairStep, _ run: inout StepRun) throws {
    var repair = repair
    repair.referenceDate = run.journal.referenceDate
    try announce(repair.name, run.number, run)
    MigrationTrace.current?.begin(named: repair.name, number: run.number)
    let (folder, number, members) = (run.folder, run.number, run.journal.members)
    try folder.removeUnfinished(number)
    try folder.removeAside()
    try requireSpace(for: run, .rebuild)
    let source = run.source
    let (account, made) = try reading(source, members) {
      do {
        return try verified(repair, source.path, folder.unfinished(number), aside: folder.asidePath)
      } catch { throw MigrationError(any: error).ofRepair }
    }
    if !account.setsAside { try folder.removeAside() }
    run.journal.made = made
    var step = StepAccount(step: repair.name, way: .repair)
    step.repair = account
    try record([step], of: [], &run)
    MigrationTrace.current?.noteEnd(ofStep: repair.name, number: number, step)
  }

  private func verified(
    _ repair: RepairStep, _ source: FilePath, _ target: FilePath, aside: FilePath
  ) throws -> (RepairAccount, MadeValues) {
    let fileSystem = fileSystem
    // Damage needs salvage, not repair; pages are checked during the change.
    let (_, outcome) = try concurrently {
      try FileIntegrity.check(source, in: fileSystem, orThrow: .sourceDamaged)
    } _: {
      try fileSystem.duplicate(source, to: target)
      return try repair.run(on: target, aside: aside)
    }
    let verification = RepairVerification(
      layout: repair.entry.layout, account: outcome.account, renumberings: outcome.renumberings,
      aside: repair.scope == .data ? aside : nil)
    _ = try concurrently {
      try fileSystem.synchronizeFile(target)
      if repair.scope == .data { try fileSystem.synchronizeFile(aside) }
      try FileIntegrity.check(target, in: fileSystem, orThrow: .verificationFailed)
    } _: {
      try verification.check(target, against: source)
    }
    return (outcome.account, outcome.made)
  }
}

extension MigrationStep {
  static func repairName(of version: String?) -> String { "repair of \(version ?? "the store's model")" }
}

/// The changes of a repair, and the problems it leaves.
///
/// A dry run gives the same account as the repair.
public struct RepairAccount: Sendable, Hashable, Codable {
  /// The subject of a change or remainder.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case column

    case table

    /// A bookkeeping or empty join table, recreated as the framework declares it.
    case remadeTable = "remade-table"

    case joinTable = "join-table"

    case index

    case uniqueIndex = "unique-index"

    /// An R-tree index with its content.
    case spatialIndex = "spatial-index"

    /// A trigger of a derived attribute or an R-tree index.
    case trigger

    case primaryKeyRow = "primary-key-row"

    /// The highest primary key used, `Z_MAX`.
    case highestKey = "highest-key"

    /// Entity numbers that differ from the model's.
    case entityNumbers = "entity-numbers"

    case modelCache = "model-cache"

    /// An app column that blocks the framework's inserts.
    case appColumn = "app-column"

    /// A different object with a model object's name.
    case otherObject = "other-object"

    /// Records of a missing table, added empty, that had used keys.
    case lostRecords = "lost-records"

    case danglingReference = "dangling-reference"

    case danglingPair = "dangling-pair"

    /// A one-to-one relationship set on one side only.
    case oneSidedRelationship = "one-sided-relationship"

    case duplicate

    case missingValue = "missing-value"
  }

  /// A change.
  public struct Change: Sendable, Hashable, Codable {
    /// The subject.
    public var kind: Kind

    /// The table, possibly a bookkeeping table.
    public var table: String

    /// The column, index, trigger, table or entity.
    public var name: String

    /// The records changed or set aside; nil if no record is touched.
    public var rows: Int?

    /// The change as a sentence without a full stop.
    public var text: String
  }

  /// A missing part or a violation that stays.
  public struct Remainder: Sendable, Hashable, Codable {
    /// The subject.
    public var kind: Kind

    /// The table.
    public var table: String

    /// The column, index or entity.
    public var name: String

    /// The records in the way, if any.
    public var rows: Int?

    /// The first ten primary keys.
    public var examples: [Int64]

    /// The problem and why it stays, as a sentence without a full stop.
    public var text: String
  }

  /// The store's version; nil for a model only the store has.
  public var version: String?

  /// The scope of the repair.
  public var scope: RepairScope

  /// The changes in order.
  public var changes: [Change] = []

  /// The remaining problems with reasons.
  public var leftOut: [Remainder] = []

  /// The store's record count.
  public var rows = 0

  /// The number of records and pairs set aside.
  public var setAsideRows = 0

  /// The changed values: references cut or corrected, mandatory values.
  public var changedValues = 0

  static let asideSuffix = "-set-aside"

  /// Whether there is a set-aside file next to the original.
  var setsAside: Bool { setAsideRows > 0 || changedValues > 0 }

  /// Whether there is nothing to do.
  public var isNothing: Bool { changes.isEmpty }

  /// The remaining references and pairs whose records are not in the store.
  package var danglingReferences: Int { leftOut.filter(\.kind.isDangling).reduce(0) { $0 + ($1.rows ?? 0) } }

  package var hasLostRecords: Bool { leftOut.contains { $0.kind == .lostRecords } }

  var versionName: String { version ?? "the store's model" }

  /// The additions, such as `2 columns, 1 index`.
  public var words: String {
    Kind.allCases.compactMap { kind in
      let count = changes.count { $0.kind == kind }
      return count == 0 ? nil : counted(count, kind.nouns.one, kind.nouns.many)
    }.joined(separator: ", ")
  }
}

extension RepairAccount.Kind {
  /// Whether the store is incomplete without it.
  public var isWantedByModel: Bool { self != .appColumn && self != .otherObject && self != .column }

  package var isDangling: Bool { self == .danglingReference || self == .danglingPair }

  fileprivate var nouns: (one: String, many: String) {
    switch self {
    case .column: ("column", "columns")
    case .table: ("table", "tables")
    case .remadeTable: ("table made anew", "tables made anew")
    case .joinTable: ("join table", "join tables")
    case .index: ("index", "indexes")
    case .uniqueIndex: ("unique index", "unique indexes")
    case .spatialIndex: ("spatial index", "spatial indexes")
    case .trigger: ("trigger", "triggers")
    case .primaryKeyRow: ("row of Z_PRIMARYKEY", "rows of Z_PRIMARYKEY")
    case .highestKey: ("highest primary key", "highest primary keys")
    case .entityNumbers: ("hierarchy of entity numbers", "hierarchies of entity numbers")
    case .modelCache: ("model cache", "model caches")
    case .appColumn: ("column of the app's", "columns of the app's")
    case .otherObject: ("other object", "other objects")
    case .lostRecords: ("table of lost records", "tables of lost records")
    case .danglingReference: ("column with dangling references", "columns with dangling references")
    case .danglingPair: ("join table with dangling pairs", "join tables with dangling pairs")
    case .oneSidedRelationship: ("one-sided relationship", "one-sided relationships")
    case .duplicate: ("broken uniqueness constraint", "broken uniqueness constraints")
    case .missingValue: ("attribute without mandatory values", "attributes without mandatory values")
    }
  }
}

/// The extent of a repair.
public enum RepairScope: String, Sendable, Hashable, Codable, CaseIterable {
  case nothing

  /// Adds missing columns, tables, indexes, triggers and bookkeeping; changes no values.
  case structure

  /// Also corrects records and references that violate the model; removed data is set aside.
  case data
}
