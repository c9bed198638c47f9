internal import Platform

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
  package var danglingReferences: Int {
    leftOut.filter(\.kind.isDangling).reduce(0) { $0 + ($1.rows ?? 0) }
  }

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
