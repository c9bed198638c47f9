internal import ManagedObjectModel
internal import PersistentStore
import Platform

/// A mapping together with the tables of both sides, for writing SQL.
struct StepLayout {
  /// The records of one entity on their way to another.
  struct Route {
    let mapping: EntityMapping
    let source: EntityLayout
    let destination: EntityLayout

    /// Whether both entities have the same renaming identifier, so that the records go on as what they were.
    func goesOn(in mapping: MappingModel) -> Bool {
      mapping.source.entities[source.name]?.renamingIdentifier
        == mapping.destination.entities[destination.name]?.renamingIdentifier
    }
  }

  let mapping: MappingModel
  private let before: LayoutCache.Entry
  private let after: LayoutCache.Entry

  var source: StoreLayout { before.layout }
  var destination: StoreLayout { after.layout }
  var sourceSide: InferenceSide { before.side }
  var destinationSide: InferenceSide { after.side }

  /// The entities that have records on both sides, by their numbers in the source; of several for one entity the first is
  /// the one that goes on.
  let routes: [Route]

  /// Whether inferred mappings alone cannot express it, so that it is carried out by `CustomRun`.
  let isCustom: Bool

  /// Lays out both models.
  ///
  /// - Throws: what the layout of a model refuses.
  init(_ mapping: MappingModel, layouts: LayoutCache = LayoutCache()) throws(MigrationError) {
    self.mapping = mapping
    before = try layouts.entry(for: mapping.source)
    after = try layouts.entry(for: mapping.destination)
    let (source, destination) = (before.layout, after.layout)
    var routes: [Route] = []
    for entity in mapping.entityMappings {
      guard let from = entity.sourceEntityName, let to = entity.destinationEntityName,
        let old = source.entity(named: from), let new = destination.entity(named: to)
      else { continue }
      routes.append(Route(mapping: entity, source: old, destination: new))
    }
    isCustom = mapping.isCustom
    self.routes = routes.enumerated().ordered { first, second in
      let (one, other) = (first.element, second.element)
      if one.source.number != other.source.number { return one.source.number < other.source.number }
      let (goesOn, otherGoesOn) = (one.goesOn(in: mapping), other.goesOn(in: mapping))
      return goesOn != otherGoesOn ? goesOn : first.offset < second.offset
    }.map(\.element)
  }

  /// The schema of a new store of the source's model.
  func sourceSchema() throws -> SQLSchema { try before.newSchema() }

  /// The schema of a new store of the destination's model.
  func destinationSchema() throws -> SQLSchema { try after.newSchema() }

