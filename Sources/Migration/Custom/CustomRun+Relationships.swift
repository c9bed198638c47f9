internal import GRDB
import ManagedObjectModel
internal import PersistentStore

/// The record pairs that a destination relationship connects, as parts of a query.
struct CustomPairs {
  /// The primary keys of the owning record and its target.
  var own = "d1.Z_PK"
  var target = "d2.Z_PK"

  var ownEntity = "d1.Z_ENT"
  var targetEntity = "d2.Z_ENT"

  /// The owner's position, if the source has an order.
  var ownOrder: String?

  /// The target's position, if the source has an order.
  var targetOrder: String?

  var from: String

  var conditions: [String]

  /// Whether owners are unique, so that no order is needed.
  var isUnique = false

  var reversed: CustomPairs {
    CustomPairs(
      own: target, target: own, ownEntity: targetEntity, targetEntity: ownEntity, ownOrder: targetOrder,
      targetOrder: ownOrder, from: from, conditions: conditions)
  }
}

extension CustomRun {
  /// Keeps existing connections.
  func fillRelationships(of owners: [CustomRoute]) throws {
    for table in layout.destination.tables {
      for column in table.columns {
        if case .toOne(let key) = column.role {
          guard case .toOne(let name, let entityColumn, let orderColumn) = layout.destination.storage(of: key),
            !isCopied(key)
          else { continue }
          var pairs = pairs(of: key, owners)
          if let relationship = layout.relationship(key),
            let inverse = layout.destinationSide.inverse(of: relationship)?.key, inverse != key
          {
            pairs += self.pairs(of: inverse, owners).map(\.reversed)
          }
          try fill(table.name, name, entityColumn, orderColumn, pairs)
          try countDropped(pairs, of: key)
        } else if case .owner(let key) = column.role {
          guard case .toManyByColumn(_, let name, let orderColumn) = layout.destination.storage(of: key), !isCopied(key)
          else { continue }
          try fill(table.name, name, nil, orderColumn, pairs(of: key, owners).map(\.reversed))
        }
      }
    }
    for table in layout.destination.joinTables {
      guard isCopied(table.relationship), isCopied(table.inverse) else {
        try fill(table, owners)
        continue
      }
      for statement in layout.statements(filling: table, schema: contents.schema) {
        try database.execute(sql: statement)
      }
    }
  }

  // MARK: Copying

  /// Whether a relationship's pairs are the source's, as in an inferred step.
  ///
  /// They are if both sides are copied, and every entity at both ends is made of whole source entities, without
  /// policies, filters and other keys, that make no other records.
  func isCopied(_ key: PropertyKey) -> Bool {
    if let known = copiedRelationships[key] { return known }
    let isCopied = findsCopied(key)
    copiedRelationships[key] = isCopied
    return isCopied
  }

  private func findsCopied(_ key: PropertyKey) -> Bool {
    guard policies == nil, let relationship = layout.relationship(key) else { return false }
    let sides = [key, layout.destinationSide.inverse(of: relationship)?.key].compactMap { $0 }
    let holders = sides.map { (key: $0, numbers: layout.destination.entity(named: $0.entityName)?.numbers) }
    let ends = holders.map(\.numbers) + [layout.destination.entity(named: relationship.destinationEntityName)?.numbers]
    return step.routes.allSatisfy { route in
      guard let destination = route.destination, ends.contains(where: { $0?.contains(destination.number) ?? false })
      else { return true }
      guard let source = route.source, route.filter == nil, offset(of: route) == 0, step.routeCounts[source.name] == 1
      else { return false }
      let whole = StepLayout.Route(mapping: route.mapping, source: source, destination: destination)
      return holders.allSatisfy { key, numbers in
        !(numbers?.contains(destination.number) ?? false) || layout.origin(of: key, in: whole) != nil
      }
    }
  }

  /// The columns of copied relationships, with their values as SQL over the source row.
  func copiedColumns(
    _ mapping: EntityMapping, _ source: EntityLayout, _ destination: EntityLayout
  ) -> [(column: ColumnLayout, sql: String)] {
    let route = StepLayout.Route(mapping: mapping, source: source, destination: destination)
    let columns = layout.destination.table(named: destination.tableName)?.columns ?? []
    // No attribute is a copied relationship.
    return columns.filter { $0.role.property.map(isCopied) ?? false }.map { ($0, layout.expression($0, route)) }
  }

  // MARK: Writing

