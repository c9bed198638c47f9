package import GRDB
internal import GRDBSQLite
public import ManagedObjectModel
import Platform

/// A stored attribute value.
public enum RecordValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)

  /// A decimal number as text; a binary one is written so that it reads back equal.
  case decimal(String)
  case boolean(Bool)
  case string(String)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)

  case uuid([UInt8])
  case uri(String)

  /// Binary data without its marker, or a transformer's output.
  case data([UInt8])

  /// A file in `.<store>_SUPPORT/_EXTERNAL_DATA/` (format section 3.7).
  case externalData(fileName: String)

  /// An SQLite value of another type than the attribute's.
  case unexpected(StoredValue)
}

/// An SQLite value.
public enum StoredValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

extension RecordValue {
  /// Interprets a stored value by attribute type (format sections 1.2, 3.5 and 3.7).
  ///
  /// - Parameter allowsExternalStorage: whether values begin with the marker byte.
  public init(_ stored: StoredValue, type: AttributeType, allowsExternalStorage: Bool = false) {
    switch (type, stored) {
    case (_, .null): self = .null
    case (.integer16, .integer(let value)), (.integer32, .integer(let value)), (.integer64, .integer(let value)):
      self = .integer(value)
    case (.boolean, .integer(let value)) where value == 0 || value == 1: self = .boolean(value == 1)
    case (.double, .real(let value)), (.float, .real(let value)): self = .real(value)
    case (.double, .integer(let value)), (.float, .integer(let value)): self = .real(Double(value))
    case (.date, .real(let value)): self = .date(value)
    case (.date, .integer(let value)): self = .date(Double(value))
    case (.decimal, .integer(let value)): self = .decimal(String(value))
    case (.decimal, .real(let value)) where value.isFinite: self = .decimal("\(value)")
    case (.decimal, .text(let value)) where !value.isEmpty: self = .decimal(value)
    case (.string, .text(let value)): self = .string(value)
    case (.uri, .text(let value)): self = .uri(value)
    case (.uuid, .blob(let bytes)) where bytes.count == 16: self = .uuid(bytes)
    case (.binary, .blob(let bytes)), (.transformable, .blob(let bytes)):
      self = allowsExternalStorage ? Self.marked(bytes) : .data(bytes)
    default: self = .unexpected(stored)
    }
  }

  /// Reads a value with external storage: 1 and bytes, or 2, a file name and 0.
  private static func marked(_ bytes: [UInt8]) -> RecordValue {
    switch bytes.first {
    case 1: return .data(Array(bytes.dropFirst()))
    case 2 where bytes.count == 38 && bytes.last == 0:
      let name = bytes[1..<37]
      guard name.allSatisfy({ isHexDigitOrDash($0) }) else { return .unexpected(.blob(bytes)) }
      return .externalData(fileName: String(decoding: name, as: UTF8.self))
    default: return .unexpected(.blob(bytes))
    }
  }

  private static func isHexDigitOrDash(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
      UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

extension StoredValue {
  package init(_ value: DatabaseValue) {
    switch value.storage {
    case .null: self = .null
    case .int64(let number): self = .integer(number)
    case .double(let number): self = .real(number)
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob([UInt8](data))
    }
  }
}

/// An SQLite value with full text; GRDB itself stops at the first NUL.
struct WholeValue: DatabaseValueConvertible, StatementColumnConvertible {
  let value: DatabaseValue

  init?(sqliteStatement statement: SQLiteStatement, index: CInt) {
    guard unsafe sqlite3_column_type(statement, index) == SQLITE_TEXT else {
      value = unsafe DatabaseValue(sqliteStatement: statement, index: index)
      return
    }
    // Text first: reading it may change the byte count.
    guard let start = unsafe sqlite3_column_text(statement, index) else { return nil }
    let count = unsafe Int(sqlite3_column_bytes(statement, index))
    value = unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self).databaseValue
  }

  private init(value: DatabaseValue) { self.value = value }

  var databaseValue: DatabaseValue { value }

  static func fromDatabaseValue(_ value: DatabaseValue) -> WholeValue? { WholeValue(value: value) }
}

extension Row {
  /// Returns a full-text value of a cursor's current row; a copied row has lost text after a NUL.
  package func whole(_ index: Int) -> DatabaseValue {
    let value: WholeValue? = self[index]
    return value?.value ?? .null
  }

  func text(_ index: Int) -> String? { String.fromDatabaseValue(self[index] as DatabaseValue) }

  func integer(_ index: Int) -> Int64? { Int64.fromDatabaseValue(self[index] as DatabaseValue) }
}

extension Statement {
  /// Binds full-text arguments.
  func bindWhole(_ arguments: [DatabaseValue]) throws {
    try setArguments(StatementArguments(arguments))
    for (index, argument) in arguments.enumerated() {
      guard case .string(let text) = argument.storage, text.utf8.contains(0) else { continue }
      let bytes = Array(text.utf8)
      let code = unsafe bytes.withUnsafeBytes { bytes in
        unsafe sqlite3_bind_text64(
          sqliteStatement, CInt(index + 1), bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
          UInt64(bytes.count), unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self), UInt8(SQLITE_UTF8))
      }
      guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
  }

