internal import SQLiteFormat

/// Holds the number of columns that statements declare against the values of the rows.
///
/// A damaged comma makes one column of two, or two of one. Where the rows have more values than the table has columns, a
/// column is added where the others fit best; where they have fewer and fit much better without one, that one is left out.
enum ColumnCounts {
  /// The share of values of another kind that damage of a statement is looked for from.
  private static let tolerance = 0.1

  /// Repairs the statements; the result has the tables whose columns are guessed, by their names in lower case.
  ///
  /// - Parameter rows: what the rows are like, by the root pages of their tables.
  static func repair(_ entries: inout [SchemaEntry], rows: [UInt32: TableRows]) -> [String: ColumnDoubt] {
    var doubts: [String: ColumnDoubt] = [:]
    let tables = entries.compactMap { entry -> (TableDefinition, TableRows)? in
      guard let definition = entry.tableDefinition, let seen = rows[entry.rootPage] else { return nil }
      return (definition, seen)
    }
    for index in entries.indices where entries[index].kind == .table {
      guard let own = entries[index].tableDefinition, !own.isVirtual, let seen = rows[entries[index].rootPage],
        let widths = seen.widths, own.isWithoutRowid != seen.hasRowids, let better = better(own, seen, widths),
        !isExchanged(own, seen, widths.usual, tables)
      else { continue }
      entries[index].sql = SchemaRepair.statement(better)
      doubts[entries[index].name.lowercased()] = ColumnDoubt(
        words: "the declaration of the table is damaged, and the rows have another number of values than it has columns"
      )
    }
    return doubts
  }

  /// Whether the rows are those of another table, which has others: its root was exchanged with this one's.
  private static func isExchanged(
    _ own: TableDefinition, _ seen: TableRows, _ width: Int, _ tables: [(definition: TableDefinition, rows: TableRows)]
  ) -> Bool {
    tables.contains { other in
      other.definition.name != own.name && other.definition.storedColumns.count == width
        && other.rows.widths?.most != width && seen.canBe(of: other.definition)
    }
  }

  /// The most columns of a table in which the place of a damaged comma is looked for, and the most such places.
  private static let searched = (columns: 64, places: 2)

  private static func better(
    _ own: TableDefinition, _ seen: TableRows, _ widths: (usual: Int, most: Int)
  ) -> TableDefinition? {
    let missing = widths.usual - own.storedColumns.count
    if missing > 0 {
      let isSearched = own.columns.count <= searched.columns && missing <= searched.places
      var best = own
      for _ in 0..<missing {
        let end = best.columns.count
        guard let column = TableDefinition(sql: "CREATE TABLE t (column_\(end + 1))")?.columns.first else { return nil }
        let candidates = (isSearched ? 0...end : end...end).reversed().map { place in
          var candidate = best
          candidate.columns.insert(column, at: place)
          if let alias = best.rowidAlias, alias >= place { candidate.rowidAlias = alias + 1 }
          return candidate
        }
        best = seen.best(of: candidates)?.definition ?? best
      }
      return best
    }
    let strangeness = seen.strangeness(in: own)
    guard widths.most < own.storedColumns.count, strangeness > tolerance, own.columns.count <= searched.columns else {
      return nil
    }
    let candidates = own.columns.indices.filter { $0 != own.rowidAlias && !own.columns[$0].isPrimaryKey }.map { place in
      var candidate = own
      candidate.columns.remove(at: place)
      if let alias = own.rowidAlias, alias > place { candidate.rowidAlias = alias - 1 }
      return candidate
    }
    return seen.best(of: candidates).flatMap { $0.strangeness * 2 < strangeness ? $0.definition : nil }
  }
}

extension TableRows {
  /// The number of values that nearly all rows have at least, and the number that none exceeds; nil where there are none.
  fileprivate var widths: (usual: Int, most: Int)? {
    let widths = rows.map(\.classes.count).sorted()
    return widths.last.map { (widths[widths.count / 10], $0) }
  }

  /// The first of the definitions that the rows fit best.
  fileprivate func best(of definitions: [TableDefinition]) -> (definition: TableDefinition, strangeness: Double)? {
    definitions.map { ($0, strangeness(in: $0)) }.min { $0.1 < $1.1 }
  }

  /// The share of values that are not of the kind of their columns; 1 where the rowid's column has any.
  fileprivate func strangeness(in definition: TableDefinition) -> Double {
    canBe(of: definition) ? strangeShare(in: definition) : 1
  }
}

/// What is not known of the order of a table's columns.
struct ColumnDoubt {
  var words: String

  /// The places of a record whose columns may be exchanged with each other, group by group; empty where any may be.
  var groups: [[Int]] = []
}