  /// Gives each row its first pair, by the target's key.
  private func fill(
    _ table: String, _ column: String, _ entityColumn: String?, _ orderColumn: String?, _ pairs: [CustomPairs]
  ) throws {
    guard !pairs.isEmpty else { return }
    try database.execute(sql: "DELETE FROM temp.LazaretPairs")
    for pair in pairs {
      try database.execute(
        sql: "INSERT OR IGNORE INTO temp.LazaretPairs (x, y, e, n) SELECT \(pair.own), \(pair.target), "
          + "\(pair.targetEntity), \(pair.ownOrder ?? pair.own) FROM \(pair.from) "
          + "WHERE \(pair.conditions.joined(separator: " AND "))\(pair.isUnique ? "" : " ORDER BY 1, 2")")
    }
    let name = column.sqlName
    let others = [(entityColumn, "p.e"), (orderColumn, "p.n")].compactMap { column, value in
      column.map { ", \($0.sqlName) = \(value)" }
    }
    try database.execute(
      sql: "UPDATE main.\(table.sqlName) AS t SET \(name) = p.y\(others.joined()) "
        + "FROM temp.LazaretPairs AS p WHERE t.Z_PK = p.x AND t.\(name) IS NULL")
  }

  /// Counts the pairs dropped because another was chosen.
  private func countDropped(_ pairs: [CustomPairs], of key: PropertyKey) throws {
    let dropped =
      try pairs.filter { !$0.isUnique }.map { pair in
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM (SELECT DISTINCT \(pair.own) AS own, \(pair.target) AS target FROM \(pair.from) "
            + "WHERE \(pair.conditions.joined(separator: " AND "))) AS d JOIN temp.LazaretPairs AS p "
            + "ON p.x = d.own AND p.y <> d.target") ?? 0
      }.max() ?? 0
    if dropped > 0 { droppedPairs[key] = dropped }
  }

  private func fill(_ table: JoinTableLayout, _ owners: [CustomRoute]) throws {
    var pairs = pairs(of: table.relationship, owners)
    if !table.isReflexive { pairs += self.pairs(of: table.inverse, owners).map(\.reversed) }
    for pair in pairs {
      // A new order starts as primary key order.
      let (columns, values) = table.row(
        pair.own, pair.target, ownOrder: "coalesce(\(pair.ownOrder ?? "NULL"), \(pair.own))",
        destinationOrder: "coalesce(\(pair.targetOrder ?? "NULL"), \(pair.target))")
      try database.execute(
        sql: "INSERT OR IGNORE INTO main.\(table.name.sqlName) (\(columns)) SELECT \(values) "
          + "FROM \(pair.from) WHERE \(pair.conditions.joined(separator: " AND ")) ORDER BY 1, 2")
    }
  }

  /// Makes both sides of one-to-one relationships agree.
  func alignOneToOne() throws {
    for table in layout.destination.tables {
      for column in table.columns {
        guard case .toOne(let key) = column.role, let relationship = layout.relationship(key),
          let inverse = layout.destinationSide.inverse(of: relationship), !inverse.relationship.isToMany,
          case .toOne(let back, _, _) = layout.destination.storage(of: inverse.key),
          let target = layout.destination.entity(named: relationship.destinationEntityName),
          case .toOne(let name, let entityColumn, _) = layout.destination.storage(of: key)
        else { continue }
        let own = name.sqlName
        let rest = entityColumn.map { ", \($0.sqlName) = NULL" } ?? ""
        try database.execute(
          sql: "UPDATE main.\(table.name.sqlName) AS t SET \(own) = NULL\(rest) WHERE t.\(own) IS NOT NULL "
            + "AND NOT EXISTS (SELECT 1 FROM main.\(target.tableName.sqlName) AS q "
            + "WHERE q.Z_PK = t.\(own) AND q.\(back.sqlName) = t.Z_PK)")
      }
    }
  }

  // MARK: Pairs

  /// The mapped pairs of a destination relationship.
  private func pairs(of key: PropertyKey, _ owners: [CustomRoute]) -> [CustomPairs] {
    guard let relationship = layout.relationship(key), let holder = layout.destination.entity(named: key.entityName),
      let wanted = layout.destination.entity(named: relationship.destinationEntityName)
    else { return [] }
    var groups: [(routes: [CustomRoute], value: PropertyMapping.Value)] = []
    for route in owners {
      // A policy may make several entities.
      guard route.destination.map({ holder.numbers.contains($0.number) }) ?? true,
        let value = route.mapping.propertyMapping(of: PropertyPath(key.name))?.value
      else { continue }
      switch value {
      case .relationship, .destinations: break
      case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .inverse, .expression: continue
      }
      if route.isSetBased,
        let index = groups.firstIndex(where: { group in
          group.value == value && group.routes[0].isSetBased && group.routes[0].range == route.range
        })
      {
        groups[index].routes.append(route)
      } else {
        groups.append(([route], value))
      }
    }
    return groups.flatMap { pairs($0.routes, $0.value, holder, wanted) }
  }

