internal import Foundation
internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension BrowsedStore {
  private static let stepLimit = 24

  /// The most days that are told apart on the way to months and years.
  private static let dayLimit = 50_000

  private static let rangeCount = 8.0

  /// The facets in steps that a query asks for.
  func steppedFacets(
    of collection: RecordCollection, _ query: RecordQuery
  ) throws(RecordBrowsingError) -> [SteppedFacet] {
    var result: [SteppedFacet] = []
    for steps in query.steps {
      guard let column = collection.column(steps.column) else {
        throw .unknownColumn(steps.column, in: collection)
      }
      let (parts, arguments) = try query.conditions(in: collection)
      // Values of other classes are in no step: SQLite would take text for a number.
      let conditions = parts + ["typeof(\(column.sql)) IN ('integer', 'real')"]
      let rows = "\(collection.source(query.states))\(PageStatement.whereClause(conditions))"
      let facet = try facetCache.steps("\(steps.step) \(column.sql) \(rows)", arguments) {
        () throws(RecordBrowsingError) in
        let found = try timed(limits.facet) { database in
          steps.step == .range
            ? (try Self.ranges(database, column.sql, rows, arguments), false)
            : try Self.dates(database, column.sql, rows, arguments, by: steps.step)
        }
        return SteppedFacet(steps: steps, counts: found?.0, isCut: found?.1 ?? false)
      }
      result.append(facet)
    }
    return result
  }

  // MARK: Dates

  /// The days from the first of the year 1 to that of 2001, and to that of the year 10000.
  private static let days = (before: 730_485, after: 2_921_574)

  /// The records by year or month; they are counted by days, of which every month has whole ones.
  private static func dates(
    _ database: Database, _ column: String, _ rows: String, _ arguments: [DatabaseValue], by step: FacetSteps.Step
  ) throws -> ([SteppedFacet.Count], Bool) {
    let quotient = "\(column) / 86400.0"
    // A date before 2001 is negative, and CAST goes towards zero.
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
    // Where there are more days, the oldest year or month may not be whole.
    if found.count > dayLimit, let oldest = counts.keys.min() { counts[oldest] = nil }
    let sorted = counts.sorted { $0.key > $1.key }.map {
      SteppedFacet.Count(first: $0.key, end: nil, count: $0.value, isYearOrMonth: true)
    }
    return (Array(sorted.prefix(stepLimit)), sorted.count > stepLimit || found.count > dayLimit)
  }

  // MARK: Numbers

  /// The records by ranges of a number, as wide as a power of ten, twice or five times that.
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
    // The bounds are compared as the conditions compare them, so that a range has what its link leads to.
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

  /// The numbers at which ranges begin and end, as texts that are read as those very numbers; none where they cannot be told
  /// apart.
  static func bounds(from least: Double, to most: Double, isWhole: Bool) -> [String] {
    // Whole numbers that are all the same have a range of that one.
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
}
