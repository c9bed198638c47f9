internal import GRDB
internal import PersistentStore

/// A compared property or position; one store may lack its column.
struct ComparedColumn {
  let name: String
  let first: RecordColumn?
  let second: RecordColumn?

  /// The condition that values differ; a missing column is NULL.
  var differs: String { "\(firstSQL) IS NOT \(secondSQL)" }

  var firstSQL: String { first.map { "n.\($0.sql)" } ?? "NULL" }
  var secondSQL: String { second.map { "o.\($0.sql)" } ?? "NULL" }
}

/// Compares the records of one name in two attached stores, `main` and `other`.
struct CollectionPair {
  let first: RecordCollection
  let second: RecordCollection

  let properties: [ComparedColumn]

  var shown: ArraySlice<ComparedColumn> { properties.prefix(Self.maximumShown) }

  private let match: [(first: String, second: String)]

  /// The most shown properties, because SQLite limits result columns.
  private static let maximumShown = 400

  /// - Parameter property: the identifying property; nil for the primary key.
  init(_ first: RecordCollection, _ second: RecordCollection, by property: String?) throws(PersistentStoreError) {
    self.first = first
    self.second = second
    if let property {
      guard let one = first.column(property) else { throw .unknownColumn(property, in: first) }
      guard let other = second.column(property) else { throw .unknownColumn(property, in: second) }
      match = [(one.sql, other.sql)]
    } else {
      guard first.keySQL.count == second.keySQL.count else {
        throw .badQuery("the stores have other keys for these records", hint: "Compare them by a property with UUIDs.")
      }
      match = Array(zip(first.keySQL, second.keySQL))
    }
    let own = Self.compared(first, without: property)
    let others = Self.compared(second, without: property)
    // Columns computed by SQLite in either store are not read or compared.
    var properties: [ComparedColumn] = []
    for column in own where second.column(column.name)?.kind != .key {
      guard !second.computedColumns.contains(column.name) else { continue }
      properties.append(
        ComparedColumn(name: column.name, first: column, second: others.first { $0.name == column.name }))
    }
    for column in others where first.column(column.name) == nil && !first.computedColumns.contains(column.name) {
      properties.append(ComparedColumn(name: column.name, first: nil, second: column))
    }
    self.properties = properties
  }

  private static func compared(_ collection: RecordCollection, without property: String?) -> [RecordColumn] {
    collection.columns.filter { $0.kind != .key && $0.kind != .entity && $0.name != property }
  }

  private var isSame: String { match.map { "n.\($0.first) = o.\($0.second)" }.joined(separator: " AND ") }

  private static func conditions(_ collection: RecordCollection, _ name: String) -> [String] {
    collection.entityNumbers.map { ["\(name).Z_ENT BETWEEN \($0.lowerBound) AND \($0.upperBound)"] } ?? []
  }

  private func tables(_ difference: RecordDifference) -> (text: String, conditions: [String]) {
    let one = "main.\(first.tableSQL) AS n"
    let other = "other.\(second.tableSQL) AS o"
    let own = Self.conditions(first, "n")
    let others = Self.conditions(second, "o")
    switch difference {
    case .missing: return (one, own + [absence(of: other, others, match.map { ("n.\($0.first)", "o.\($0.second)") })])
    case .added: return (other, others + [absence(of: one, own, match.map { ("o.\($0.second)", "n.\($0.first)") })])
    case .changed: return ("\(one) JOIN \(other) ON \(isSame)", own + others + [Self.any(properties.map(\.differs))])
    }
  }

  /// The condition that no row has the same key.
  private func absence(of table: String, _ conditions: [String], _ pairs: [(mine: String, its: String)]) -> String {
    let isKey = pairs.count == first.keySQL.count && match.first?.first == first.keySQL.first
    if !isKey, let pair = pairs.first {
      // Without an index, the keys are gathered once.
      return "(\(pair.mine) IS NULL OR \(pair.mine) NOT IN (SELECT \(pair.its) FROM \(table)"
        + PageStatement.whereClause(conditions + ["\(pair.its) IS NOT NULL"]) + "))"
    }
    let same = pairs.map { "\($0.its) = \($0.mine)" }
    return "NOT EXISTS (SELECT 1 FROM \(table)\(PageStatement.whereClause(conditions + same)))"
  }

  /// Joins terms by OR in groups, which limits the expression depth.
  private static func any(_ terms: [String]) -> String {
    guard !terms.isEmpty else { return "0" }
    let groups = stride(from: 0, to: terms.count, by: 100).map { start in
      "(" + terms[start..<min(start + 100, terms.count)].joined(separator: " OR ") + ")"
    }
    return "(\(groups.joined(separator: " OR ")))"
  }

  func countSQL(_ difference: RecordDifference) -> String {
    let (text, conditions) = tables(difference)
    return "SELECT count(*) FROM \(text)\(PageStatement.whereClause(conditions))"
  }

