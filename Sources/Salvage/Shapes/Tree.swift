internal import SQLiteFormat

/// A table or an index of the store that is being salvaged: what is known of it, and which pages are its.
struct Tree {
  /// What kind of b-tree it is.
  enum Kind {
    case table
    case withoutRowid
    case index
  }

  /// The name of the table or index.
  var name: String

  /// What kind of b-tree it is.
  var kind: Kind

  /// The root page; 0 where it is not known.
  var root: UInt32

  /// The root that the list of tables names, where that is behind the end of the file; else 0.
  var rootBehindEnd: UInt32 = 0

  /// What its records look like.
  var shape: RecordShape

  /// The table's definition; nil for indexes.
  var definition: TableDefinition?

  /// For an index, the place of its table in the list of trees.
  var table: Int?

  /// For an index, the names of its columns; nil stands for an expression.
  var indexedColumns: [String?] = []

  /// For an index of a table without rowids, the columns of its key that each entry ends with.
  var keyColumns: [String] = []

  /// Whether an index has a condition, and so not every row.
  var isPartialIndex = false

  /// Whether the store's own schema lists it; if not, it is known from the model only.
  var isListed = false

  /// Whether only rows tell of it, being like those of a table of Core Data's own.
  var isKnownByRows = false

  /// Whether it was dropped: only a deleted row of the schema tells of it, and only deleted rows can be its.
  var isDropped = false

  /// The root that the definition of a table that was dropped names; 0 where there is none.
  var droppedRoot: UInt32 = 0

  /// Whether it holds what a virtual table is made of.
  var isShadow = false

  /// Whether it belongs to SQLite or to the salvage itself and is not part of the result.
  var isInternal = false

  /// Whether it has the highest keys that SQLite gave to rows of other tables.
  var isSequence: Bool { isInternal && kind == .table && name.lowercased() == "sqlite_sequence" }

  /// The numbers of all entities of the model, where the rows of the table are of one entity alone; else nil.
  var otherNumbers: Set<Int64>?

  /// Which of its columns nothing tells apart; nil where all are known.
  var doubt: ColumnDoubt?

  /// The leaves, in the order in which they were found; sorted by their first rowid before they are read.
  var leaves: [UInt32] = []

  /// Inner pages of trees without rowids, whose cells are rows or entries too.
  var innerPages: [UInt32] = []

  /// Places of the tree where a page is lost.
  var gaps: [Gap] = []

  /// Whether its root was found and walked.
  var isWalked = false

  /// Whether every page of it was found, so that no other page can be its.
  var isComplete: Bool { isWalked && gaps.isEmpty }

  /// Whether the numbers in `Z_ENT` tell its rows from those of all other tables.
  var isToldByEntity: Bool { shape.entityNumbers.map { $0.count < 8000 } ?? false }

  /// Whether its b-tree has rowids as keys.
  var hasRowids: Bool { kind == .table }

  /// A place where a page of the tree is missing.
  struct Gap {
    /// The number that the page should have.
    var page: UInt32

    /// Every rowid behind the gap is larger than this.
    var above: Int64

    /// No rowid in the gap is larger than this.
    var upTo: Int64

    /// Whether its page was a leaf, as those beside it are; else that is not known.
    var isLeaf = false
  }

  /// Notes that the pages that are missing below an inner page were leaves.
  ///
  /// - Parameter first: the first of the gaps that may be below it.
  mutating func noteLeaves(of node: InnerPage, from first: Int) {
    let children = Set(node.children)
    for place in gaps.indices.dropFirst(first) where children.contains(gaps[place].page) { gaps[place].isLeaf = true }
  }
}
