package import ManagedObjectModel
internal import PersistentStore
import Platform

/// A mapping with both sides' tables.
struct StepLayout {
  struct Route {
    let mapping: EntityMapping
    let source: EntityLayout
    let destination: EntityLayout

    /// Whether both entities have the same renaming identifier.
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

  /// The entities with records on both sides, by source number; of several for one entity the continuing one first.
  let routes: [Route]

  /// Whether it exceeds inferred mappings and needs `CustomRun`.
  let isCustom: Bool

  init(_ mapping: MappingModel, layouts: LayoutCache = LayoutCache()) throws {
    self.mapping = mapping
    before = try layouts.entry(for: mapping.source)
    after = try layouts.entry(for: mapping.destination)
    let (source, destination) = (before.layout, after.layout)
    let routes = mapping.entityMappings.compactMap { entity -> Route? in
      guard let from = entity.sourceEntityName, let to = entity.destinationEntityName,
        let old = source.entity(named: from), let new = destination.entity(named: to)
      else { return nil }
      return Route(mapping: entity, source: old, destination: new)
    }
    isCustom = mapping.isCustom
    self.routes = routes.ordered { one, other in
      if one.source.number != other.source.number { return one.source.number < other.source.number }
      return one.goesOn(in: mapping) && !other.goesOn(in: mapping)
    }
  }

  func sourceSchema() throws -> SQLSchema { try before.newSchema() }

  func destinationSchema() throws -> SQLSchema { try after.newSchema() }

  var numbers: [Int: Int] {
    Dictionary(routes.map { ($0.source.number, $0.destination.number) }, uniquingKeysWith: { first, _ in first })
  }

  var isRenumbering: Bool { routes.contains { $0.source.number != $0.destination.number } }

  func routes(to table: TableLayout) -> [Route] { routes.filter { $0.destination.tableName == table.name } }

  func routes(of key: PropertyKey) -> [Route] {
    guard let numbers = destination.entity(named: key.entityName)?.numbers else { return [] }
    return routes.filter { numbers.contains($0.destination.number) }
  }

  func relationship(_ key: PropertyKey) -> Relationship? { destination.property(key)?.relationship }

  func origin(of key: PropertyKey, in route: Route) -> String? {
    if case .relationship(let name) = route.mapping.propertyMapping(of: PropertyPath(key.name))?.value {
      name
    } else {
      nil
    }
  }

