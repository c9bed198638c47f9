package import ManagedObjectModel

extension StoreLayout {
  /// The value of a derived attribute, as SQL over the record `o` of an entity.
  ///
  /// Nil for expressions that are not known, for those with a predicate, and unless `isTimeWanted` for times.
  package func derivedValue(of attribute: Attribute, _ entity: EntityLayout, isTimeWanted: Bool = true) -> String? {
    guard attribute.filteringPredicate == nil, let text = attribute.derivationExpression else { return nil }
    switch DerivationExpression(text) {
    case .now?: return isTimeWanted ? "NSCoreDataNow()" : nil
    case .keyPath(let path)?: return pathValue(path, entity)
    case .function("lowercase", let path)?: return pathValue(path, entity).map { "LOWER(\($0))" }
    case .function("uppercase", let path)?: return pathValue(path, entity).map { "UPPER(\($0))" }
    case .function("count", let path)? where path.count == 1:
      switch storage(of: path[0], in: entity.name) {
      case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
        return
          "(SELECT count(*) FROM main.\(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
      case nil, .attribute?, .toOne?: return nil
      }
    case .function("sum", let path)? where path.count == 2:
      guard case .toManyByColumn(let table, let key, _) = storage(of: path[0], in: entity.name),
        let target = destination(of: path[0], entity),
        case .attribute(let columns) = storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT ifnull(sum(p.\(column.sqlName)), 0) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.\(SQLText.identifier(key)) = o.Z_PK)"
    case .function?, nil: return nil
    }
  }

  private func pathValue(_ path: [String], _ entity: EntityLayout) -> String? {
    guard let first = path.first else { return nil }
    switch storage(of: first, in: entity.name) {
    case .attribute(let columns) where path.count == 1: return columns.first.map { "o.\($0.sqlName)" }
    case .toOne(let key, _, _) where path.count == 2:
      guard let target = destination(of: first, entity), let table = self.entity(named: target)?.tableName,
        case .attribute(let columns) = storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT p.\(column.sqlName) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.Z_PK = o.\(SQLText.identifier(key)))"
    case nil, .attribute?, .toOne?, .toManyByColumn?, .toManyByJoinTable?: return nil
    }
  }

  private func destination(of relationship: String, _ entity: EntityLayout) -> String? {
    model.properties(of: entity.name)[relationship]?.property.relationship?.destinationEntityName
  }
}
