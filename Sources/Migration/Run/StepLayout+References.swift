internal import ManagedObjectModel
internal import PersistentStore

extension StepLayout {
  /// A relationship's target, as SQL over the source row.
  struct Reference {
    var key: String

    var entityNumber: String

    /// The record's position among the target's owners.
    var order: String
  }

  /// The source of a destination relationship's pairs.
  struct PairSource: Hashable {
    let ownTable: String

    let oldDestination: String

    let storage: PropertyStorage

    /// The storage of the pairs, equal from both sides.
    var place: [String] {
      switch storage {
      case .attribute: []
      case .toOne(let column, _, _): [ownTable, column]
      case .toManyByColumn(let table, let column, _): [table, column]
      case .toManyByJoinTable(let table, _, _, _): [table]
      }
    }
  }

  /// The sources of a destination relationship's pairs, for all entities with it.
  func pairSources(of key: PropertyKey) -> [(source: PairSource, numbers: [Int])] {
    var result: [(source: PairSource, numbers: [Int])] = []
    for route in routes(of: key) {
      guard let name = origin(of: key, in: route), let storage = source.storage(of: name, in: route.source.name),
        let old = sourceSide.relationship(name, of: route.source.name)
      else { continue }
      let found = PairSource(
        ownTable: route.source.tableName, oldDestination: old.destinationEntityName, storage: storage)
      if let index = result.firstIndex(where: { $0.source == found }) {
        result[index].numbers.append(route.source.number)
      } else {
        result.append((found, [route.source.number]))
      }
    }
    return result
  }

  // MARK: To-one

  func reference(_ key: PropertyKey, _ route: Route) -> Reference? {
    guard let new = relationship(key), let mapping = route.mapping.propertyMapping(of: PropertyPath(key.name)) else {
      return nil
    }
    switch mapping.value {
    case .relationship(let name):
      guard
        case .toOne(let column, let entityColumn, let orderColumn) = source.storage(of: name, in: route.source.name),
        let old = sourceSide.relationship(name, of: route.source.name)
      else { return nil }
      let found = reference(
        to: Self.column(column), entityColumn: entityColumn.map(Self.column), order: orderColumn.map(Self.column),
        old: old.destinationEntityName, new: new.destinationEntityName)
      return joined(found, with: new, key, route, place: [route.source.tableName, column])
    case .inverse:
      return destinationSide.inverse(of: new).flatMap { ownerReference($0.key, route) }
    case .copy, .convert, .externalize, .defaultValue, .null, .recompute, .destinations, .expression: return nil
    }
  }

  /// Adds the pairs of a newly inverse to-many: an empty relationship leads to the record that leads here.
  private func joined(
    _ found: Reference?, with relationship: Relationship, _ key: PropertyKey, _ route: Route, place: [String]
  ) -> Reference? {
    guard let inverse = destinationSide.inverse(of: relationship), inverse.relationship.isToMany,
      destinationSide.inverse(of: inverse.relationship)?.key == key,
      let other = ownerReference(inverse.key, route, leavingOut: place)
    else { return found }
    guard let found else { return other }
    return Reference(
      key: "coalesce(\(found.key), \(other.key))",
      entityNumber: "CASE WHEN \(found.key) IS NOT NULL THEN \(found.entityNumber) ELSE \(other.entityNumber) END",
      order: "coalesce(\(found.order), \(other.order))")
  }

  private func reference(
    to expression: String, entityColumn: String?, order: String?, old: String, new: String
  ) -> Reference? {
    guard let fit = fit(oldDestination: old, newDestination: new), !fit.numbers.isEmpty else { return nil }
    let known = numbers
    let table = fit.table.sqlName
    let cases = fit.numbers.map { "WHEN \($0) THEN \(known[$0] ?? 0)" }.joined(separator: " ")
    let key: String
    let number: String
    if let entityColumn {
      key = fit.isComplete ? expression : "CASE WHEN \(entityColumn) IN \(fit.numbers.sqlList) THEN \(expression) END"
      number = "CASE \(entityColumn) \(cases) END"
    } else {
      key =
        fit.isComplete
        ? expression
        : "CASE WHEN (SELECT q.Z_ENT FROM old.\(table) AS q WHERE q.Z_PK = \(expression)) IN \(fit.numbers.sqlList) "
          + "THEN \(expression) END"
      number =
        fit.isComplete && fit.numbers.count == 1
        ? "CASE WHEN \(expression) IS NOT NULL THEN \(known[fit.numbers[0]] ?? 0) END"
        : "(SELECT CASE q.Z_ENT \(cases) END FROM old.\(table) AS q WHERE q.Z_PK = \(expression))"
    }
    // A new order starts as primary key order.
    let place = order ?? Self.column("Z_PK")
    return Reference(key: key, entityNumber: number, order: "CASE WHEN \(key) IS NOT NULL THEN \(place) END")
  }

