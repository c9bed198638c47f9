internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Reads and writes one store's records.
///
/// Changes are grouped and written before any read.
final class RecordAccess {
  private static let limit = 500

  let layout: StoreLayout
  let side: InferenceSide

  /// The table prefix: `main.` or `old.`.
  let schema: String

  var isReadOnly: Bool

  var whenInserted: (MigrationRecord.ID) -> Void = { _ in }

  private let database: Database
  private var isOpen = true
  private var shapes: [String: EntityShape] = [:]
  private var statements: [String: RecordStatements] = [:]

  var relationships: [[String]: FoundRelationship] = [:]
  private var changed: [MigrationRecord] = []
  private var problem: MigrationError?

  init(_ database: Database, _ layout: StoreLayout, _ side: InferenceSide, schema: String, isReadOnly: Bool) {
    self.database = database
    self.layout = layout
    self.side = side
    self.schema = schema
    self.isReadOnly = isReadOnly
  }

  /// Ends the access; later calls fail.
  func close() {
    isOpen = false
    changed = []
  }

  func openDatabase() throws -> Database {
    guard isOpen else { throw Self.failure("the records of a migration are used after its end") }
    return database
  }

  static func failure(
    _ detail: String, hint: String? = nil, entity: String? = nil, property: String? = nil
  ) -> MigrationError {
    MigrationError(
      .policyFailed, operation: "carry out a custom step", detail: detail, hint: hint, entityName: entity,
      propertyName: property)
  }

  func entity(named name: String) throws -> EntityLayout {
    if let entity = layout.entity(named: name) { return entity }
    throw Self.failure("there is no entity \"\(printable(name))\"", entity: name)
  }

  func root(ofEntity name: String) throws -> EntityLayout { try entity(named: try entity(named: name).rootName) }

  func shape(of entityName: String) throws -> EntityShape {
    if let known = shapes[entityName] { return known }
    let shape = EntityShape(try entity(named: entityName), layout, side)
    shapes[entityName] = shape
    return shape
  }

  private func statements(of entityName: String) throws -> RecordStatements {
    if let known = statements[entityName] { return known }
    let made = RecordStatements(try shape(of: entityName), schema: schema)
    statements[entityName] = made
    return made
  }

  // MARK: Notes