  package func executeWhole(_ arguments: [DatabaseValue]) throws {
    try bindWhole(arguments)
    try execute()
  }
}

extension Database {
  package func wholeStatement(_ sql: String, _ arguments: [DatabaseValue]) throws -> Statement {
    let statement = try makeStatement(sql: sql)
    try statement.bindWhole(arguments)
    return statement
  }

  /// Returns a query's rows; `Row.whole` reads full-text values.
  package func wholeCursor(_ sql: String, _ arguments: [DatabaseValue]) throws -> RowCursor {
    try Row.fetchCursor(try wholeStatement(sql, arguments))
  }

  package func wholeRows(_ sql: String, _ arguments: [DatabaseValue]) throws -> [[DatabaseValue]] {
    let cursor = try wholeCursor(sql, arguments)
    var rows: [[DatabaseValue]] = []
    while let row = try cursor.next() { rows.append((0..<row.count).map { row.whole($0) }) }
    return rows
  }
}

// MARK: Reading records

extension PersistentStore {
  /// Reads a batch of an entity's and its sub-entities' records by primary key.
  ///
  /// - Parameter key: the primary key to start after.
  /// - Throws: `PersistentStoreError` without a model, for an unknown entity, or for SQLite's errors.
  public func records(of entityName: String, after key: Int64 = .min, limit: Int = 500) throws -> [StoreRecord] {
    let reader = try recordReader(for: entityName)
    return try read { try reader.records($0, after: key, limit: limit) }
  }

  /// Calls a closure with every record of an entity and its sub-entities, in batches for flat memory.
  ///
  /// Each batch is a separate read that may or may not see concurrent changes. Reading ends if `body` throws.
  public func forEachRecord(of entityName: String, batchSize: Int = 500, _ body: (StoreRecord) throws -> Void) throws {
    let reader = try recordReader(for: entityName)
    let batchSize = max(1, batchSize)
    var key = Int64.min
    while true {
      let batch = try read { try reader.records($0, after: key, limit: batchSize) }
      for record in batch { try body(record) }
      guard let last = batch.last, batch.count == batchSize, last.primaryKey > key else { return }
      key = last.primaryKey
    }
  }

  /// Returns the record count of an entity and its sub-entities.
  public func recordCount(of entityName: String) throws -> Int {
    guard let layout = try layout() else { throw withoutModel() }
    guard let entity = layout.entity(named: entityName) else { throw unknown("entity", entityName) }
    let table = SQLText.identifier(entity.tableName)
    let condition = entity.isRoot ? "" : " WHERE Z_ENT BETWEEN \(entity.number) AND \(entity.lastDescendantNumber)"
    return try read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)\(condition)") ?? 0 }
  }

  /// Returns a record's to-many destination keys, in relationship order if ordered, else by key.
  ///
  /// - Throws: `PersistentStoreError.unknownName` without such a stored to-many relationship.
  public func destinationKeys(of relationship: String, entity entityName: String, primaryKey: Int64) throws -> [Int64] {
    guard let layout = try layout() else { throw withoutModel() }
    let source: (table: String, key: String, owner: String, order: String?)
    switch layout.storage(of: relationship, in: entityName) {
    case .toManyByColumn(let table, let column, let order): source = (table, "Z_PK", column, order)
    case .toManyByJoinTable(let table, let own, let destination, let order): source = (table, destination, own, order)
    case .attribute, .toOne, nil: throw unknown("to-many relationship", "\(entityName).\(relationship)")
    }
    let key = SQLText.identifier(source.key)
    let order = (source.order.map { [SQLText.identifier($0)] } ?? []) + [key]
    return try read { database in
      try Int64.fetchAll(
        database,
        sql: """
          SELECT \(key) FROM \(SQLText.identifier(source.table)) WHERE \(SQLText.identifier(source.owner)) = ?
          AND typeof(\(key)) = 'integer' ORDER BY \(order.joined(separator: ", "))
          """, arguments: [primaryKey])
    }
  }

  private func recordReader(for entityName: String) throws(PersistentStoreError) -> RecordReader {
    guard let layout = try layout() else { throw withoutModel() }
    guard let reader = RecordReader(layout: layout, entityName: entityName) else { throw unknown("entity", entityName) }
    return reader
  }

  private func withoutModel() -> PersistentStoreError {
    PersistentStoreError(
      .noModel, operation: "read records", path: path, detail: "the store was opened without a model")
  }

  private func unknown(_ what: String, _ name: String) -> PersistentStoreError {
    PersistentStoreError(
      .unknownName, operation: "read records", path: path, detail: "there is no \(what) \"\(printable(name))\"")
  }
}

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
      database, sql: sql, arguments: [key, entity.numbers.lowerBound, entity.numbers.upperBound, limit])
    var records: [StoreRecord] = []
    while let row = try rows.next() { records.append(record(row)) }
    return records
  }

  private func record(_ row: Row) -> StoreRecord {
    let number = row.integer(1).flatMap { Int(exactly: $0) } ?? 0
    let own = layout.entity(numbered: number) ?? entity
    var record = StoreRecord(entityName: own.name, primaryKey: row.integer(0) ?? 0, values: [:], toOne: [:])
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
  public init(entityName: String, primaryKey: Int64, values: [String: RecordValue], toOne: [String: RecordReference]) {
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
