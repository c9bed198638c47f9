internal import PageRecovery
internal import RecoveryKit
internal import SQLiteFormat

/// A table of the new store into which records go as the bytes that they are, without SQLite.
///
/// It takes rows in ascending order whose values are such as SQLite would have stored in the table; all others are for
/// SQLite to insert. What is learnt of the rows on the way saves reading them again.
final class DirectTable: NewTable {
  /// What a column of the new table gets, and what is looked at.
  struct Column {
    /// The field of the found record that it gets; nil where the found table has no such column.
    var field: Int?

    /// The classes of values that SQLite would store in it as they are.
    var classes: StorageClasses

    var role = Role.other
  }

  /// What a column holds, as far as it is looked at.
  enum Role {
    case key
    case entityNumber
    case saveCount

    /// The primary key of another record; the number counts the table's references.
    case reference(Int)
    case other
  }

  private var rows: DirectRows

  init(_ tree: TableTree, columns: [Column], fieldCount: Int, budget: KeySet.Budget) {
    rows = DirectRows(tree, columns: columns, fieldCount: fieldCount, budget: budget)
  }

  var count: Int64 { rows.count }

  /// How many rows have which entity number.
  var entityCounts: [Int64: Int64] { rows.entityCounts }

  /// Whether some row has no proper save count.
  var hasUnsaved: Bool { rows.hasUnsaved }

  var keys: KeySet { rows.keys }

  /// The primary keys that each reference leads to.
  var references: [KeySet] { rows.references }

  var last: Int64? { rows.last }

  /// Makes an index of the rows that come from now on; the columns are places in the new table.
  ///
  /// Where the found table lacks a column the index is left to SQLite.
  func add(_ name: String, isUnique: Bool, columns places: [Int], _ sorter: EntrySorter) {
    rows.add(name, isUnique: isUnique, columns: places, sorter)
  }

  /// Writes the indexes; returns the names of those that were made.
  func writeIndexes(_ tree: (String) -> IndexTree?) throws(SalvageError) -> [String] { try rows.writeIndexes(tree) }

  /// Takes a row; false where it is for SQLite to insert.
  func insert(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool {
    try rows.insert(bytes, from: start, length: length, rowid: rowid)
  }

  /// Whether there is a row of that rowid.
  func hasRow(_ rowid: Int64) throws(SalvageError) -> Bool { try rows.hasRow(rowid) }

  /// Whether there is exactly that row.
  func holds(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool {
    try rows.holds(bytes, from: start, length: length, rowid: rowid)
  }

  /// Writes what is left of the tree.
  func finish() throws(SalvageError) { try rows.finish() }

  /// The primary keys; nil where not all of them could be kept.
  var takenKeys: KeyRanges? {
    guard keys.isExact else { return nil }
    var taken = KeyRanges()
    keys.forEachKey { taken.append($0) }
    return taken
  }

  /// How many rows have a rowid in a range, as far as there was memory to keep them.
  func count(above: Int64, upTo: Int64) -> Int64 { rows.keys.count(above: above, upTo: upTo) }

  /// How many rows have an entity number; to be asked while rows are taken, or after.
  func count(ofEntity number: Int64) -> Int64 { rows.count(ofEntity: number) }
}

extension StorageClasses {
  /// The classes of values that a column keeps as they are.
  init(keptBy affinity: Affinity) {
    switch affinity {
    case .text: self = [.null, .text, .blob]
    case .integer: self = [.null, .integer, .blob]
    case .numeric, .real: self = [.null, .integer, .real, .blob]
    case .blob: self = .any
    }
  }
}