  // MARK: Inverse

  /// The owner of this record through a relationship stored on this side, if any.
  ///
  /// Of several the lowest primary key wins.
  ///
  /// - Parameter leavingOut: Storage to ignore, because it is the record's own column.
  func ownerReference(_ key: PropertyKey, _ route: Route, leavingOut place: [String] = []) -> Reference? {
    Self.either(
      pairSources(of: key).filter { $0.source.place != place }.compactMap { source, numbers in
        ownerReference(source, numbers, route)
      })
  }

  private static func either(_ references: [Reference]) -> Reference? {
    guard let first = references.first else { return nil }
    guard references.count > 1 else { return first }
    func either(_ part: KeyPath<Reference, String>) -> String {
      "coalesce(\(references.map { $0[keyPath: part] }.joined(separator: ", ")))"
    }
    return Reference(key: either(\.key), entityNumber: either(\.entityNumber), order: either(\.order))
  }

  /// A reference to an owner; its entity must still have the relationship.
  private func ownerReference(_ pairs: PairSource, _ numbers: [Int], _ route: Route) -> Reference? {
    let expression: String
    var order: String?
    let own = Self.column("Z_PK")
    guard source.entity(named: pairs.oldDestination)?.numbers.contains(route.source.number) == true else { return nil }
    switch pairs.storage {
    case .attribute: return nil
    case .toManyByColumn(let table, let column, let orderColumn):
      guard table == route.source.tableName else { return nil }
      expression = Self.column(column)
      order = orderColumn.map(Self.column)
    case .toOne(let column, _, _):
      expression =
        "(SELECT min(p.Z_PK) FROM old.\(pairs.ownTable.sqlName) AS p "
        + "WHERE p.\(column.sqlName) = \(own) AND p.Z_ENT IN \(numbers.sqlList))"
    case .toManyByJoinTable(let table, let ownColumn, let destinationColumn, let orderColumn):
      let condition = "p.\(destinationColumn.sqlName) = \(own)"
      let place = "old.\(table.sqlName) AS p WHERE \(condition)"
      expression = "(SELECT min(p.\(ownColumn.sqlName)) FROM \(place))"
      order = orderColumn.map { column in
        "(SELECT p.\(column.sqlName) FROM \(place) ORDER BY p.\(ownColumn.sqlName) LIMIT 1)"
      }
    }
    let known = self.numbers
    let entity = "(SELECT q.Z_ENT FROM old.\(pairs.ownTable.sqlName) AS q WHERE q.Z_PK = \(expression))"
    let isComplete = coversTable(pairs, numbers)
    let reference = isComplete ? expression : "CASE WHEN \(entity) IN \(numbers.sqlList) THEN \(expression) END"
    let cases = numbers.map { "WHEN \($0) THEN \(known[$0] ?? 0)" }.joined(separator: " ")
    return Reference(
      key: reference, entityNumber: "CASE \(entity) \(cases) END",
      order: "CASE WHEN \(reference) IS NOT NULL THEN \(order ?? own) END")
  }

  /// Whether these numbers are those of all records in the owners' table.
  func coversTable(_ pairs: PairSource, _ numbers: [Int]) -> Bool {
    let numbers = Set(numbers)
    return source.entities.allSatisfy { entity in
      entity.tableName != pairs.ownTable || numbers.contains(entity.number)
        || sourceSide.entity(entity.name)?.isAbstract == true
    }
  }
}
