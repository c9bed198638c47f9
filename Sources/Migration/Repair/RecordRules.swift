import ManagedObjectModel
internal import PersistentStore

/// The model's rules for references and unique values, as SQL.
///
/// `DataCheck` and repairs share it; `o` is a row of a table in `main`.
struct RecordRules {
  let layout: StoreLayout

  let references: [Reference]

  init(_ layout: StoreLayout) {
    self.layout = layout
    references = Self.references(layout)
  }

  // MARK: References

  /// A table's reference: its column, companion columns and target table.
  struct Reference: Hashable {
    let table: String
    let key: PropertyKey
    let column: String
    let companions: [String]
    let target: String

    /// The target's entity number; nil for a single entity.
    var entityColumn: String?

    var place: String { "o.\(column.sqlName)" }

    /// Nil without a number.
    var hasWrongEntity: String? {
      entityColumn.map { column in
        "(\(place) IS NOT NULL AND EXISTS (SELECT 1 FROM main.\(target.sqlName) AS q "
          + "WHERE q.Z_PK = \(place) AND q.Z_ENT IS NOT o.\(column.sqlName)))"
      }
    }

    var leadsNowhere: String { "(\(place) IS NOT NULL AND \(RecordRules.hasNone(target, with: place)))" }
  }

  /// A table in which keys need not be unique.
  struct LooseKey {
    let table: String
    let columns: [String]

    let words: String

    private var list: String { columns.map(\.sqlName).joined(separator: ", ") }

    /// The condition that a key is missing or shared.
    var isShared: String {
      "(\(isMissing) OR (\(columns.map { "o.\($0.sqlName)" }.joined(separator: ", "))) IN "
        + "(SELECT \(list) FROM main.\(table.sqlName) NOT INDEXED GROUP BY \(list) HAVING count(*) > 1))"
    }

    /// The same without each key's first row.
    var isRepeated: String {
      "(\(isMissing) OR o.rowid NOT IN (SELECT min(rowid) FROM main.\(table.sqlName) NOT INDEXED GROUP BY \(list)))"
    }

    private var isMissing: String { "(\(columns.map { "o.\($0.sqlName) IS NULL" }.joined(separator: " OR ")))" }
  }

  /// The tables of records and pairs with rowids and without the model's primary key.
  func looseKeys(in schema: SQLSchema) -> [LooseKey] {
    let keys =
      layout.tables.map { LooseKey(table: $0.name, columns: ["Z_PK"], words: $0.rootEntityName) }
      + layout.joinTables.map {
        LooseKey(
          table: $0.name, columns: [$0.sourceColumn, $0.destinationColumn], words: $0.relationship.description)
      }
    return keys.filter { key in
      guard let table = schema.tables.values.first(where: { $0.name.uppercased() == key.table.uppercased() }),
        !table.isVirtual
      else { return false }
      let names = Set(table.columns.map { $0.name.uppercased() })
      let wanted = Set(key.columns.map { $0.uppercased() })
      let unique = schema.indexes.values.filter {
        $0.isUnique && !$0.isPartial && $0.tableName.uppercased() == table.name.uppercased()
      }
      return wanted.isSubset(of: names)
        && Set(table.columns.filter { $0.primaryKeyPosition > 0 }.map { $0.name.uppercased() }) != wanted
        && !unique.contains { Set($0.columns.map { $0.uppercased() }) == wanted }
    }
  }

  private static func references(_ layout: StoreLayout) -> [Reference] {
    layout.tables.flatMap { table in
      table.columns.compactMap { column -> Reference? in
        switch (column.role, column.role.property.flatMap { layout.storage(of: $0) }) {
        case (.toOne(let key), .toOne(_, let entity, let order)):
          return layout.destination(of: key).map {
            Reference(
              table: table.name, key: key, column: column.name, companions: [entity, order].compactMap(\.self),
              target: $0.tableName, entityColumn: entity)
          }
        case (.owner(let key), .toManyByColumn(_, _, let order)):
          return layout.entity(named: key.entityName).map {
            Reference(
              table: table.name, key: key, column: column.name, companions: [order].compactMap(\.self),
              target: $0.tableName)
          }
        default: return nil
        }
      }
    }
  }

