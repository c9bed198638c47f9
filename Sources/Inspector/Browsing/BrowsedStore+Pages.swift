internal import GRDB
package import PersistentStore

extension BrowsedStore {
  private static let textLimit = 200

  private static let facetLimit = 30

  /// Returns a page of records.
  ///
  /// Keyset pagination by key and sort value keeps every page as fast as the first.
  ///
  /// - Throws: `unknown-property`, `bad-query`, `time-limit`, `store-unreadable`.
  package func page(of collection: RecordCollection, _ query: RecordQuery) throws(PersistentStoreError) -> RecordPage {
    let columns = try shownColumns(of: collection, query)
    let statement = try PageStatement(collection, query, columns: columns)
    var (rows, next) = try read(limits.page) { database -> ([RecordPage.Row], String?) in
      var rows: [RecordPage.Row] = []
      var last: [DatabaseValue] = []
      let cursor = try database.wholeCursor(statement.sql, statement.arguments)
      while let row = try cursor.next() {
        if rows.count == query.size { return (rows, PageToken(last).text) }
        last = statement.position(row)
        rows.append(self.row(row, statement, columns, collection, limit: Self.textLimit))
      }
      return (rows, nil)
    }
    if rows.isEmpty { next = nil }
    try annotate(&rows, columns, collection)
    let total = try count(of: collection)
    var page = RecordPage(
      columns: columns, rows: rows, next: next, total: total, matching: total, facets: try facets(of: collection, query)
    )
    page.steppedFacets = try steppedFacets(of: collection, query)
    if query.isNarrowed(hasStates: hasProvenance) { try countMatching(collection, query, &page) }
    return page
  }

