internal import GRDB
internal import ManagedObjectModel

/// How the records of a collection are spread over their keys.
package struct KeySpread: Sendable, Hashable {
  /// Some of the keys that follow each other.
  package struct Part: Sendable, Hashable {
    /// The keys, whether there are records of them or not.
    package var keys: ClosedRange<Int64>

    /// The records.
    package var records: Int64 = 0

    /// The earliest and the latest date of the records, in seconds since 2001; nil where they have none.
    package var dates: ClosedRange<Double>?
  }

  /// The parts, from the lowest keys to the highest, all of one width but the last.
  package var parts: [Part]

  /// The lowest and the highest key of a record; nil where there is none.
  package var keys: ClosedRange<Int64>?

  /// The property that the dates are of; nil where there is none.
  package var dateProperty: String?
}

extension BrowsedStore {
  private static let maximumParts = 200

  /// How the live records of a collection are spread over keys, with their dates.
  ///
  /// - Parameters:
  ///   - others: keys that are covered too, such as those of records that are lost.
  ///   - count: in how many parts at most.
  /// - Returns: nil where its keys are no single numbers, where there are none, and where counting takes too long.
  package func spread(
    of collection: RecordCollection, covering others: ClosedRange<Int64>?, parts count: Int
  ) throws(RecordBrowsingError) -> KeySpread? {
    guard collection.keySQL.count == 1, let key = collection.keySQL.first, collection.columns.first?.kind == .key else {
      return nil
    }
    let date = Self.dateColumn(of: collection)
    let condition = PageStatement.whereClause([collection.condition].compactMap(\.self))
    let found = try timed(limits.count) { database -> KeySpread? in
      let ends = try Row.fetchOne(
        database, sql: "SELECT min(\(key)), max(\(key)) FROM \(collection.tableSQL)\(condition)")
      let own: (Int64, Int64)? =
        if let first = ends?[0] as Int64?, let last = ends?[1] as Int64? { (first, last) } else { nil }
      let lows = [own?.0, others?.lowerBound].compactMap(\.self)
      let highs = [own?.1, others?.upperBound].compactMap(\.self)
      guard let low = lows.min(), let high = highs.max() else { return nil }
      let (width, isTooWide) = high.subtractingReportingOverflow(low)
      guard !isTooWide, width < Int64.max - 1 else { return nil }
      let parts = Int64(min(max(1, count), Self.maximumParts))
      let step = max(1, width / parts + 1)
      var spread = KeySpread(parts: [], keys: own.map { $0.0...$0.1 }, dateProperty: date?.name)
      var start = low
      while start <= high {
        let end = high - start < step ? high : start + step - 1
        spread.parts.append(KeySpread.Part(keys: start...end))
        if end == high { break }
        start = end + 1
      }
      let dates = date.map { ", min(\($0.sql)), max(\($0.sql))" } ?? ", NULL, NULL"
      let rows = try Row.fetchAll(
        database,
        sql: "SELECT (\(key) - ?) / ?, count(*)\(dates) FROM \(collection.tableSQL)\(condition) GROUP BY 1",
        arguments: [low, step])
      for row in rows {
        guard let place = row[0] as Int64?, spread.parts.indices.contains(Int(clamping: place)) else { continue }
        spread.parts[Int(place)].records = row[1] ?? 0
        if let first = Double.fromDatabaseValue(row[2]), let last = Double.fromDatabaseValue(row[3]), first <= last {
          spread.parts[Int(place)].dates = first...last
        }
      }
      return spread
    }
    return found ?? nil
  }

  /// The date that tells best when a record was made: one that is called so, else the first.
  private static func dateColumn(of collection: RecordCollection) -> RecordColumn? {
    let dates = collection.columns.filter { $0.kind == .attribute(.date, isMarked: false) }
    for word in ["creat", "added", "inserted", "timestamp", "date"] {
      if let column = dates.first(where: { $0.name.lowercased().contains(word) }) { return column }
    }
    return dates.first
  }
}