  func noteUnknown(_ name: String, of entityName: String) {
    let known = side.properties[entityName]?.filter { $0.attribute != nil }.map(\.path.description) ?? []
    problem =
      problem
      ?? Self.failure(
        "\(printable(entityName)) has no attribute \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: known, "attributes"), entity: entityName, property: name)
  }

  func allowsChange(of name: String, in entityName: String) -> Bool {
    guard !isReadOnly else {
      problem =
        problem
        ?? Self.failure("a record of \(printable(entityName)) is changed where it can only be read", entity: entityName)
      return false
    }
    if side.properties[entityName]?.contains(where: { $0.path.description == name && $0.attribute != nil }) != true {
      noteUnknown(name, of: entityName)
      return false
    }
    return true
  }

  func noteChange(of record: MigrationRecord) {
    guard !record.isDirty else { return }
    record.isDirty = true
    changed.append(record)
  }

  // MARK: Writing

  func flush() throws {
    if let problem { throw problem }
    guard !changed.isEmpty else { return }
    let records = changed
    changed = []
    for record in records { try write(record) }
  }

  func flushIfFull() throws {
    if changed.count >= Self.limit || problem != nil { try flush() }
  }

  private func write(_ record: MigrationRecord) throws {
    let database = try openDatabase()
    let shape = try shape(of: record.entityName)
    var values: [DatabaseValue] = []
    for attribute in shape.attributes {
      let value = record.values[attribute.name] ?? .null
      guard let stored = attribute.stored(value) else {
        throw Self.failure(
          "a value that is no \(attribute.type.sourceName) was given to "
            + "\(printable(record.entityName)).\(printable(attribute.name)); primary key: \(record.primaryKey)",
          entity: record.entityName, property: attribute.name)
      }
      values.append(stored)
    }
    let statements = try statements(of: record.entityName)
    if record.isNew {
      try database.cachedStatement(sql: statements.insertion).executeWhole(
        [record.primaryKey.databaseValue, shape.entity.number.databaseValue, 1.databaseValue] + values)
      record.isNew = false
      whenInserted(record.id)
    } else if !values.isEmpty {
      try database.cachedStatement(sql: statements.update).executeWhole(
        values + [record.primaryKey.databaseValue])
    }
    record.isDirty = false
  }

  /// Makes a record with its entity's defaults, written with the next changes.
  func create(_ entityName: String, primaryKey: Int64, values: [String: RecordValue]? = nil) throws -> MigrationRecord {
    guard !isReadOnly else { throw Self.failure("records cannot be made at this stage", entity: entityName) }
    let shape = try shape(of: entityName)
    guard side.entity(entityName)?.isAbstract == false else {
      throw Self.failure("\(printable(entityName)) is abstract", entity: entityName)
    }
    let record = MigrationRecord(
      .init(entityName: entityName, primaryKey: primaryKey), values: values ?? shape.defaults, in: self, isNew: true)
    noteChange(of: record)
    try flushIfFull()
    return record
  }

  /// Deletes a record and clears references to it.
  func delete(_ record: MigrationRecord) throws {
    guard !isReadOnly else { throw Self.failure("records cannot be deleted at this stage", entity: record.entityName) }
    try flush()
    let database = try openDatabase()
    let shape = try shape(of: record.entityName)
    for property in side.properties[record.entityName] ?? [] where property.relationship != nil {
      try setDestinations(of: property.path.name, from: record, to: [])
    }
    try cutOneWayReferences(to: record, shape.entity, database)
    try database.execute(
      sql: "DELETE FROM \(schema)\(shape.entity.tableName.sqlName) WHERE Z_PK = ?", arguments: [record.primaryKey])
  }

  /// Clears references without an inverse.
  private func cutOneWayReferences(to record: MigrationRecord, _ entity: EntityLayout, _ database: Database) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .toOne(let key) = column.role,
          let target = layout.destination(of: key), target.numbers.contains(entity.number),
          case .toOne(_, let entityColumn, _) = layout.storage(of: key)
        else { continue }
        let rest = entityColumn.map { ", \($0.sqlName) = NULL" } ?? ""
        try database.execute(
          sql: "UPDATE \(schema)\(table.name.sqlName) SET \(column.sqlName) = NULL\(rest) "
            + "WHERE \(column.sqlName) = ?", arguments: [record.primaryKey])
      }
    }
  }

  // MARK: Reading

  func record(in entityName: String, primaryKey: Int64) throws -> MigrationRecord? {
    try flush()
    let shape = try shape(of: entityName)
    guard
      let row = try Row.fetchOne(
        openDatabase().cachedStatement(sql: try statements(of: entityName).entityNumber), arguments: [primaryKey]),
      let number = Int.fromDatabaseValue(row[0]), let entity = layout.entity(numbered: number),
      entity.rootName == shape.entity.rootName
    else { return nil }
    return try records(of: entity.name, where: "o.Z_PK = ?", [primaryKey.databaseValue], limit: 1).first
  }

  /// Returns an entity's records by primary key, without sub-entities.
  func records(
    of entityName: String, where condition: String, _ arguments: [DatabaseValue], limit: Int
  ) throws -> [MigrationRecord] {
    try flush()
    let shape = try shape(of: entityName)
    let statement = try openDatabase().cachedStatement(
      sql: "\(try statements(of: entityName).selection) AND \(condition) ORDER BY o.Z_PK LIMIT \(limit)")
    let rows = try Row.fetchCursor(statement, arguments: StatementArguments(arguments))
    var result: [MigrationRecord] = []
    while let row = try rows.next() {
      let key: Int64 = row[0]
      result.append(
        MigrationRecord(.init(entityName: entityName, primaryKey: key), values: shape.values(row, from: 1), in: self))
    }
    return result
  }
}

struct RecordStatements {
  let insertion: String

  /// Sets all attributes; the last argument is the key.
  let update: String

  /// Reads the row `o`; conditions can follow.
  let selection: String

  let entityNumber: String