  func shownColumns(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(PersistentStoreError) -> [RecordColumn] {
    try query.columns?.map { name throws(PersistentStoreError) in try collection.existing(name) } ?? collection.columns
  }

  func row(
    _ row: Row, _ statement: PageStatement, _ columns: [RecordColumn], _ collection: RecordCollection, limit: Int
  ) -> RecordPage.Row {
    var values: [PresentedValue] = []
    values.reserveCapacity(columns.count)
    for (index, column) in columns.enumerated() {
      var value = PresentedValue(
        row.whole(statement.firstColumn + index), of: column, entityNames: entityNames, limit: limit)
      if value.form == .bytes, let position = statement.lengthColumns[index], let read = value.byteCount,
        let length = Int.fromDatabaseValue(row[position])
      {
        // Long values are cut; the marker before bytes doesn't count.
        value.byteCount = length - (min(length, PageStatement.bytesRead) - read)
      }
      if value.form == .reference, let position = statement.entityColumns[index],
        let number = Int.fromDatabaseValue(row[position]), let name = entityNames[number]
      {
        value.destination = name
      }
      values.append(value)
    }
    let number = statement.entityPosition.flatMap { Int.fromDatabaseValue(row[$0]) }
    return RecordPage.Row(
      key: RecordKey(statement.key(row)), entity: number.flatMap { entityNames[$0] } ?? collection.name, values: values)
  }

  /// Counts matching records, up to a limit unless all are wanted.
  private func countMatching(
    _ collection: RecordCollection, _ query: RecordQuery, _ page: inout RecordPage
  ) throws(PersistentStoreError) {
    page.matching = nil
    if query.next == nil, page.next == nil {
      page.matching = Int64(page.rows.count)
      return
    }
    let (parts, arguments) = try query.conditions(in: collection)
    let selection = "SELECT 1 FROM \(collection.source(query.states))\(PageStatement.whereClause(parts))"
    let limit = Int64(limits.matchingCount)
    let sql = query.countsAll ? selection : selection + " LIMIT \(limit + 1)"
    let count = try timed(query.countsAll ? limits.page : limits.matching) { database in
      try Int64.fetchOne(database.wholeStatement("SELECT count(*) FROM (\(sql))", arguments)) ?? 0
    }
    guard let count else { return }
    if query.countsAll || count <= limit { page.matching = count } else { page.matchingAtLeast = limit }
  }

  private func facets(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(PersistentStoreError) -> [RecordPage.Facet] {
    try query.facets.map { name throws(PersistentStoreError) in
      let column = try collection.existing(name)
      let (parts, arguments) = try query.conditions(in: collection)
      let sql = """
        SELECT \(column.sql), count(*) FROM \(collection.source(query.states))\(PageStatement.whereClause(parts))
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT \(Self.facetLimit + 1)
        """
      let counts = try facets.value(Self.facetKey(sql, arguments)) { () throws(PersistentStoreError) in
        try timed(limits.facet) { database in
          try database.wholeRows(sql, arguments).map { row in
            RecordPage.Facet.Count(
              value: PresentedValue(row[0], of: column, entityNames: self.entityNames, limit: Self.textLimit),
              count: Int64.fromDatabaseValue(row[1]) ?? 0)
          }
        }
      }
      return RecordPage.Facet(
        column: name, values: counts.map { Array($0.prefix(Self.facetLimit)) },
        isCut: (counts?.count ?? 0) > Self.facetLimit)
    }
  }
}

/// The statement that reads a page, with its result columns.
struct PageStatement {
  let sql: String

  /// The SELECT list, also used to find single records.
  let selection: String

  let arguments: [DatabaseValue]

  let firstColumn: Int

  /// The positions of to-one entity numbers, by shown column.
  private(set) var entityColumns: [Int: Int] = [:]

  /// The positions of the lengths of possible bytes, by shown column.
  private(set) var lengthColumns: [Int: Int] = [:]

  /// The bytes read of a value, enough to recognize its type.
  static let bytesRead = 1100

  /// The position of the entity number.
  let entityPosition: Int?

  private let keyCount: Int

  /// The position of the sort value, unless sorted by key.
  private let sortPosition: Int?

  /// SQLite's limit of columns in a result, the same as in a table (https://sqlite.org/limits.html).
  static let mostColumns = 2000

  /// - Parameter isLimited: whether to read one page instead of all records after the token.
  init(
    _ collection: RecordCollection, _ query: RecordQuery, columns: [RecordColumn], isLimited: Bool = true
  ) throws(PersistentStoreError) {
    let key = collection.keySQL
    var sort: String?
    if let name = query.sort {
      let column = try collection.existing(name)
      // Pages are sorted by key anyway.
      if key != [column.sql] || query.isDescending { sort = column.sql }
    }
    keyCount = key.count
    let place = try query.next.map { token throws(PersistentStoreError) in
      try PageToken(token, count: key.count + (sort == nil ? 0 : 1)).values
    }
    var (parts, arguments) = try query.conditions(in: collection)
    if let values = place {
      let (text, more) = Self.behind(values, key: key, sort: sort, isDescending: query.isDescending)
      parts.append(text)
      arguments += more
    }
    let needed =
      key.count + 2 + columns.count { $0.mayHoldBytes } + columns.count { $0.entitySQL != nil } + columns.count
    // Very wide tables are read with whole values, without length columns.
    let isWide = needed > Self.mostColumns
    let shownSort = isWide ? columns.firstIndex { $0.sql == sort } : nil
    var selected = key
    if let sort, shownSort == nil { selected.append(sort) }
    entityPosition = collection.isEntity ? selected.count : nil
    if collection.isEntity { selected.append("Z_ENT") }
    let firstColumn = selected.count
    self.firstColumn = firstColumn
    sortPosition = sort == nil ? nil : shownSort.map { firstColumn + $0 } ?? key.count
    selected += columns.map { column in
      column.mayHoldBytes && !isWide
        ? "CASE typeof(\(column.sql)) WHEN 'blob' THEN substr(\(column.sql), 1, \(Self.bytesRead)) ELSE \(column.sql) END"
        : column.sql
    }
    for (index, column) in columns.enumerated() where column.mayHoldBytes && !isWide {
      lengthColumns[index] = selected.count
      selected.append("CASE typeof(\(column.sql)) WHEN 'blob' THEN length(\(column.sql)) END")
    }

    for (index, column) in columns.enumerated() {
      guard let entitySQL = column.entitySQL else { continue }
      entityColumns[index] = selected.count
      selected.append(entitySQL)
    }

    let direction = query.isDescending ? " DESC" : ""
    let order = (sort.map { ["\($0)\(direction)"] } ?? []) + key
    selection = selected.joined(separator: ", ")
    sql =
      "SELECT \(selection) FROM \(collection.source(query.states))\(Self.whereClause(parts)) "
      + "ORDER BY \(order.joined(separator: ", "))\(isLimited ? " LIMIT \(query.size + 1)" : "")"
    self.arguments = arguments
  }

  static func whereClause(_ parts: [String]) -> String {
    parts.isEmpty ? "" : " WHERE \(parts.joined(separator: " AND "))"
  }

  /// The condition that a row follows a record; NULL sorts first.
  private static func behind(
    _ values: [DatabaseValue], key: [String], sort: String?, isDescending: Bool
  ) -> (text: String, arguments: [DatabaseValue]) {
    let places = key.map { _ in "?" }.joined(separator: ", ")
    let behindKey = key.count == 1 ? "\(key[0]) > ?" : "(\(key.joined(separator: ", "))) > (\(places))"
    guard let sort else { return (behindKey, values) }
    let value = values[0]
    let keys = Array(values.dropFirst())
    if value.isNull {
      return isDescending
        ? ("(\(sort) IS NULL AND \(behindKey))", keys) : ("(\(sort) IS NOT NULL OR \(behindKey))", keys)
    }
    return isDescending
      ? ("(\(sort) IS NULL OR \(sort) < ? OR (\(sort) = ? AND \(behindKey)))", [value, value] + keys)
      : ("(\(sort) > ? OR (\(sort) = ? AND \(behindKey)))", [value, value] + keys)
  }

  func key(_ row: Row) -> [DatabaseValue] { (0..<keyCount).map { row.whole($0) } }

  /// The token values after this row.
  func position(_ row: Row) -> [DatabaseValue] { (sortPosition.map { [row.whole($0)] } ?? []) + key(row) }
}
