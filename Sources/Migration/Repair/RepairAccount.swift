internal import Platform

/// What a repair does to a store, or has done: what it adds, what it leaves out, and what it only tells.
///
/// A dry run and the repair itself give the same account.
public struct RepairAccount: Sendable, Hashable, Codable {
  /// What a change, or something that is left as it is, is about.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A column of the model's.
    case column

    /// The table of a hierarchy of entities.
    case table

    /// A table of the bookkeeping, or an empty join table, that is made anew as the framework declares it.
    case remadeTable = "remade-table"

    /// The table of a many-to-many relationship.
    case joinTable = "join-table"

    /// An index of the model's.
    case index

    /// An index that allows each value once.
    case uniqueIndex = "unique-index"

    /// An R-tree index, with its content.
    case spatialIndex = "spatial-index"

    /// A trigger of a derived attribute or an R-tree index.
    case trigger

    /// A row of `Z_PRIMARYKEY`.
    case primaryKeyRow = "primary-key-row"

    /// The highest primary key that was given out, `Z_MAX`.
    case highestKey = "highest-key"

    /// The numbers of entities in records, where they are not the model's.
    case entityNumbers = "entity-numbers"

    /// The model that the store carries.
    case modelCache = "model-cache"

    /// A column of the app's that keeps the framework from inserting.
    case appColumn = "app-column"

    /// Something that has the name of an object of the model's and is another one.
    case otherObject = "other-object"

    /// The records of a table that was missing and is added, empty, where keys had been given to some.
    case lostRecords = "lost-records"

    /// A reference that leads to no record.
    case danglingReference = "dangling-reference"

    /// Rows of a join table that lead to no record.
    case danglingPair = "dangling-pair"

    /// A one-to-one relationship that only one of its two records has.
    case oneSidedRelationship = "one-sided-relationship"

    /// Records that are not unique where the model wants that.
    case duplicate

    /// A mandatory attribute without a value.
    case missingValue = "missing-value"
  }

  /// One change.
  public struct Change: Sendable, Hashable, Codable {
    /// What is added or changed.
    public var kind: Kind

    /// The table concerned; that of the bookkeeping where it is about that.
    public var table: String

    /// The name of the column, index, trigger, table or entity.
    public var name: String

    /// The records that get a value, a number or a reference, or are set aside; nil where no record is touched.
    public var rows: Int?

    /// What it is, in one sentence without a full stop.
    public var text: String
  }

  /// Something that the model has and the store lacks, or that breaks the model's rules, and that stays as it is.
  public struct Remainder: Sendable, Hashable, Codable {
    /// What it is about.
    public var kind: Kind

    /// The table concerned.
    public var table: String

    /// The name of the column, index or entity.
    public var name: String

    /// The records that stand in the way; nil where none do.
    public var rows: Int?

    /// The primary keys of the first ten of them.
    public var examples: [Int64]

    /// What it is and why it stays, in one sentence without a full stop.
    public var text: String
  }

  /// The version of the model that the store is of; nil for a model that only the store carries.
  public var version: String?

  /// How much was to be made good.
  public var scope: RepairScope

  /// What is added or changed, in the order in which it is done.
  public var changes: [Change] = []

  /// What stays as it is, and why.
  public var leftOut: [Remainder] = []

  /// The records of the store.
  public var rows = 0

  /// The records and pairs that were set aside.
  public var setAsideRows = 0

  /// The values that were changed: references that were cut or put right, mandatory values.
  public var changedValues = 0

  /// What the name of the file with what was taken out has behind the original's.
  static let asideSuffix = "-set-aside"

  /// Whether what was taken out lies in a file beside the original.
  var setsAside: Bool { setAsideRows > 0 || changedValues > 0 }

  /// Whether there is nothing to do.
  public var isNothing: Bool { changes.isEmpty }

  /// The references and pairs that lead to no record and that stay: what they led to is not in the store.
  package var danglingReferences: Int {
    leftOut.filter(\.kind.isDangling).reduce(0) { $0 + ($1.rows ?? 0) }
  }

  /// Whether records of a table that was missing are likely lost.
  package var hasLostRecords: Bool { leftOut.contains { $0.kind == .lostRecords } }

  var versionName: String { version ?? "the store's model" }

  /// What is added, in words such as `2 columns, 1 index`; empty where nothing is.
  public var words: String {
    Kind.allCases.compactMap { kind in
      let count = changes.count { $0.kind == kind }
      return count == 0 ? nil : counted(count, kind.nouns.one, kind.nouns.many)
    }.joined(separator: ", ")
  }
}

extension RepairAccount.Kind {
  /// Whether the model wants what is left out, so that the store is not whole without it.
  public var isWantedByModel: Bool { self != .appColumn && self != .otherObject && self != .column }

  /// Whether it is about what leads to no record.
  package var isDangling: Bool { self == .danglingReference || self == .danglingPair }

  /// The kind in words, for one and for several.
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

/// How much of a store that lacks what its own model has is made good.
public enum RepairScope: String, Sendable, Hashable, Codable, CaseIterable {
  /// Nothing: the store is taken as it is.
  case nothing

  /// What is missing is added: columns, tables, indexes, triggers, bookkeeping. No value that is there changes.
  case structure

  /// The same, and records and references that break the model's rules are put right; what is taken out is set aside.
  case data
}