  init(_ shape: EntityShape, schema: String) {
    let table = schema + shape.entity.tableName.sqlName
    let columns = shape.attributes.map(\.column.sqlName)
    insertion =
      "INSERT INTO \(table) (\((["Z_PK", "Z_ENT", "Z_OPT"] + columns).joined(separator: ", "))) "
      + "VALUES (\(Array(repeating: "?", count: columns.count + 3).joined(separator: ", ")))"
    update = "UPDATE \(table) SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE Z_PK = ?"
    selection =
      "SELECT \((["o.Z_PK"] + columns.map { "o.\($0)" }).joined(separator: ", ")) FROM \(table) AS o "
      + "WHERE o.Z_ENT = \(shape.entity.number)"
    entityNumber = "SELECT Z_ENT FROM \(table) WHERE Z_PK = ?"
  }
}

struct EntityShape {
  /// An attribute or a leaf of a composite.
  struct Attribute {
    let name: String
    let column: ColumnLayout
    let type: AttributeType
    let isMarked: Bool
    let defaultValue: AttributeValue?
  }

  let entity: EntityLayout
  let attributes: [Attribute]

  init(_ entity: EntityLayout, _ layout: StoreLayout, _ side: InferenceSide) {
    self.entity = entity
    attributes = (side.properties[entity.name] ?? []).compactMap { property in
      guard let attribute = property.attribute, let column = layout.column(of: property.path, in: entity.name) else {
        return nil
      }
      return Attribute(
        name: property.path.description, column: column, type: attribute.type, isMarked: property.isMarked,
        defaultValue: attribute.defaultValue)
    }
  }

  /// The values of a cursor's current row, with attribute columns from `start`.
  func values(_ row: Row, from start: Int) -> [String: RecordValue] {
    var result: [String: RecordValue] = [:]
    result.reserveCapacity(attributes.count)
    for (index, attribute) in attributes.enumerated() {
      result[attribute.name] = attribute.value(row.whole(start + index))
    }
    return result
  }

  var defaults: [String: RecordValue] {
    Dictionary(
      attributes.map { ($0.name, $0.defaultValue.map { RecordValue($0) } ?? .null) },
      uniquingKeysWith: { first, _ in first })
  }
}

extension EntityShape.Attribute {
  func value(_ value: DatabaseValue) -> RecordValue {
    RecordValue(StoredValue(value), type: type, allowsExternalStorage: isMarked)
  }

  /// The column value; nil if the type differs.
  func stored(_ value: RecordValue) -> DatabaseValue? {
    switch (type, value) {
    case (_, .null): return .null
    case (_, .unexpected(let raw)): return Self.raw(raw)
    case (.integer16, .integer(let number)): return Int16(exactly: number).map { Int64($0).databaseValue }
    case (.integer32, .integer(let number)): return Int32(exactly: number).map { Int64($0).databaseValue }
    case (.integer64, .integer(let number)): return number.databaseValue
    case (.boolean, .boolean(let flag)): return (flag ? 1 : 0).databaseValue
    case (.double, .real(let number)), (.float, .real(let number)), (.date, .date(let number)),
      (.decimal, .real(let number)):
      return number.isFinite ? number.databaseValue : nil
    case (.double, .integer(let number)), (.float, .integer(let number)), (.decimal, .integer(let number)):
      return number.databaseValue
    case (.decimal, .decimal(let digits)): return Double(digits) == nil ? nil : digits.databaseValue
    case (.string, .string(let text)), (.uri, .uri(let text)): return text.databaseValue
    case (.uuid, .uuid(let bytes)): return bytes.count == 16 ? Data(bytes).databaseValue : nil
    case (.binary, .data(let bytes)), (.transformable, .data(let bytes)):
      return Data((isMarked ? [1] : []) + bytes).databaseValue
    case (.binary, .externalData(let name)), (.transformable, .externalData(let name)):
      return isMarked && name.utf8.count == 36 ? Data([2] + Array(name.utf8) + [0]).databaseValue : nil
    default: return nil
    }
  }

  private static func raw(_ value: StoredValue) -> DatabaseValue {
    switch value {
    case .null: .null
    case .integer(let number): number.databaseValue
    case .real(let number): number.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}

extension RecordValue {
  /// A model default; nil for unreadable kinds.
  init(_ value: AttributeValue) {
    switch value {
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .real(number)
    case .decimal(let digits): self = .decimal(digits)
    case .boolean(let flag): self = .boolean(flag)
    case .string(let text): self = .string(text)
    case .date(let seconds): self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .uuid(let bytes): self = .uuid(bytes)
    case .uri(let text): self = .uri(text)
    case .opaque: self = .null
    }
  }
}
