internal import SQLiteFormat

/// A table or index of the damaged store, with its pages.
struct Tree {
  enum Kind {
    case table
    case withoutRowid
    case index
  }

  var name: String

  var kind: Kind

  /// The root page; 0 if unknown.
  var root: UInt32

  /// The listed root if beyond the end of the file; else 0.
  var rootBehindEnd: UInt32 = 0

  var shape: RecordShape

  /// The table's definition; nil for indexes.
  var definition: TableDefinition?

  /// An index's table, as a place in the list of trees.
  var table: Int?

  /// An index's column names; nil for an expression.
  var indexedColumns: [String?] = []

  /// For an index without rowids, the key columns at the end of each entry.
  var keyColumns: [String] = []

  /// Whether an index has a condition, and so not every row.
  var isPartialIndex = false

  /// Whether the store's own schema lists it, not only the model.
  var isListed = false

  /// Whether only rows like those of Core Data's own tables indicate it.
  var isKnownByRows = false

  /// Whether only a deleted schema row indicates it, so all its rows are deleted.
  var isDropped = false

  /// The root in a dropped table's definition, else 0.
  var droppedRoot: UInt32 = 0

  var isShadow = false

  /// Whether it belongs to SQLite or the salvage, and not to the result.
  var isInternal = false

  /// Whether it is `sqlite_sequence`.
  var isSequence: Bool { isInternal && kind == .table && name.lowercased() == "sqlite_sequence" }

  /// All entity numbers of the model, if the table has one entity.
  var otherNumbers: Set<Int64>?

  var doubt: ColumnDoubt?

  /// The leaves as found; sorted by first rowid before reading.
  var leaves: [UInt32] = []

  /// The interior pages of trees without rowids, whose cells are rows or entries.
  var innerPages: [UInt32] = []

  var gaps: [Gap] = []

  var isWalked = false

  /// Whether every page was found, so it has no others.
  var isComplete: Bool { isWalked && gaps.isEmpty }

  /// Whether `Z_ENT` distinguishes its rows from those of all other tables.
  var isToldByEntity: Bool { shape.entityNumbers.map { $0.count < 8000 } ?? false }

  var hasRowids: Bool { kind == .table }

  /// The kind and name of its entry in the schema.
  var key: String { "\(kind == .index ? "index" : "table") \(name)" }

  /// A missing page of the tree.
  struct Gap {
    var page: UInt32

    /// The exclusive lower bound of its rowids.
    var above: Int64

    /// The upper bound of its rowids.
    var upTo: Int64

    /// Whether it was a leaf like its neighbors; false if unknown.
    var isLeaf = false
  }

  /// Marks the missing children of an interior page as leaves.
  ///
  /// - Parameter first: the first gap possibly below it.
  mutating func noteLeaves(of node: InnerPage, from first: Int) {
    let children = Set(node.children)
    for place in gaps.indices.dropFirst(first) where children.contains(gaps[place].page) { gaps[place].isLeaf = true }
  }
}
