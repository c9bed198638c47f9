internal import GRDB

/// Compares the join tables of one relationship in two attached stores, `main` and `other`.
///
/// Merging both in index order keeps every page as fast as the first.
struct JoinTablePair {
  /// The position in an ordered relationship; one store may lack it.
  struct Place {
    let name: String
    let first: String?
    let second: String?

    var firstSQL: String { first.map { "n.\($0)" } ?? "NULL" }
    var secondSQL: String { second.map { "o.\($0)" } ?? "NULL" }
    var differs: String { "\(firstSQL) IS NOT \(secondSQL)" }
  }

  let first: ManyToMany
  let second: ManyToMany

  let places: [Place]

  init(_ first: ManyToMany, _ second: ManyToMany) {
    self.first = first
    self.second = second
    places = [(first.first, second.first), (first.second, second.second)].compactMap { one, other in
      guard one.orderSQL != nil || other.orderSQL != nil else { return nil }
      return Place(name: one.name, first: one.orderSQL, second: other.orderSQL)
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
  private var changed: [String] {
    [places.isEmpty ? "0" : "(\(places.map(\.differs).joined(separator: " OR ")))"]
  }
}