  /// The possible targets of both the source relationship and the new one.
  ///
  /// - Returns: The old table, the fitting numbers, and whether no others occur.
  func fit(oldDestination: String, newDestination: String) -> (table: String, numbers: [Int], isComplete: Bool)? {
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

extension String {
  /// The name as an SQL identifier.
  var sqlName: String { SQLText.identifier(self) }

  /// The same, always in quotes, for names that may be keywords.
  var quotedName: String { SQLText.quotedIdentifier(self) }
}

extension Sequence where Element: BinaryInteger {
  var sqlList: String { "(" + map { String($0) }.joined(separator: ", ") + ")" }
}

extension StepLayout {
  /// The statements that fill a join table, one for each source of pairs.
  func statements(filling table: JoinTableLayout, schema: SQLSchema) -> [String] {
    var done: Set<[String]> = []
    var selections: [String] = []
    for isReversed in [false, true] {
      for (pairs, numbers) in pairSources(of: isReversed ? table.inverse : table.relationship) {
        // Both directions of a pair must exist; they do if the relationship was self-inverse before.
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
    let name = table.name.sqlName
    guard selections.count > 1 else { return selections.map { "INSERT INTO main.\(name)\($0)" } }
    return selections.map { "INSERT OR IGNORE INTO main.\(name)\($0)" }
  }

  private func isReflexive(_ pairs: PairSource) -> Bool {
    guard case .toManyByJoinTable(let name, _, _, _) = pairs.storage else { return false }
    return source.joinTable(named: name)?.isReflexive ?? false
  }

  private typealias Pair = (
    own: String, destination: String, ownOrder: String?, destinationOrder: String?, from: String
  )

  /// SQLite copies whole records and indexes between tables of equal shape.
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
    return " SELECT * FROM old.\(name.sqlName)"
  }

  /// Whether all records of the pairs are kept.
  private func isComplete(_ table: JoinTableLayout) -> Bool {
    [table.relationship, table.inverse].allSatisfy { key in
      pairSources(of: key).allSatisfy { coversTable($0.source, $0.numbers) }
    }
  }

  private func selection(
    _ pairs: PairSource, _ numbers: [Int], into table: JoinTableLayout, isReversed: Bool
  ) -> String? {
    guard var pair = pair(pairs, numbers) else { return nil }
    if isReversed {
      swap(&pair.own, &pair.destination)
      swap(&pair.ownOrder, &pair.destinationOrder)
    }
    // A new order starts as primary key order.
    let (columns, values) = table.row(
      pair.own, pair.destination, ownOrder: pair.ownOrder ?? pair.own,
      destinationOrder: pair.destinationOrder ?? pair.destination)
    var conditions = ["\(pair.own) IS NOT NULL", "\(pair.destination) IS NOT NULL"]
    if !isComplete(table) {
      conditions += [
        existence(of: pair.own, as: table.relationship.entityName),
        existence(of: pair.destination, as: table.inverse.entityName),
      ].compactMap { $0 }
    }
    return
      " (\(columns)) SELECT \(values) FROM \(pair.from) WHERE \(conditions.joined(separator: " AND ")) ORDER BY 1, 2"
  }

  /// The condition that the record exists, in an entity with the relationship.
  private func existence(of key: String, as entityName: String) -> String? {
    guard let entity = destination.entity(named: entityName) else { return nil }
    return "EXISTS (SELECT 1 FROM main.\(entity.tableName.sqlName) AS q WHERE q.Z_PK = \(key) "
      + "AND q.Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound))"
  }

  private func pair(_ pairs: PairSource, _ numbers: [Int]) -> Pair? {
    func column(_ name: String) -> String { "p.\(name.sqlName)" }
    switch pairs.storage {
    case .attribute: return nil
    case .toOne(let key, _, let order):
      return (
        own: "p.Z_PK", destination: column(key), ownOrder: order.map(column), destinationOrder: nil,
        from: "(SELECT * FROM old.\(pairs.ownTable.sqlName) WHERE Z_ENT IN \(numbers.sqlList)) AS p"
      )
    case .toManyByColumn(let table, let key, let order):
      return (
        own: column(key), destination: "p.Z_PK", ownOrder: nil, destinationOrder: order.map(column),
        from: "old.\(table.sqlName) AS p"
      )
    case .toManyByJoinTable(let name, let own, let destination, let order):
      return (
        own: column(own), destination: column(destination),
        ownOrder: source.ownOrderColumn(ofJoinTable: name, ownColumn: own).map(column),
        destinationOrder: order.map(column), from: "old.\(name.sqlName) AS p"
      )
    }
  }
}

extension StepLayout {
  static let row = "o"

  static func column(_ name: String) -> String { "\(row).\(name.sqlName)" }

  /// A destination column's value for a route, as SQL over the source row.
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

  /// Whether an entity's records use a column: it or an ancestor declares the property, or it is the destination of a
  /// hidden column.
  func isDeclared(_ key: PropertyKey, _ role: ColumnRole, by entity: EntityLayout) -> Bool {
    destination.holder(of: key, role)?.numbers.contains(entity.number) ?? false
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
    destinationSide.property(path, of: entityName).flatMap { $0.attribute == nil ? nil : $0 }
  }

  func defaultLiteral(_ property: StoredProperty) -> String {
    property.attribute?.defaultValue?.literal(isMarked: property.isMarked) ?? "NULL"
  }

  func column(of path: PropertyPath, _ route: Route) -> String {
    source.column(of: path, in: route.source.name).map { Self.column($0.name) } ?? "NULL"
  }

  /// The kept derived value if the derivation is the same; otherwise computed later.
  private func derivedValue(_ path: PropertyPath, _ route: Route) -> String {
    let new = destinationSide.property(path, of: route.destination.name)
    let old = sourceSide.property(path, of: route.source.name)
    return keepsDerivedValue(old, new, route.destination.name) ? column(of: path, route) : "NULL"
  }

  /// Whether a derived value is kept: equal derivation and unchanged inputs, or no way to compute it.
  func keepsDerivedValue(_ old: StoredProperty?, _ new: StoredProperty?, _ entityName: String) -> Bool {
    guard Self.isSameDerivation(old, new) else { return false }
    return isQuiet
      || !isComputable(new?.attribute?.derivationExpression, new?.attribute?.filteringPredicate, entityName)
  }

  /// Whether all kept names and values are equal, without cut or added pairs.
  private var isQuiet: Bool {
    mapping.losses.isEmpty && !mapping.conditions.contains { $0.effect == .loses }
      && mapping.entityMappings.allSatisfy { entity in
        entity.propertyMappings.allSatisfy { property in
          let isNew = [.defaultValue, .null, .inverse].contains(property.value)
          return isNew ? !property.replacesNilWithDefault : property.isIdentity
        }
      }
  }

  /// Whether a derivation can be computed after the records exist.
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

  static func isSameDerivation(_ old: StoredProperty?, _ new: StoredProperty?) -> Bool {
    guard let old = old?.attribute, let new = new?.attribute, old.isDerived, new.isDerived else { return false }
    return old.derivationExpression == new.derivationExpression && old.filteringPredicate == new.filteringPredicate
      && old.type == new.type
  }

  /// Converts numbers as `NSNumber` does: truncates fractions, and integers to the bits of the new width.
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

  /// The lowest bits of an integer, as a signed number.
  private static func truncated(_ value: String, bits: Int) -> String {
    let sign = 1 << (bits - 1)
    return "((\(value) & \(2 * sign - 1)) - ((\(value) & \(sign)) << 1))"
  }
}

extension AttributeValue {
  /// An SQL literal for an attribute's column, else `NULL`.
  ///
  /// - Parameter isMarked: Whether values have the marker byte of external storage (format section 3.7).
  package func literal(isMarked: Bool) -> String {
    switch self {
    case .integer(let value): return value == .min ? "(-9223372036854775807 - 1)" : String(value)
    case .boolean(let value): return value ? "1" : "0"
    case .real(let value), .date(let value): return Self.number(value)
    case .decimal(let digits):
      let isNumber = Double(digits) != nil && digits.utf8.allSatisfy { "+-.0123456789eE".utf8.contains($0) }
      return isNumber ? "CAST('\(digits)' AS NUMERIC)" : "NULL"
    case .string(let text), .uri(let text): return SQLText.literal(text)
    case .data(let bytes): return Self.blob((isMarked ? [1] : []) + bytes)
    case .uuid(let bytes): return Self.blob(bytes)
    case .opaque: return "NULL"
    }
  }

  private static func number(_ value: Double) -> String {
    guard value.isFinite else { return "NULL" }
    let text = "\(value)"
    return value < 0 ? "(\(text))" : text
  }

  private static func blob(_ bytes: [UInt8]) -> String { "x'\(bytes.hexadecimal)'" }
}

extension StoreLayout {
  func property(_ key: PropertyKey) -> Property? { model.entities[key.entityName]?.properties[key.name] }

  /// The entity that a relationship leads to.
  func destination(of key: PropertyKey) -> EntityLayout? {
    (property(key)?.relationship?.destinationEntityName).flatMap { entity(named: $0) }
  }

  /// The entity whose records have a column: the declaring one, or the destination of a hidden column.
  func holder(of key: PropertyKey, _ role: ColumnRole) -> EntityLayout? {
    switch role {
    case .owner, .ownerOrder: entity(named: property(key)?.relationship?.destinationEntityName ?? key.entityName)
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder:
      entity(named: key.entityName)
    }
  }

  /// The column of an attribute or a composite's leaf.
  func column(of path: PropertyPath, in entityName: String) -> ColumnLayout? {
    guard case .attribute(let columns) = storage(of: path.name, in: entityName) else { return nil }
    return columns.first { $0.path == path }
  }

  /// The number of a to-many relationship's destinations, as SQL over the record `o`.
  func destinationCount(of relationship: String, in entityName: String) -> String? {
    switch storage(of: relationship, in: entityName) {
    case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
      "(SELECT count(*) FROM \(table.sqlName) AS p WHERE p.\(column.sqlName) = o.Z_PK)"
    case .toOne, .attribute, nil: nil
    }
  }

  /// The column of the owner's position, as the inverse orders it, in a join table that has the owner in `ownColumn`.
  func ownOrderColumn(ofJoinTable name: String, ownColumn: String) -> String? {
    joinTable(named: name).flatMap { $0.sourceColumn == ownColumn ? $0.sourceOrderColumn : $0.destinationOrderColumn }
  }
}

extension ColumnLayout {
  /// The attribute or composite leaf.
  var path: PropertyPath? {
    switch role {
    case .attribute(let key, _): PropertyPath(key.name)
    case .compositeLeaf(let key, let path, _): PropertyPath(key.name, leaf: path)
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }
}

extension JoinTableLayout {
  /// The columns of a row, and the values for them.
  func row(
    _ own: String, _ destination: String, ownOrder: String, destinationOrder: String
  ) -> (columns: String, values: String) {
    let order = [(sourceOrderColumn, ownOrder), (destinationOrderColumn, destinationOrder)].filter { $0.0 != nil }
    return (
      columns.map(\.sqlName).joined(separator: ", "), ([own, destination] + order.map(\.1)).joined(separator: ", ")
    )
  }
}