  /// The number in the destination of each entity of the source whose records stay.
  var numbers: [Int: Int] {
    Dictionary(routes.map { ($0.source.number, $0.destination.number) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether an entity that stays gets another number.
  var isRenumbering: Bool { routes.contains { $0.source.number != $0.destination.number } }

  /// The routes that end in a table.
  func routes(to table: TableLayout) -> [Route] { routes.filter { $0.destination.tableName == table.name } }

  /// The routes of records that have a property which an entity of the destination declares.
  func routes(of key: PropertyKey) -> [Route] {
    guard let numbers = destination.entity(named: key.entityName)?.numbers else { return [] }
    return routes.filter { numbers.contains($0.destination.number) }
  }

  /// The relationship that a property of the destination is.
  func relationship(_ key: PropertyKey) -> Relationship? {
    destination.model.entities[key.entityName]?.properties[key.name]?.relationship
  }

  /// The name of a relationship's source property, where the mapping takes it from one.
  func origin(of key: PropertyKey, in route: Route) -> String? {
    guard case .relationship(let name) = route.mapping.propertyMapping(of: PropertyPath(key.name))?.value else {
      return nil
    }
    return name
  }

  /// The records that a relationship of the source may lead to and that the new relationship may lead to as well.
  ///
  /// - Returns: the table of the old destination, the numbers there that fit, and whether those are all that occur.
  func fit(
    oldDestination: String, newDestination: String
  ) -> (table: String, numbers: [Int], isComplete: Bool)? {
    guard let old = source.entity(named: oldDestination), let new = destination.entity(named: newDestination) else {
      return nil
    }
    let known = numbers
    let fitting = old.numbers.filter { known[$0].map { new.numbers.contains($0) } ?? false }
    let isComplete = old.numbers.allSatisfy { number in
      fitting.contains(number)
        || source.entity(numbered: number).flatMap { sourceSide.entity($0.name)?.isAbstract } == true
    }
    return (old.tableName, fitting, isComplete)
  }
}

extension Sequence<Int> {
  /// The numbers as a list of SQL.
  var sqlList: String { "(" + map(String.init).joined(separator: ", ") + ")" }
}

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

extension StepLayout {
  /// The name under which a row of the source is spoken of.
  static let row = "o"

  /// A column of the source's row.
  static func column(_ name: String) -> String { "\(row).\(SQLText.identifier(name))" }

  /// What a column of the destination holds for the records of a route, as an SQL expression over the source's row.
  func expression(_ column: ColumnLayout, _ route: Route) -> String {
    if let key = column.role.property, !isDeclared(key, column.role, by: route.destination) { return "NULL" }
    switch column.role {
    case .primaryKey: return Self.column("Z_PK")
    case .entityNumber: return String(route.destination.number)
    case .saveCount: return Self.column("Z_OPT")
    case .attribute(let key, _): return value(of: PropertyPath(key.name), route)
    case .compositeLeaf(let key, let path, _): return value(of: PropertyPath(key.name, leaf: path), route)
    case .toOne(let key): return reference(key, route)?.key ?? "NULL"
    case .toOneEntity(let key): return reference(key, route)?.entityNumber ?? "NULL"
    case .toOneOrder(let key): return reference(key, route)?.order ?? "NULL"
    case .owner(let key): return ownerReference(key, route)?.key ?? "NULL"
    case .ownerOrder(let key): return ownerReference(key, route)?.order ?? "NULL"
    }
  }

  /// Whether the records of an entity have a value in a column: their entity or an ancestor declares the property, or for
  /// the hidden column of a one-way relationship, is its destination.
  func isDeclared(_ key: PropertyKey, _ role: ColumnRole, by entity: EntityLayout) -> Bool {
    var name = key.entityName
    switch role {
    case .owner, .ownerOrder: name = relationship(key)?.destinationEntityName ?? name
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder: break
    }
    return destination.entity(named: name)?.numbers.contains(entity.number) ?? false
  }

  // MARK: Attributes

  private func value(of path: PropertyPath, _ route: Route) -> String {
    guard let mapping = route.mapping.propertyMapping(of: path), let new = attribute(path, of: route.destination.name)
    else { return "NULL" }
    let expression: String
    switch mapping.value {
    case .copy(let old): expression = column(of: old, route)
    case .convert(let old, let from, let to): expression = Self.converted(column(of: old, route), from, to)
    case .externalize(let old):
      let value = column(of: old, route)
      expression = value == "NULL" ? value : "CASE WHEN \(value) IS NOT NULL THEN CAST(x'01' || \(value) AS BLOB) END"
    case .defaultValue: expression = defaultLiteral(new)
    case .recompute: return derivedValue(path, route)
    case .null, .relationship, .inverse, .destinations, .expression: return "NULL"
    }
    return mapping.replacesNilWithDefault ? "ifnull(\(expression), \(defaultLiteral(new)))" : expression
  }

  func attribute(_ path: PropertyPath, of entityName: String) -> StoredProperty? {
    destinationSide.properties[entityName]?.first { $0.path == path && $0.attribute != nil }
  }

  func defaultLiteral(_ property: StoredProperty) -> String {
    property.attribute?.defaultValue?.literal(isMarked: property.isMarked) ?? "NULL"
  }

  /// The column of an attribute of the source, or of a leaf of a composite one.
  func column(of path: PropertyPath, _ route: Route) -> String {
    guard case .attribute(let columns) = source.storage(of: path.name, in: route.source.name) else { return "NULL" }
    let found = columns.first { column in
      switch column.role {
      case .compositeLeaf(_, let leaf, _): leaf == path.leaf
      case .primaryKey, .entityNumber, .saveCount, .attribute, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder:
        path.leaf.isEmpty
      }
    }
    return found.map { Self.column($0.name) } ?? "NULL"
  }

  /// A derived value is kept where the source derives it in the same way; else it is computed afterwards.
  private func derivedValue(_ path: PropertyPath, _ route: Route) -> String {
    let new = destinationSide.properties[route.destination.name]?.first { $0.path == path }
    let old = sourceSide.properties[route.source.name]?.first { $0.path == path }
    return keepsDerivedValue(old, new, route.destination.name) ? column(of: path, route) : "NULL"
  }

  /// Whether a derived attribute keeps the value that it had: it is derived in the same way, and nothing that it may be
  /// derived from changes, or there is no way to compute it.
  func keepsDerivedValue(_ old: StoredProperty?, _ new: StoredProperty?, _ entityName: String) -> Bool {
    guard Self.isSameDerivation(old, new) else { return false }
    return isQuiet
      || !isComputable(new?.attribute?.derivationExpression, new?.attribute?.filteringPredicate, entityName)
  }

  /// Whether everything that stays keeps its name and its value, and no pair is cut or added.
  private var isQuiet: Bool {
    mapping.losses.isEmpty && !mapping.conditions.contains { $0.effect == .loses }
      && mapping.entityMappings.allSatisfy { entity in
        entity.propertyMappings.allSatisfy { property in
          switch property.value {
          case .defaultValue, .null, .inverse: !property.replacesNilWithDefault
          case .copy, .convert, .externalize, .relationship, .destinations, .recompute, .expression: property.isIdentity
          }
        }
      }
  }

  /// Whether a derivation is of a kind that is computed after the records have arrived.
  private func isComputable(_ text: String?, _ predicate: String?, _ entityName: String) -> Bool {
    guard predicate == nil, let text else { return false }
    switch DerivationExpression(text) {
    case .function("count", let path): return path.count == 1
    case .function("sum", let path):
      guard path.count == 2, case .toManyByColumn = destination.storage(of: path[0], in: entityName) else {
        return false
      }
      return true
    case .keyPath(let path), .function("lowercase", let path), .function("uppercase", let path): return path.count <= 2
    case .now, .function, nil: return false
    }
  }

  /// Whether a derived attribute is derived as it was.
  static func isSameDerivation(_ old: StoredProperty?, _ new: StoredProperty?) -> Bool {
    guard let old = old?.attribute, let new = new?.attribute, old.isDerived, new.isDerived else { return false }
    return old.derivationExpression == new.derivationExpression && old.filteringPredicate == new.filteringPredicate
      && old.type == new.type
  }

  /// A number as one of another type: fractions are cut off, and an integer keeps the bits that its new width has room
  /// for, as `NSNumber` does.
  private static func converted(_ value: String, _ old: AttributeType, _ new: AttributeType) -> String {
    guard value != "NULL" else { return value }
    switch new {
    case .integer16 where old != .boolean: return Self.truncated("CAST(\(value) AS INTEGER)", bits: 16)
    case .integer32 where old != .boolean && old != .integer16:
      return Self.truncated("CAST(\(value) AS INTEGER)", bits: 32)
    case .integer16, .integer32, .integer64: return "CAST(\(value) AS INTEGER)"
    case .boolean: return "(CAST(\(value) AS REAL) <> 0)"
    case .double, .float: return "CAST(\(value) AS REAL)"
    case .undefined, .decimal, .string, .date, .binary, .uuid, .uri, .transformable, .objectID, .composite: return value
    }
  }

  /// The lowest bits of an integer, read as a number with a sign.
  private static func truncated(_ value: String, bits: Int) -> String {
    let sign = 1 << (bits - 1)
    return "((\(value) & \(2 * sign - 1)) - ((\(value) & \(sign)) << 1))"
  }
}
