internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension BrowsedStore {
  /// The most characters of a value of a single record.
  private static let detailLimit = 20_000

  /// The most bytes of a single value that are given.
  private static let valueLimit: Int64 = 64 << 20

  private static let labelLimit = 80

  /// One record with its relationships in both directions.
  ///
  /// - Throws: `unknown-record`, `time-limit`, `store-unreadable`.
  package func detail(of key: RecordKey, in collection: RecordCollection) throws(RecordBrowsingError) -> RecordDetail {
    let columns = collection.columns
    let statement = try PageStatement(collection, RecordQuery(), columns: columns)
    let found = try read(limits.page) { database -> RecordPage.Row? in
      let condition = ([collection.condition].compactMap(\.self) + collection.keySQL.map { "\($0) = ?" })
      let rows = try database.wholeCursor(
        "SELECT \(statement.selection) FROM \(collection.everyRow)\(PageStatement.whereClause(condition))", key.values)
      return try rows.next().map { self.row($0, statement, columns, collection, limit: Self.detailLimit) }
    }
    guard var row = found else {
      throw RecordBrowsingError(
        .unknownRecord, path: path, detail: "\"\(collection.name)\" has no record with that key")
    }
    var rows = [row]
    try annotate(&rows, columns, collection)
    row = rows[0]
    var toOne: [String: RecordDetail.Reference] = [:]
    for (column, value) in zip(columns, row.values) {
      guard value.form == .reference, let number = Int64(value.text), let name = value.destination else { continue }
      toOne[column.name] = try reference(RecordKey(number), named: name)
    }
    var toMany: [RecordDetail.Related] = []
    if let primaryKey = key.values.first, key.values.count == 1 {
      for relationship in collection.toMany { toMany.append(try related(relationship, primaryKey)) }
    }
    return RecordDetail(
      row: row, columns: columns, label: try label(of: key, in: collection), toOne: toOne, toMany: toMany)
  }

  /// The whole value of a column of a record, as bytes: text in UTF-8, blobs without the marker of Core Data.
  ///
  /// - Throws: `unknown-record` and `unknown-property`; nil is returned for null, and for values outside the store.
  package func bytes(
    of column: String, key: RecordKey, in collection: RecordCollection
  ) throws(RecordBrowsingError) -> [UInt8]? {
    guard let found = collection.column(column) else { throw .unknownColumn(column, in: collection) }
    let condition = ([collection.condition].compactMap(\.self) + collection.keySQL.map { "\($0) = ?" })
    let value = try read(limits.page) { database in
      try database.wholeRows(
        "SELECT CASE WHEN length(CAST(\(found.sql) AS BLOB)) <= \(Self.valueLimit) THEN \(found.sql) "
          + "ELSE x'' END, length(CAST(\(found.sql) AS BLOB)) FROM \(collection.everyRow)\(PageStatement.whereClause(condition))",
        key.values
      ).first
    }
    guard let value else {
      throw RecordBrowsingError(
        .unknownRecord, path: path, detail: "\"\(collection.name)\" has no record with that key")
    }
    if let length = Int64.fromDatabaseValue(value[1]), length > Self.valueLimit {
      throw RecordBrowsingError(
        .tooLarge, path: path, detail: "the value has \(length) bytes, and at most \(Self.valueLimit) are shown")
    }
    let stored = value[0]
    switch stored.storage {
    case .null: return nil
    case .int64(let number): return Array(String(number).utf8)
    case .double(let number): return Array("\(number)".utf8)
    case .string(let text): return Array(text.utf8)
    case .blob(let data):
      guard case .attribute(let type, let isMarked) = found.kind else { return [UInt8](data) }
      switch RecordValue(StoredValue(stored), type: type, allowsExternalStorage: isMarked) {
      case .data(let bytes): return bytes
      case .externalData: return nil
      case .null, .integer, .real, .decimal, .boolean, .string, .date, .uuid, .uri, .unexpected: return [UInt8](data)
      }
    }
  }

  /// The name of the file that holds a value outside of the store; nil for values within it.
  package func fileName(
    of column: String, key: RecordKey, in collection: RecordCollection
  ) throws(RecordBrowsingError) -> String? {
    guard let found = collection.column(column) else { throw .unknownColumn(column, in: collection) }
    guard case .attribute(let type, let isMarked) = found.kind, isMarked else { return nil }
    let condition = ([collection.condition].compactMap(\.self) + collection.keySQL.map { "\($0) = ?" })
    let value = try read(limits.page) { database in
      try database.wholeRows(
        "SELECT substr(\(found.sql), 1, 200) FROM \(collection.everyRow)\(PageStatement.whereClause(condition))",
        key.values
      ).first?.first
    }
    guard let value,
      case .externalData(let name) = RecordValue(
        StoredValue(value), type: type, allowsExternalStorage: isMarked)
    else { return nil }
    return name
  }

  /// The name or title of a record, cut to a line.
  func label(of key: RecordKey, in collection: RecordCollection) throws(RecordBrowsingError) -> String? {
    guard let column = collection.labelColumn else { return nil }
    let text = try read(limits.page) { database in
      try database.wholeRows(
        """
        SELECT substr(\(column.sql), 1, \(Self.labelLimit)) FROM \(collection.everyRow) \
        WHERE \(collection.keySQL.map { "\($0) = ?" }.joined(separator: " AND ")) AND typeof(\(column.sql)) = 'text'
        """, key.values
      ).first?.first
    }
    guard let text = text.flatMap({ String.fromDatabaseValue($0) }), !text.isEmpty else { return nil }
    return text
  }
}
