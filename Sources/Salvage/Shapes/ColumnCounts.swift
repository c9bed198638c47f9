internal import SQLiteFormat

/// Compares the declared number of columns with the values of the rows.
///
/// A damaged comma merges or splits columns. If rows have more values than columns, a column is added at the best
/// place; if they have fewer and fit much better without one, it is removed.
enum ColumnCounts {
  private static let tolerance = 0.1

  /// Repairs the statements; returns the tables with guessed columns by lowercase name.
  ///
  /// - Parameter rows: the rows by root page.
  static func repair(_ entries: inout [SchemaEntry], rows: [UInt32: TableRows]) -> [String: ColumnDoubt] {
    var doubts: [String: ColumnDoubt] = [:]
    let tables = entries.compactMap { entry -> (TableDefinition, TableRows)? in
      guard let definition = entry.tableDefinition, let seen = rows[entry.rootPage] else { return nil }
      return (definition, seen)
    }
    for index in entries.indices where entries[index].kind == .table {
      guard var own = entries[index].tableDefinition, !own.isVirtual else { continue }
      if own.isWithoutRowid, own.hasUnclearKey {
        doubts[entries[index].name.lowercased()] = ColumnDoubt(
          words: "the primary key in the declaration of the table is damaged, and its columns come first in each row")
        if let seen = rows[entries[index].rootPage], !seen.hasRowids, !seen.rows.isEmpty {
          seen.extendKey(of: &own)
          entries[index].sql = SchemaRepair.statement(own)
        }
      }
      guard let seen = rows[entries[index].rootPage], let widths = seen.widths, own.isWithoutRowid != seen.hasRowids,
        let better = better(own, seen, widths), !isExchanged(own, seen, widths.usual, tables)
      else { continue }
      entries[index].sql = SchemaRepair.statement(better)
      doubts[entries[index].name.lowercased()] = ColumnDoubt(
        words: "the declaration of the table is damaged, and the rows have another number of values than it has columns"
      )
    }
    return doubts
  }

  private static func isExchanged(
    _ own: TableDefinition, _ seen: TableRows, _ width: Int, _ tables: [(definition: TableDefinition, rows: TableRows)]
  ) -> Bool {
    tables.contains { other in
      other.definition.name != own.name && other.definition.storedColumns.count == width
        && other.rows.widths?.most != width && seen.canBe(of: other.definition)
    }
  }

  /// The most columns, and possible commas, to search.
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
  /// The number of values that nearly all rows have, and the maximum.
  fileprivate var widths: (usual: Int, most: Int)? {
    let widths = rows.map(\.classes.count).sorted()
    return widths.last.map { (widths[widths.count / 10], $0) }
  }

  /// Adds the next columns without NULL to an uncertain key, so that it refuses no row; the stored order stays.
  fileprivate func extendKey(of table: inout TableDefinition) {
    table.makeAcceptable()
    let filled = table.storedColumns.enumerated().prefix { field, _ in
      rows.allSatisfy { $0.classes.indices.contains(field) && $0.classes[field] != .null }
    }
    for (_, place) in filled where !table.columns[place].isPrimaryKey {
      table.primaryKeyColumns.append(SQLiteFormat.IndexedColumn(name: table.columns[place].name))
    }
  }

  /// Returns the best-fitting definition, the first of equals.
  fileprivate func best(of definitions: [TableDefinition]) -> (definition: TableDefinition, strangeness: Double)? {
    definitions.map { ($0, strangeness(in: $0)) }.min { $0.1 < $1.1 }
  }

  /// Returns the share of misfit values; 1 if the rowid's column has any.
  fileprivate func strangeness(in definition: TableDefinition) -> Double {
    canBe(of: definition) ? strangeShare(in: definition) : 1
  }
}
