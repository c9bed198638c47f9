internal import Foundation
internal import GRDB
package import PersistentStore
import Platform

extension BrowsedStore {
  private static let stepLimit = 24

  /// The most distinct days grouped into months or years.
  private static let dayLimit = 50_000

  private static let rangeCount = 8.0

  static func facetKey(_ sql: String, _ arguments: [DatabaseValue]) -> String {
    sql + "\u{0}" + arguments.map(PageToken.text).joined(separator: "~")
  }

  func steppedFacets(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(PersistentStoreError) -> [SteppedFacet] {
    try query.steps.map { steps throws(PersistentStoreError) in
      let column = try collection.existing(steps.column)
      let (parts, arguments) = try query.conditions(in: collection)
      // SQLite would read text as a number.
      let conditions = parts + ["typeof(\(column.sql)) IN ('integer', 'real')"]
      let rows = "\(collection.source(query.states))\(PageStatement.whereClause(conditions))"
      let key = Self.facetKey("\(steps.step) \(column.sql) \(rows)", arguments)
      let facet = try steppedFacets.value(key) { () throws(PersistentStoreError) in
        let found = try timed(limits.facet) { database in
          steps.step == .range
            ? (try Self.ranges(database, column.sql, rows, arguments), false)
            : try Self.dates(database, column.sql, rows, arguments, by: steps.step)
        }
        return found.map { SteppedFacet(steps: steps, counts: $0.0, isCut: $0.1) }
      }
      return facet ?? SteppedFacet(steps: steps, counts: nil, isCut: false)
    }
  }

  // MARK: Dates

  /// Days between the years 1, 2001 and 10000.
  private static let days = (before: 730_485, after: 2_921_574)

  /// Counts by year or month via days, since months consist of whole days.
  private static func dates(
    _ database: Database, _ column: String, _ rows: String, _ arguments: [DatabaseValue], by step: FacetSteps.Step
  ) throws -> ([SteppedFacet.Count], Bool) {
    let quotient = "\(column) / 86400.0"
    // Dates before 2001 are negative, and CAST truncates toward zero.
    let day = "CAST(\(quotient) AS INTEGER) - (\(quotient) < CAST(\(quotient) AS INTEGER))"
    let found = try Row.fetchAll(
      database.wholeStatement(
        """
        SELECT \(day), count(*) FROM \(rows) AND \(column) >= \(-days.before * 86400) AND \(column) < \(days.after * 86400)
        GROUP BY 1 ORDER BY 1 DESC LIMIT \(dayLimit + 1)
        """, arguments))
    var counts: [String: Int64] = [:]
    for row in found.prefix(dayLimit) {
      let day: Int64 = row[0]
      let text = Timestamp(secondsSince1970: day * 86400 + 978_307_200).rfc3339
      counts[String(text.prefix(step == .year ? 4 : 7)), default: 0] += row[1]
    }
    // The oldest year or month may be incomplete.
    if found.count > dayLimit, let oldest = counts.keys.min() { counts[oldest] = nil }
    let sorted = counts.sorted { $0.key > $1.key }.map {
      SteppedFacet.Count(first: $0.key, end: nil, count: $0.value, isYearOrMonth: true)
    }
    return (Array(sorted.prefix(stepLimit)), sorted.count > stepLimit || found.count > dayLimit)
  }

  // MARK: Numbers

  /// Counts by range, with widths of 1, 2 or 5 times a power of ten.
  private static func ranges(
    _ database: Database, _ column: String, _ rows: String, _ arguments: [DatabaseValue]
  ) throws -> [SteppedFacet.Count] {
    let finite = "\(rows) AND \(column) > -9e999 AND \(column) < 9e999"
    let ends = try Row.fetchOne(
      database.wholeStatement(
        "SELECT min(\(column)), max(\(column)), max(typeof(\(column)) = 'real') FROM \(finite)", arguments))
    guard let ends, let least = Double.fromDatabaseValue(ends[0]), let most = Double.fromDatabaseValue(ends[1]) else {
      return []
    }
    let isWhole = Int64.fromDatabaseValue(ends[2]) == 0
    let bounds = bounds(from: least, to: most, isWhole: isWhole)
    guard !bounds.isEmpty else {
      let count = try Int64.fetchOne(database.wholeStatement("SELECT count(*) FROM \(finite)", arguments))
      return [SteppedFacet.Count(first: nil, end: nil, count: count ?? 0, isWhole: isWhole)]
    }
    // Bounds compare as filters do, so a range matches its link.
    let cases = bounds.indices.map { "WHEN \(column) < ? THEN \($0)" }.joined(separator: " ")
    let values = bounds.map { isWhole ? Int64($0)?.databaseValue ?? .null : Double($0)?.databaseValue ?? .null }
    let found = try Row.fetchAll(
      database.wholeStatement(
        "SELECT CASE \(cases) ELSE \(bounds.count) END, count(*) FROM \(finite) GROUP BY 1 ORDER BY 1",
        values + arguments))
    return found.map { row in
      let place: Int = row[0]
      return SteppedFacet.Count(
        first: place > 0 ? bounds[place - 1] : nil, end: place < bounds.count ? bounds[place] : nil, count: row[1],
        isWhole: isWhole)
    }
  }

  /// The bounds as texts that parse to exactly those numbers; empty if indistinguishable.
  static func bounds(from least: Double, to most: Double, isWhole: Bool) -> [String] {
    // Equal whole numbers get a range of one.
    let width = isWhole && most == least ? 1 : most / rangeCount - least / rangeCount
    guard width > 0, width.isFinite else { return [] }
    var exponent = Int(log10(width).rounded(.down))
    if isWhole { exponent = max(0, exponent) }
    guard (-300...300).contains(exponent) else { return [] }
    let scale = pow(10, Double(exponent))
    let factor = [1.0, 2, 5].first { $0 * scale >= width } ?? 10
    let first = (least / (factor * scale)).rounded(.down)
    let last = (most / (factor * scale)).rounded(.down) + 1
    guard abs(first) < 1e14, abs(last) < 1e14, first <= last, last - first < 100 else { return [] }
    return stride(from: first, through: last, by: 1).compactMap { place in
      let digits = Int64(place) * Int64(factor)
      guard isWhole else { return Double("\(digits)e\(exponent)").map { "\($0)" } }
      return Int64(exactly: Double(digits) * scale).map(String.init)
    }
  }

  private static let detailLimit = 20_000

  private static let valueLimit: Int64 = 64 << 20

  private static let labelLimit = 80

  /// - Throws: `unknown-record`, `time-limit`, `store-unreadable`.
  package func detail(of key: RecordKey, in collection: RecordCollection) throws(PersistentStoreError) -> RecordDetail {
    let columns = collection.columns
    let statement = try PageStatement(collection, RecordQuery(), columns: columns)
    let found = try read(limits.page) { database -> RecordPage.Row? in
      let rows = try database.wholeCursor("SELECT \(statement.selection) FROM \(collection.rowOfKey)", key.values)
      return try rows.next().map { self.row($0, statement, columns, collection, limit: Self.detailLimit) }
    }
    guard let found else {
      throw PersistentStoreError(
        .unknownRecord, path: path, detail: "\"\(collection.name)\" has no record with that key")
    }
    var rows = [found]
    try annotate(&rows, columns, collection)
    let row = rows[0]
    var toOne: [String: RecordDetail.Reference] = [:]
    for (column, value) in zip(columns, row.values) {
      guard value.form == .reference, let number = Int64(value.text), let name = value.destination else { continue }
      toOne[column.name] = try reference(RecordKey(number), named: name)
    }
    var toMany: [RecordDetail.Related] = []
    if let primaryKey = key.values.first, key.values.count == 1 {
      toMany = try collection.toMany.map { one throws(PersistentStoreError) in try related(one, primaryKey) }
    }
    return RecordDetail(
      row: row, columns: columns, label: try label(of: key, in: collection), toOne: toOne, toMany: toMany)
  }

  /// Returns a whole value as bytes: UTF-8 text, or a blob without Core Data's marker.
  ///
  /// - Throws: `unknown-record` and `unknown-property`; null and external values return nil.
  package func bytes(
    of column: String, key: RecordKey, in collection: RecordCollection
  ) throws(PersistentStoreError) -> [UInt8]? {
    guard let found = collection.column(column) else { throw .unknownColumn(column, in: collection) }
    let value = try read(limits.page) { database in
      try database.wholeRows(
        "SELECT CASE WHEN length(CAST(\(found.sql) AS BLOB)) <= \(Self.valueLimit) THEN \(found.sql) "
          + "ELSE x'' END, length(CAST(\(found.sql) AS BLOB)) FROM \(collection.rowOfKey)", key.values
      ).first
    }
    guard let value else {
      throw PersistentStoreError(
        .unknownRecord, path: path, detail: "\"\(collection.name)\" has no record with that key")
    }
    if let length = Int64.fromDatabaseValue(value[1]), length > Self.valueLimit {
      throw PersistentStoreError(
        .valueTooLarge, path: path, detail: "the value has \(length) bytes, and at most \(Self.valueLimit) are shown")
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

  func fileName(
    of column: String, key: RecordKey, in collection: RecordCollection
  ) throws(PersistentStoreError) -> String? {
    guard let found = collection.column(column) else { throw .unknownColumn(column, in: collection) }
    guard case .attribute(let type, let isMarked) = found.kind, isMarked else { return nil }
    let value = try read(limits.page) { database in
      try database.wholeRows("SELECT substr(\(found.sql), 1, 200) FROM \(collection.rowOfKey)", key.values).first?.first
    }
    guard let value,
      case .externalData(let name) = RecordValue(StoredValue(value), type: type, allowsExternalStorage: isMarked)
    else { return nil }
    return name
  }

  /// The name or title, cut to a line.
  func label(of key: RecordKey, in collection: RecordCollection) throws(PersistentStoreError) -> String? {
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