  /// Selects a page of differing records plus one.
  func pageSQL(
    _ difference: RecordDifference, behind next: RecordKey?, size: Int
  ) -> (text: String, arguments: [DatabaseValue]) {
    var (text, conditions) = tables(difference)
    let name = difference == .added ? "o" : "n"
    let own = (difference == .added ? second.keySQL : first.keySQL).map { "\(name).\($0)" }
    var selected = own
    if difference == .changed {
      selected += second.keySQL.map { "o.\($0)" }
      selected += shown.flatMap { [$0.firstSQL, $0.secondSQL] }
    }
    if let next, next.values.count == own.count {
      let places = own.map { _ in "?" }.joined(separator: ", ")
      conditions.append("(\(own.joined(separator: ", "))) > (\(places))")
    }
    text =
      "SELECT \(selected.joined(separator: ", ")) FROM \(text)\(PageStatement.whereClause(conditions)) "
      + "ORDER BY \(own.joined(separator: ", ")) LIMIT \(size + 1)"
    return (text, next.map { $0.values.count == own.count ? $0.values : [] } ?? [])
  }
}

/// Compares the join tables of one relationship in two attached stores, `main` and `other`.
///
/// Merging both in index order keeps every page as fast as the first.
struct JoinTablePair {
  let first: ManyToMany
  let second: ManyToMany

  /// The positions in an ordered relationship.
  let places: [ComparedColumn]

  init(_ first: ManyToMany, _ second: ManyToMany) {
    self.first = first
    self.second = second
    places = [(first.first, second.first), (first.second, second.second)].compactMap { one, other in
      guard one.orderSQL != nil || other.orderSQL != nil else { return nil }
      func column(_ sql: String) -> RecordColumn {
        RecordColumn(name: one.name, kind: .stored(declaredType: "INTEGER"), sql: sql)
      }
      return ComparedColumn(name: one.name, first: one.orderSQL.map(column), second: other.orderSQL.map(column))
    }
  }

  static func countSQL(_ pairs: ManyToMany, in schema: String) -> String {
    "SELECT count(*) FROM (SELECT DISTINCT \(keys(pairs)) FROM \(schema).\(pairs.tableSQL)"
      + "\(PageStatement.whereClause(areThere(pairs))))"
  }

  func countSQL(_ difference: RecordDifference) -> String {
    switch difference {
    // The LIMIT makes SQLite keep the order, so it merges both without gathering either.
    case .missing, .added: "SELECT count(*) FROM (\(alone(difference, [])) ORDER BY 1, 2 LIMIT -1)"
    case .changed:
      "SELECT count(*) FROM (SELECT DISTINCT \(joinedKeys) FROM \(joined)\(PageStatement.whereClause(changed)))"
    }
  }

  /// Selects a page of pairs plus one: both keys, then the two values of each position.
  func pageSQL(
    _ difference: RecordDifference, behind next: PageToken?, size: Int
  ) -> (text: String, arguments: [DatabaseValue]) {
    let values = next?.values ?? []
    switch difference {
    case .missing, .added:
      let text = alone(difference, next == nil ? [] : ["> (?, ?)"])
      return ("\(text) ORDER BY 1, 2 LIMIT \(size + 1)", values + values)
    case .changed:
      let selected = [joinedKeys] + places.flatMap { [$0.firstSQL, $0.secondSQL] }
      let conditions = changed + (next == nil ? [] : ["(\(joinedKeys)) > (?, ?)"])
      return (
        "SELECT \(selected.joined(separator: ", ")) FROM \(joined)\(PageStatement.whereClause(conditions)) "
          + "ORDER BY \(joinedKeys) LIMIT \(size + 1)", values
      )
    }
  }

  private static func keys(_ pairs: ManyToMany) -> String { "\(pairs.first.keySQL), \(pairs.second.keySQL)" }

  /// A row with a NULL key connects no records.
  private static func areThere(_ pairs: ManyToMany) -> [String] {
    ["\(pairs.first.keySQL) IS NOT NULL", "\(pairs.second.keySQL) IS NOT NULL"]
  }

  /// Selects one store's pairs only.
  ///
  /// - Parameter conditions: the SQL after the keys, for both stores.
  private func alone(_ difference: RecordDifference, _ conditions: [String]) -> String {
    func selection(_ pairs: ManyToMany, _ schema: String) -> String {
      let all = Self.areThere(pairs) + conditions.map { "(\(Self.keys(pairs))) \($0)" }
      return "SELECT \(Self.keys(pairs)) FROM \(schema).\(pairs.tableSQL)\(PageStatement.whereClause(all))"
    }
    let both = [selection(first, "main"), selection(second, "other")]
    return (difference == .added ? both.reversed() : both).joined(separator: " EXCEPT ")
  }

  private var joinedKeys: String { "n.\(first.first.keySQL), n.\(first.second.keySQL)" }

  private var joined: String {
    "main.\(first.tableSQL) AS n JOIN other.\(second.tableSQL) AS o ON o.\(second.first.keySQL) = n.\(first.first.keySQL) "
      + "AND o.\(second.second.keySQL) = n.\(first.second.keySQL)"
  }

  /// The condition that a position differs; false if unordered.
  private var changed: [String] { [places.isEmpty ? "0" : "(\(places.map(\.differs).joined(separator: " OR ")))"] }
}
