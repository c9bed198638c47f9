internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

struct FoundRelationship {
  let storage: PropertyStorage
  let relationship: Relationship
  let target: EntityLayout

  let inverse: (relationship: Relationship, storage: PropertyStorage)?

  /// The column of the owner's entity number, in the table of the destination.
  var ownerEntityColumn: String? {
    if case .toOne(_, let name, _) = inverse?.storage { name } else { nil }
  }
}

extension RecordAccess {
  private typealias Found = FoundRelationship

  private func find(_ name: String, of entityName: String) throws -> Found {
    if let known = relationships[[entityName, name]] { return known }
    guard let relationship = side.relationship(name, of: entityName),
      let storage = layout.storage(of: name, in: entityName),
      let target = layout.entity(named: relationship.destinationEntityName)
    else {
      let known = side.properties[entityName]?.filter { $0.relationship != nil }.map(\.path.description) ?? []
      throw Self.failure(
        "\(printable(entityName)) has no relationship \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: known, "relationships"), entity: entityName, property: name)
    }
    let inverse = side.inverse(of: relationship).flatMap { inverse in
      layout.storage(of: inverse.key).map { (relationship: inverse.relationship, storage: $0) }
    }
    let found = Found(storage: storage, relationship: relationship, target: target, inverse: inverse)
    relationships[[entityName, name]] = found
    return found
  }

  /// Returns the related primary keys, in relationship order if there is one, else by key.
  func destinationKeys(of name: String, from record: MigrationRecord) throws -> [Int64] {
    try flush()
    let database = try openDatabase()
    let found = try find(name, of: record.entityName)
    let sql: String
    switch found.storage {
    case .attribute: return []
    case .toOne(let column, _, _):
      let name = column.sqlName
      sql = "SELECT \(name) FROM \(table(record.entityName)) WHERE Z_PK = ? AND typeof(\(name)) = 'integer'"
    case .toManyByColumn(let table, let column, let order):
      sql =
        "SELECT Z_PK FROM \(schema)\(table.sqlName) WHERE \(column.sqlName) = ? "
        + "ORDER BY \(order.map { "\($0.sqlName), " } ?? "")Z_PK"
    case .toManyByJoinTable(let table, let own, let destination, let order):
      let key = destination.sqlName
      sql =
        "SELECT \(key) FROM \(schema)\(table.sqlName) WHERE \(own.sqlName) = ? "
        + "AND typeof(\(key)) = 'integer' ORDER BY \(order.map { "\($0.sqlName), " } ?? "")\(key)"
    }
    return try Int64.fetchAll(database.cachedStatement(sql: sql), arguments: [record.primaryKey])
  }

  func destinations(of name: String, from record: MigrationRecord) throws -> [MigrationRecord] {
    let found = try find(name, of: record.entityName)
    return try destinationKeys(of: name, from: record).compactMap {
      try self.record(in: found.target.name, primaryKey: $0)
    }
  }

  func setDestinations(of name: String, from record: MigrationRecord, to others: [MigrationRecord]) throws {
    try requireWriting(record, name)
    let found = try find(name, of: record.entityName)
    let wanted = Set(others.map(\.primaryKey))
    for key in try destinationKeys(of: name, from: record) where !wanted.contains(key) {
      try disconnect(record.id, found, key)
    }
    try connect(name, from: record, to: others, at: 0)
  }

  /// Adds records to a relationship; the last counts if it is to-one.
  func connect(_ name: String, from record: MigrationRecord, to others: [MigrationRecord], at start: Int? = nil) throws
  {
    try requireWriting(record, name)
    try flush()
    let found = try find(name, of: record.entityName)
    var place = start ?? 0
    if start == nil, found.relationship.isOrdered { place = try destinationKeys(of: name, from: record).count }
    for other in others {
      guard let entity = layout.entity(named: other.entityName), found.target.numbers.contains(entity.number),
        other.records === self
      else {
        throw Self.failure(
          "\(printable(record.entityName)).\(printable(name)) leads to \(printable(found.target.name)), and a record of "
            + "\(other.records === self ? "" : "the other side's ")\(printable(other.entityName)) was given",
          entity: record.entityName, property: name)
      }
      place += 1
      try connect(record.id, found, other.id, place)
    }
  }

  private func requireWriting(_ record: MigrationRecord, _ relationship: String) throws {
    guard isReadOnly else { return }
    throw Self.failure(
      "relationships cannot be changed at this stage", entity: record.entityName, property: relationship)
  }

  private func table(_ entityName: String) -> String {
    schema + SQLText.identifier(layout.entity(named: entityName)?.tableName ?? "")
  }

  private func connect(_ own: MigrationRecord.ID, _ found: Found, _ other: MigrationRecord.ID, _ place: Int) throws {
    switch found.storage {
    case .attribute: return
    case .toOne:
      if case .toOne = found.inverse?.storage {
        // One-to-one: each side loses its former partner.
        try cutPartner(of: own, found.storage, other.entityName, found.inverse?.storage)
        if let inverse = found.inverse {
          try cutPartner(of: other, inverse.storage, own.entityName, found.storage)
          try set(other, inverse.storage, own, nil)
        }
      }
      try set(
        own, found.storage, other, found.inverse?.relationship.isOrdered == true ? Int(clamping: own.primaryKey) : nil)
    case .toManyByColumn(let table, let column, let orderColumn):
      try assign(
        schema + table.sqlName, other.primaryKey,
        [(column, own.primaryKey), (found.ownerEntityColumn, number(own)), (orderColumn, Int64(place))])
    case .toManyByJoinTable(let name, let ownColumn, let destinationColumn, let orderColumn):
      let inverseOrder = layout.ownOrderColumn(ofJoinTable: name, ownColumn: ownColumn)
      let row = [
        (ownColumn, own.primaryKey), (destinationColumn, other.primaryKey), (orderColumn, Int64(place)),
        (inverseOrder, own.primaryKey),
      ].compactMap { column, value in column.map { ($0.sqlName, value) } }
      try openDatabase().cachedStatement(
        sql: "INSERT OR REPLACE INTO \(schema)\(name.sqlName) (\(row.map(\.0).joined(separator: ", "))) "
          + "VALUES (\(row.map { _ in "?" }.joined(separator: ", ")))"
      ).execute(arguments: StatementArguments(row.map(\.1)))
    }
  }

  private func disconnect(_ own: MigrationRecord.ID, _ found: Found, _ other: Int64) throws {
    switch found.storage {
    case .attribute: return
    case .toOne:
      try set(own, found.storage, nil, nil)
      if let inverse = found.inverse, case .toOne = inverse.storage {
        try set(.init(entityName: found.target.name, primaryKey: other), inverse.storage, nil, nil)
      }
    case .toManyByColumn(let table, let column, let orderColumn):
      try assign(
        schema + table.sqlName, other, [(column, nil), (found.ownerEntityColumn, nil), (orderColumn, nil)])
    case .toManyByJoinTable(let name, let ownColumn, let destinationColumn, _):
      try openDatabase().cachedStatement(
        sql: "DELETE FROM \(schema)\(name.sqlName) WHERE \(ownColumn.sqlName) = ? AND \(destinationColumn.sqlName) = ?"
      ).execute(arguments: [own.primaryKey, other])
    }
  }

  private func set(
    _ own: MigrationRecord.ID, _ storage: PropertyStorage, _ other: MigrationRecord.ID?, _ place: Int?
  ) throws {
    guard case .toOne(let column, let entityColumn, let orderColumn) = storage else { return }
    try assign(
      table(own.entityName), own.primaryKey,
      [(column, other?.primaryKey), (entityColumn, other.flatMap(number)), (orderColumn, place.map { Int64($0) })])
  }

  private func cutPartner(
    of own: MigrationRecord.ID, _ storage: PropertyStorage, _ partnerEntity: String, _ back: PropertyStorage?
  ) throws {
    guard case .toOne(let column, _, _) = storage, let back else { return }
    let sql = "SELECT \(column.sqlName) FROM \(table(own.entityName)) WHERE Z_PK = ?"
    guard let key = try Int64.fetchOne(openDatabase().cachedStatement(sql: sql), arguments: [own.primaryKey])
    else { return }
    try set(.init(entityName: partnerEntity, primaryKey: key), back, nil, nil)
  }

  private func number(_ id: MigrationRecord.ID) -> Int64? {
    layout.entity(named: id.entityName).map { Int64($0.number) }
  }

  private func assign(_ table: String, _ key: Int64, _ values: [(column: String?, value: Int64?)]) throws {
    let known = values.compactMap { entry in entry.column.map { (column: $0, value: entry.value) } }
    try openDatabase().cachedStatement(
      sql: "UPDATE \(table) SET \(known.map { "\($0.column.sqlName) = ?" }.joined(separator: ", ")) WHERE Z_PK = ?"
    ).execute(arguments: StatementArguments(known.map { $0.value.databaseValue } + [key.databaseValue]))
  }
}
