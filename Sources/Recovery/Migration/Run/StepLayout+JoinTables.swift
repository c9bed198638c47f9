internal import PersistentStore

extension StepLayout {
  /// The statements that fill a join table of the destination from the source's pairs; several sources give several.
  func statements(filling table: JoinTableLayout, schema: SQLSchema) -> [String] {
    var done: Set<[String]> = []
    var selections: [String] = []
    for isReversed in [false, true] {
      for (pairs, numbers) in pairSources(of: isReversed ? table.inverse : table.relationship) {
        // A relationship that is its own inverse has both directions of every pair; one that was before has them already.
        let isTurned = table.isReflexive && isReversed
        if isTurned, isReflexive(pairs) { continue }
        guard done.insert(isTurned ? pairs.place + ["reversed"] : pairs.place).inserted else { continue }
        if let same = wholeCopy(of: pairs, into: table, isReversed: isReversed, schema: schema) {
          selections.append(same)
        } else if let selection = selection(pairs, numbers, into: table, isReversed: isReversed) {
          selections.append(selection)
        }
      }
    }
    let name = SQLText.identifier(table.name)
    guard selections.count > 1 else { return selections.map { "INSERT INTO main.\(name)\($0)" } }
    return selections.map { "INSERT OR IGNORE INTO main.\(name)\($0)" }
  }

  /// Whether pairs lie in a join table that has both directions of each.
  private func isReflexive(_ pairs: PairSource) -> Bool {
    guard case .toManyByJoinTable(let name, _, _, _) = pairs.storage else { return false }
    return source.joinTable(named: name)?.isReflexive ?? false
  }

  /// The columns of a join table with what a pair holds for each.
  private struct Pair {
    var own: String
    var destination: String
    var ownOrder: String?
    var destinationOrder: String?
    var from: String
  }

  /// SQLite copies whole records, index and all, where both tables have the same shape.
  private func wholeCopy(
    of pairs: PairSource, into table: JoinTableLayout, isReversed: Bool, schema: SQLSchema
  ) -> String? {
    guard case .toManyByJoinTable(let name, let own, let other, _) = pairs.storage,
      let old = source.joinTable(named: name), let found = schema.tables[name],
      found.columns.map(\.name) == old.columns, old.columns.count == table.columns.count,
      (old.sourceOrderColumn == nil) == (table.sourceOrderColumn == nil),
      (old.destinationOrderColumn == nil) == (table.destinationOrderColumn == nil),
      (own, other)
        == (isReversed ? (old.destinationColumn, old.sourceColumn) : (old.sourceColumn, old.destinationColumn)),
      isComplete(table)
    else { return nil }
    return " SELECT * FROM old.\(SQLText.identifier(name))"
  }

  /// Whether no record that the pairs could name is left behind.
  private func isComplete(_ table: JoinTableLayout) -> Bool {
    let tables = [table.relationship, table.inverse].map { key in
      pairSources(of: key).allSatisfy { pairs, numbers in
        let owners = source.entities.filter { $0.tableName == pairs.ownTable && !isAbstract($0) }.map(\.number)
        return Set(owners).isSubset(of: Set(numbers))
      }
    }
    return tables.allSatisfy { $0 }
  }

  private func selection(
    _ pairs: PairSource, _ numbers: [Int], into table: JoinTableLayout, isReversed: Bool
  ) -> String? {
    guard var pair = pair(pairs, numbers) else { return nil }
    if isReversed {
      swap(&pair.own, &pair.destination)
      swap(&pair.ownOrder, &pair.destinationOrder)
    }
    var columns = [table.sourceColumn, table.destinationColumn]
    var values = [pair.own, pair.destination]
    // A new order begins as that of the primary keys.
    if let column = table.sourceOrderColumn {
      columns.append(column)
      values.append(pair.ownOrder ?? pair.own)
    }
    if let column = table.destinationOrderColumn {
      columns.append(column)
      values.append(pair.destinationOrder ?? pair.destination)
    }
    var conditions = ["\(pair.own) IS NOT NULL", "\(pair.destination) IS NOT NULL"]
    if !isComplete(table) {
      conditions += [
        existence(of: pair.own, as: table.relationship.entityName),
        existence(of: pair.destination, as: table.inverse.entityName),
      ].compactMap { $0 }
    }
    return " (\(columns.map(SQLText.identifier).joined(separator: ", "))) SELECT \(values.joined(separator: ", ")) "
      + "FROM \(pair.from) WHERE \(conditions.joined(separator: " AND ")) ORDER BY 1, 2"
  }

  /// The record must have arrived, and as one of the entity that has the relationship.
  private func existence(of key: String, as entityName: String) -> String? {
    guard let entity = destination.entity(named: entityName) else { return nil }
    return "EXISTS (SELECT 1 FROM main.\(SQLText.identifier(entity.tableName)) AS q WHERE q.Z_PK = \(key) "
      + "AND q.Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound))"
  }

  private func pair(_ pairs: PairSource, _ numbers: [Int]) -> Pair? {
    func column(_ name: String) -> String { "p.\(SQLText.identifier(name))" }
    switch pairs.storage {
    case .attribute: return nil
    case .toOne(let key, _, let order):
      return Pair(
        own: "p.Z_PK", destination: column(key), ownOrder: order.map(column), destinationOrder: nil,
        from: "(SELECT * FROM old.\(SQLText.identifier(pairs.ownTable)) WHERE Z_ENT IN \(numbers.sqlList)) AS p")
    case .toManyByColumn(let table, let key, let order):
      return Pair(
        own: column(key), destination: "p.Z_PK", ownOrder: nil, destinationOrder: order.map(column),
        from: "old.\(SQLText.identifier(table)) AS p")
    case .toManyByJoinTable(let name, let own, let destination, let order):
      let table = source.joinTable(named: name)
      let ownOrder = table.flatMap { own == $0.sourceColumn ? $0.sourceOrderColumn : $0.destinationOrderColumn }
      return Pair(
        own: column(own), destination: column(destination), ownOrder: ownOrder.map(column),
        destinationOrder: order.map(column), from: "old.\(SQLText.identifier(name)) AS p")
    }
  }
}
