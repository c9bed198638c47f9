internal import ManagedObjectModel
internal import PersistentStore

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
