internal import GRDB
internal import ManagedObjectModel

struct RecordReader {
  private enum Target {
    case value(name: String, type: AttributeType, allowsExternalStorage: Bool)
    case toOne(name: String, destination: String)
    case toOneEntity(name: String)
  }

  private let layout: StoreLayout
  private let entity: EntityLayout

  /// Arguments: key to start after, first and last entity number, limit.
  let sql: String

  private let targets: [Target]

  private let targetIndexes: [Int: [Int]]

  /// Prepares the query; nil for an unknown entity.
  init?(layout: StoreLayout, entityName: String) {
    guard let entity = layout.entity(named: entityName), let table = layout.table(of: entityName) else { return nil }
    self.layout = layout
    self.entity = entity
    // A batch can contain properties of ancestors and descendants.
    let lineage = Set(layout.lineage(of: entityName))
    var targets: [Target] = []
    var columns: [String] = []
    var owners: [EntityLayout] = []
    for column in table.columns {
      guard let key = column.role.property, let owner = layout.entity(named: key.entityName),
        lineage.contains(owner.name) || entity.numbers.contains(owner.number),
        let target = Self.target(column.role, model: layout.model)
      else { continue }
      targets.append(target)
      owners.append(owner)
      columns.append(SQLText.identifier(column.name))
    }
    self.targets = targets
    targetIndexes = Dictionary(
      uniqueKeysWithValues: entity.numbers.map { number in
        (number, owners.indices.filter { owners[$0].numbers.contains(number) })
      })
    sql =
      "SELECT \((["Z_PK", "Z_ENT"] + columns).joined(separator: ", ")) FROM \(SQLText.identifier(table.name)) "
      + "WHERE Z_PK > ? AND Z_ENT BETWEEN ? AND ? ORDER BY Z_PK LIMIT ?"
  }

  private static func target(_ role: ColumnRole, model: ManagedObjectModel) -> Target? {
    switch role {
    case .attribute(let key, let type):
      let attribute = model.entities[key.entityName]?.properties[key.name]?.attribute
      return .value(
        name: key.name, type: type, allowsExternalStorage: attribute?.allowsExternalBinaryDataStorage ?? false)
    case .compositeLeaf(let key, let path, let type):
      return .value(name: ([key.name] + path).joined(separator: "."), type: type, allowsExternalStorage: false)
    case .toOne(let key):
      let relationship = model.entities[key.entityName]?.properties[key.name]?.relationship
      return relationship.map { .toOne(name: key.name, destination: $0.destinationEntityName) }
    case .toOneEntity(let key): return .toOneEntity(name: key.name)
    case .primaryKey, .entityNumber, .saveCount, .toOneOrder, .owner, .ownerOrder: return nil
    }
  }

  func records(_ database: Database, after key: Int64, limit: Int) throws -> [StoreRecord] {
    let rows = try Row.fetchCursor(
      database, sql: sql,
      arguments: [key, entity.numbers.lowerBound, entity.numbers.upperBound, limit])
    var records: [StoreRecord] = []
    while let row = try rows.next() { records.append(record(row)) }
    return records
  }

  private func record(_ row: Row) -> StoreRecord {
    let number = Self.integer(row, 1).flatMap { Int(exactly: $0) } ?? 0
    let own = layout.entity(numbered: number) ?? entity
    var record = StoreRecord(entityName: own.name, primaryKey: Self.integer(row, 0) ?? 0, values: [:], toOne: [:])
    for index in targetIndexes[own.number] ?? [] {
      let value = row.whole(index + 2)
      switch targets[index] {
      case .value(let name, let type, let isMarked):
        record.values[name] = RecordValue(StoredValue(value), type: type, allowsExternalStorage: isMarked)
      case .toOne(let name, let destination):
        guard let key = Int64.fromDatabaseValue(value) else { continue }
        let isOnly = layout.entity(named: destination)?.hasSubentities == false
        record.toOne[name] = RecordReference(entityName: isOnly ? destination : nil, primaryKey: key)
      case .toOneEntity(let name):
        guard let number = Int64.fromDatabaseValue(value), let number = Int(exactly: number) else { continue }
        record.toOne[name]?.entityName = layout.entity(numbered: number)?.name
      }
    }
    return record
  }

  private static func integer(_ row: Row, _ index: Int) -> Int64? {
    let value: DatabaseValue = row[index]
    return Int64.fromDatabaseValue(value)
  }
}

/// A record of a Core Data store.
public struct StoreRecord: Sendable, Hashable {
  /// The requested entity or a sub-entity.
  public var entityName: String

  /// The primary key, unique in its hierarchy.
  public var primaryKey: Int64

  /// Attribute values by name, composites by path (`place.latitude`).
  public var values: [String: RecordValue]

  /// To-one destinations by name, without empty ones.
  public var toOne: [String: RecordReference]

  /// Creates a record.
  public init(
    entityName: String, primaryKey: Int64, values: [String: RecordValue], toOne: [String: RecordReference]
  ) {
    self.entityName = entityName
    self.primaryKey = primaryKey
    self.values = values
    self.toOne = toOne
  }
}

/// A relationship's destination.
public struct RecordReference: Sendable, Hashable {
  /// The destination's entity, if stored or unambiguous.
  public var entityName: String?

  /// The destination's primary key.
  public var primaryKey: Int64

  /// Creates a reference.
  public init(entityName: String?, primaryKey: Int64) {
    self.entityName = entityName
    self.primaryKey = primaryKey
  }
}