  private func pairs(
    _ owners: [CustomRoute], _ value: PropertyMapping.Value, _ holder: EntityLayout, _ wanted: EntityLayout
  ) -> [CustomPairs] {
    guard let first = owners.first, let source = first.source else { return [] }
    var query: (pairs: CustomPairs, key: String, family: EntityLayout, isUnique: Bool)
    var targets = step.routes
    if case .destinations(let name, _) = value { targets = targets.filter { $0.mapping.name == name } }
    switch value {
    case .destinations(_, of: .record):
      query = (CustomPairs(from: "old.\(source.tableName.sqlName) AS s1", conditions: []), "s1.Z_PK", source, true)
    case .relationship(let relationship), .destinations(_, of: .relationship(let relationship)):
      guard let found = sourcePairs(relationship, source) else { return [] }
      query = found
    case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .inverse, .expression: return []
    }
    targets = targets.filter { route in
      route.source.map { query.family.numbers.contains($0.number) } ?? false
        && (!route.isSetBased || route.destination.map { wanted.numbers.contains($0.number) } ?? false)
    }
    // Ranges are stacked, so the first pair has the lowest key.
    targets.sort { ($0.range ?? .max, $0.number) < ($1.range ?? .max, $1.number) }
    query.pairs.conditions.append("s1.Z_ENT IN \(owners.compactMap { $0.source?.number }.sqlList)")
    join(&query.pairs, first, source: "s1", key: "s1.Z_PK", as: "1", holder)
    if !first.isSetBased {
      query.pairs.from +=
        " CROSS JOIN temp.LazaretMapped AS m ON m.root = \(rootNumber(holder)) AND m.destination = d1.Z_PK"
    }
    var result: [CustomPairs] = []
    var known: [Int?] = []
    for route in targets {
      var pairs = query.pairs
      if route.isSetBased {
        // Routes of a range differ only in the entity read.
        guard !known.contains(route.range), let table = route.source?.tableName else { continue }
        known.append(route.range)
        let same = targets.filter { $0.isSetBased && $0.range == route.range }.compactMap { $0.source?.number }
        pairs.from += " CROSS JOIN old.\(table.sqlName) AS s2 ON s2.Z_PK = \(query.key)"
        pairs.conditions.append("s2.Z_ENT IN \(same.sqlList)")
      }
      join(&pairs, route, source: "s2", key: query.key, as: "2", wanted)
      pairs.isUnique = first.isSetBased && route.isSetBased && query.isUnique
      result.append(pairs)
    }
    return result
  }

  private func join(
    _ pairs: inout CustomPairs, _ route: CustomRoute, source: String, key: String, as suffix: String,
    _ entity: EntityLayout
  ) {
    let table = entity.tableName.sqlName
    if route.isSetBased {
      let offset = offset(of: route)
      pairs.from +=
        " CROSS JOIN main.\(table) AS d\(suffix) ON d\(suffix).Z_PK = \(source).Z_PK\(offset == 0 ? "" : " + \(offset)")"
    } else {
      pairs.from +=
        " CROSS JOIN temp.LazaretAssociation AS a\(suffix) ON a\(suffix).route = \(route.number) "
        + "AND a\(suffix).source = \(key) AND a\(suffix).root = \(rootNumber(entity)) "
        + "CROSS JOIN main.\(table) AS d\(suffix) ON d\(suffix).Z_PK = a\(suffix).destination"
    }
    pairs.conditions.append(
      "d\(suffix).Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound)")
  }

  private func rootNumber(_ entity: EntityLayout) -> Int {
    layout.destination.entity(named: entity.rootName)?.number ?? entity.number
  }

  /// The source pairs: the owner's row `s1` and the target's primary key.
  private func sourcePairs(
    _ name: String, _ source: EntityLayout
  ) -> (pairs: CustomPairs, key: String, family: EntityLayout, isUnique: Bool)? {
    guard let target = layout.sourceSide.relationship(name, of: source.name)?.destinationEntityName,
      let family = layout.source.entity(named: target), let storage = layout.source.storage(of: name, in: source.name)
    else { return nil }
    let own = "old.\(source.tableName.sqlName) AS s1"
    switch storage {
    case .attribute: return nil
    case .toOne(let column, _, let orderColumn):
      let pairs = CustomPairs(
        ownOrder: orderColumn.map { "s1.\($0.sqlName)" }, from: own, conditions: [])
      return (pairs, "s1.\(column.sqlName)", family, true)
    case .toManyByColumn(let table, let column, let orderColumn):
      let pairs = CustomPairs(
        targetOrder: orderColumn.map { "p.\($0.sqlName)" },
        from: "old.\(table.sqlName) AS p CROSS JOIN \(own) ON s1.Z_PK = p.\(column.sqlName)", conditions: [])
      return (pairs, "p.Z_PK", family, false)
    case .toManyByJoinTable(let table, let ownColumn, let destinationColumn, let orderColumn):
      let inverseOrder = layout.source.ownOrderColumn(ofJoinTable: table, ownColumn: ownColumn)
      let pairs = CustomPairs(
        ownOrder: inverseOrder.map { "p.\($0.sqlName)" }, targetOrder: orderColumn.map { "p.\($0.sqlName)" },
        from: "old.\(table.sqlName) AS p CROSS JOIN \(own) ON s1.Z_PK = p.\(ownColumn.sqlName)", conditions: [])
      return (pairs, "p.\(destinationColumn.sqlName)", family, false)
    }
  }
}
