internal import ManagedObjectModel
internal import PersistentStore

/// The values of derived attributes of a store, as SQL.
struct DerivedValues {
  let layout: StoreLayout
  let side: InferenceSide

  /// The value of a derived attribute over the record `o`; nil for expressions that are not known.
  func sql(of expression: DerivationExpression, _ entity: EntityLayout) -> String? {
    switch expression {
    case .now: return "NSCoreDataNow()"
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
        let target = side.properties[entity.name]?.first(where: { $0.path == PropertyPath(path[0]) })?
          .relationship?.destinationEntityName,
        case .attribute(let columns) = layout.storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT ifnull(sum(p.\(column.sqlName)), 0) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.\(SQLText.identifier(key)) = o.Z_PK)"
    case .function: return nil
    }
  }

  private func pathValue(_ path: [String], _ entity: EntityLayout) -> String? {
    guard let first = path.first, let storage = layout.storage(of: first, in: entity.name) else {
      return nil
    }
    switch storage {
    case .attribute(let columns) where path.count == 1: return columns.first.map { "o.\($0.sqlName)" }
    case .toOne(let key, _, _) where path.count == 2:
      guard
        let target = side.properties[entity.name]?.first(where: { $0.path == PropertyPath(first) })?
          .relationship?.destinationEntityName,
        let table = layout.entity(named: target)?.tableName,
        case .attribute(let columns) = layout.storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return
        "(SELECT p.\(column.sqlName) FROM main.\(SQLText.identifier(table)) AS p WHERE p.Z_PK = o.\(SQLText.identifier(key)))"
    case .attribute, .toOne, .toManyByColumn, .toManyByJoinTable: return nil
    }
  }
}
