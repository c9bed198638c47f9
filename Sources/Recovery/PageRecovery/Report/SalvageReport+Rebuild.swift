internal import StoreFiles
public import SystemPackage

extension SalvageReport {
  /// How a store was made of the rows: its version, and everything that had to be repaired.
  public struct Rebuild: Sendable, Hashable, Codable {
    /// How it is known which version the store was written with.
    public enum Basis: String, Sendable, Hashable, Codable {
      /// A version of the given model has the store's version hashes.
      case versionHashes = "version-hashes"

      /// The store carries its model.
      case modelCache = "model-cache"

      /// A version of the given model has the version hashes that a recovery kit noted; nothing in the store tells.
      case recoveryKit = "recovery-kit"

      /// Nothing tells; the version of the given model whose tables fit the rows best was taken.
      case bestFit = "best-fit"

      /// The schema of a plain store was given.
      case schema

      /// No model is known; the tables are as the store's own schema lists them.
      case asFound = "as-found"
    }

    /// One kind of repair.
    public struct Repair: Sendable, Hashable, Codable {
      /// The entity, or the table where it is no entity's.
      public var entity: String

      /// The property, or the properties of a constraint with commas between; nil where it is about whole rows.
      public var property: String?

      /// Why; only for rows that were set aside.
      public var reason: SetAsideReason?

      /// How many rows, references or values.
      public var count: Int64

      /// The primary keys (rowids) of the first ten rows concerned; empty where they have none.
      public var primaryKeys: [Int64]

      /// A repair of some rows.
      package init(entity: String, property: String?, reason: SetAsideReason?, count: Int64, primaryKeys: [Int64]) {
        self.entity = entity
        self.property = property
        self.reason = reason
        self.count = count
        self.primaryKeys = primaryKeys
      }
    }

    /// Why a row is not part of the store.
    public enum SetAsideReason: String, Sendable, Hashable, Codable, CaseIterable {
      /// Its entity number is of no entity that the table holds, or of an abstract one.
      case unknownEntity = "unknown-entity"

      /// Another row has the same values where a constraint allows them once.
      case conflict

      /// It lacks a mandatory value for which the model has no default.
      case missingValue = "missing-value"

      /// It is a pair of a many-to-many relationship of which a record is gone.
      case halfPair = "half-pair"

      /// A constraint of its table refuses it.
      case refused
    }

    /// The name of the version the rows were put into; nil for a model that no version of the given one is, and for plain
    /// stores.
    public var version: String?

    /// How it is known which version the store was written with.
    public var basis: Basis

    /// References that led to records that are gone, by relationship: cut, or dropped with their pair.
    public var referencesCut: [Repair] = []

    /// References of plain stores that lead to no row, by table and column; they are as they were found.
    public var referencesLeft: [Repair] {
      get { dangling ?? [] }
      set { dangling = newValue.isEmpty ? nil : newValue }
    }

    private var dangling: [Repair]?

    /// Rows that are not part of the store but kept in ``setAsideFile``, by entity and reason.
    public var setAside: [Repair] = []

    /// Missing mandatory values that got the default of the model, by attribute.
    public var defaulted: [Repair] = []

    /// Rows that lost against another one where a constraint allows only one, by constraint; they were set aside.
    public var conflicts: [Repair] = []

    /// Entity numbers and save counts that could be put right with certainty, by property or column.
    public var corrected: [Repair] = []

    /// Values of records that are in the store, which has no column for them; they are kept in ``setAsideFile``, by entity and
    /// column.
    public var valuesSetAside: [Repair] {
      get { valuesApart ?? [] }
      set { valuesApart = newValue.isEmpty ? nil : newValue }
    }

    // Reports of earlier versions have none.
    private var valuesApart: [Repair]?

    /// The file of everything that is not in the store; nil where there is nothing.
    public var setAsideFile: FilePath? {
      get { setAsidePath?.path }
      set { setAsidePath = newValue.map { PathText($0) } }
    }

    private var setAsidePath: PathText?

    /// The version that the store was migrated to; nil where it was not migrated.
    public var migratedTo: String?

    /// The steps of the migration, such as `V1 → V2`.
    public var steps: [String] = []

    /// What the migration left out; empty where it left out nothing.
    package var migrationLosses: [MigrationLoss] {
      get { leftOutByMigration ?? [] }
      set { leftOutByMigration = newValue.isEmpty ? nil : newValue }
    }

    // Reports of earlier versions have none.
    private var leftOutByMigration: [MigrationLoss]?

    /// Why the store could not be migrated and is of its own version still; nil where it could, or did not have to be.
    public var migrationFailure: String?

    /// Why the rows of a store that carries its model were put into a version of the given one by the names of their tables and
    /// columns: no way leads there from its own; nil where they were not.
    public var fittedBecause: String?

    private enum CodingKeys: String, CodingKey {
      case version, basis, referencesCut, setAside, defaulted, conflicts, corrected
      case dangling = "referencesLeft"
      case valuesApart = "valuesSetAside"
      case setAsidePath = "setAsideFile"
      case leftOutByMigration = "migrationLosses"
      case migratedTo, steps, migrationFailure, fittedBecause
    }

    /// Whether nothing had to be left out or made up.
    public var isFaithful: Bool {
      referencesCut.isEmpty && setAside.isEmpty && defaulted.isEmpty && conflicts.isEmpty && valuesSetAside.isEmpty
        && migrationFailure == nil && fittedBecause == nil
    }

    /// A rebuild that has repaired nothing yet.
    package init(version: String?, basis: Basis) {
      self.version = version
      self.basis = basis
    }
  }
}