  struct Mutual {
    let one: Reference
    let other: Reference

    var isOneSided: String {
      let (target, back) = (other.table.sqlName, other.column.sqlName)
      return "(\(one.place) IS NOT NULL AND EXISTS (SELECT 1 FROM main.\(target) AS q WHERE q.Z_PK = \(one.place) "
        + "AND q.\(back) IS NOT o.Z_PK))"
    }
  }

  var mutuals: [Mutual] {
    references.compactMap { one in
      guard let relationship = layout.model.entities[one.key.entityName]?.properties[one.key.name]?.relationship,
        let inverse = relationship.inverseName,
        case .toOne(let back, _, _)? = layout.storage(of: inverse, in: relationship.destinationEntityName)
      else { return nil }
      return references.first { $0.table == one.target && $0.column == back && $0.target == one.table }
        .map { Mutual(one: one, other: $0) }
    }
  }

  // MARK: Join tables

  struct Pairs {
    let join: JoinTableLayout
    let tables: [String]

    var columns: [String] { [join.sourceColumn, join.destinationColumn] }

    var leadNowhere: String {
      let lacking = zip(columns, tables).map { column, table in
        RecordRules.hasNone(table, with: "o.\(column.sqlName)")
      }
      return "(\(lacking.joined(separator: " OR ")))"
    }
  }

  var pairs: [Pairs] {
    layout.joinTables.compactMap { join in
      guard let own = layout.entity(named: join.relationship.entityName)?.tableName,
        let other = layout.entity(named: join.inverse.entityName)?.tableName
      else { return nil }
      return Pairs(join: join, tables: [own, other])
    }
  }

  // MARK: Constraints

  struct Constraint {
    let index: IndexLayout
    let entity: String
    let properties: [String]

    /// The condition that a record with a lower key has the same values; NULLs are distinct.
    var isRepeated: String {
      let rows = "FROM main.\(index.tableName.sqlName) NOT INDEXED WHERE \(index.isFilled)"
      // One pass, whatever the indexes.
      return "o.Z_PK IN (SELECT Z_PK \(rows)) AND o.Z_PK NOT IN (SELECT min(Z_PK) \(rows) GROUP BY \(index.columnList))"
    }
  }

  var constraints: [Constraint] {
    layout.indexes.compactMap { index in
      guard case .uniqueness(let entity, let properties) = index.purpose, layout.table(named: index.tableName) != nil
      else { return nil }
      return Constraint(index: index, entity: entity, properties: properties)
    }
  }

  /// The rows `o` of a table that meet a condition, read without indexes, which may differ from the rows.
  static func rows(_ table: String, where condition: String) -> String {
    "main.\(table.sqlName) AS o NOT INDEXED WHERE \(condition)"
  }

  /// The condition that no record has a key; true for NULL.
  private static func hasNone(_ table: String, with key: String) -> String {
    "NOT EXISTS (SELECT 1 FROM main.\(table.sqlName) AS q WHERE q.Z_PK = \(key))"
  }
}

extension IndexLayout {
  var columnList: String { columns.map { $0.name.sqlName }.joined(separator: ", ") }

  /// The condition that a row is in the index with values in all columns; NULLs are distinct.
  var isFilled: String {
    let conditions = columns.map { "\($0.name.sqlName) IS NOT NULL" } + [condition.map { "(\($0))" }].compactMap(\.self)
    return conditions.joined(separator: " AND ")
  }

  /// The rows with values that others have too.
  var collisions: String {
    let table = tableName.sqlName
    let groups = "SELECT \(columnList) FROM \(table) WHERE \(isFilled) GROUP BY \(columnList) HAVING count(*) > 1"
    return "\(table) WHERE \(isFilled) AND (\(columnList)) IN (\(groups))"
  }
}
