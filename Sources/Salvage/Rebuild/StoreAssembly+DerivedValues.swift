internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

extension StoreAssembly {
  /// Computes the derived attributes anew, because what they are derived from may be gone; those that hold a time are kept.
  func computeDerivedValues() throws {
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.sorted(by: { $0.key < $1.key }) {
        guard let attribute = property.attribute, !attribute.traits.isTransient, attribute.filteringPredicate == nil,
          let text = attribute.derivationExpression, let expression = DerivationExpression(text),
          case .attribute(let columns) = layout.storage(of: name, in: entity.name), let column = columns.first,
          let value = value(expression, entity)
        else { continue }
        try database.execute(
          sql: "UPDATE main.\(SQLText.identifier(entity.tableName)) AS o SET \(column.sqlName) = \(value) "
            + "WHERE o.Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound) "
            + "AND o.\(column.sqlName) IS NOT \(value)")
      }
    }
  }

  /// The value over the record `o`; nil for times, and for expressions that are not known.
  private func value(_ expression: DerivationExpression, _ entity: EntityLayout) -> String? {
    switch expression {
    case .now: return nil
    case .keyPath(let path): return pathValue(path, entity)
    case .function("lowercase", let path): return pathValue(path, entity).map { "LOWER(\($0))" }
    case .function("uppercase", let path): return pathValue(path, entity).map { "UPPER(\($0))" }
    case .function("count", let path) where path.count == 1:
      switch layout.storage(of: path[0], in: entity.name) {
      case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
        return
          "(SELECT count(*) FROM main.\(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
      case nil, .attribute?, .toOne?: return nil
      }
    case .function("sum", let path) where path.count == 2:
      guard case .toManyByColumn(let table, let key, _) = layout.storage(of: path[0], in: entity.name),
        let target = destination(of: path[0], entity),
        case .attribute(let columns) = layout.storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT ifnull(sum(p.\(column.sqlName)), 0) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.\(SQLText.identifier(key)) = o.Z_PK)"
    case .function: return nil
    }
  }

  private func pathValue(_ path: [String], _ entity: EntityLayout) -> String? {
    guard let first = path.first else { return nil }
    switch layout.storage(of: first, in: entity.name) {
    case .attribute(let columns) where path.count == 1: return columns.first.map { "o.\($0.sqlName)" }
    case .toOne(let key, _, _) where path.count == 2:
      guard let target = destination(of: first, entity), let table = layout.entity(named: target)?.tableName,
        case .attribute(let columns) = layout.storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT p.\(column.sqlName) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.Z_PK = o.\(SQLText.identifier(key)))"
    case nil, .attribute?, .toOne?, .toManyByColumn?, .toManyByJoinTable?: return nil
    }
  }

  private func destination(of relationship: String, _ entity: EntityLayout) -> String? {
    layout.model.properties(of: entity.name)[relationship]?.property.relationship?.destinationEntityName
  }
}
