internal import GRDB

/// The join tables of one relationship in two attached stores, `main` and `other`, and the statements that compare them.
///
/// Both are walked in the order of their indexes and merged, so that a page takes no longer at the end than at the beginning.
struct JoinTablePair {
  /// The place in an ordered relationship, by its column in each store; one of them may have none.
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

  /// The places that both stores, or one of them, keep.
  let places: [Place]

  init(_ first: ManyToMany, _ second: ManyToMany) {
    self.first = first
    self.second = second
    places = [(first.first, second.first), (first.second, second.second)].compactMap { one, other in
      guard one.orderSQL != nil || other.orderSQL != nil else { return nil }
      return Place(name: one.name, first: one.orderSQL, second: other.orderSQL)
    }
  }

  /// The statement that counts the pairs of a store.
  static func countSQL(_ pairs: ManyToMany, in schema: String) -> String {
    "SELECT count(*) FROM (SELECT DISTINCT \(keys(pairs)) FROM \(schema).\(pairs.tableSQL)"
      + "\(PageStatement.whereClause(areThere(pairs))))"
  }

  /// The statement that counts the pairs that differ in one way.
  func countSQL(_ difference: RecordDifference) -> String {
    switch difference {
    // With a limit SQLite keeps the order, by which it merges both without gathering either.
    case .missing, .added: "SELECT count(*) FROM (\(alone(difference, [])) ORDER BY 1, 2 LIMIT -1)"
    case .changed:
      "SELECT count(*) FROM (SELECT DISTINCT \(joinedKeys) FROM \(joined)\(PageStatement.whereClause(changed)))"
    }
  }

  /// The statement that lists them, a page and one more: the keys of both sides, then of each place the two values.
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

  /// A row without one of the keys connects nothing.
  private static func areThere(_ pairs: ManyToMany) -> [String] {
    ["\(pairs.first.keySQL) IS NOT NULL", "\(pairs.second.keySQL) IS NOT NULL"]
  }

  /// The pairs that one store alone has.
  ///
  /// - Parameter conditions: what comes behind the keys, in both stores.
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

  /// That a place differs; without any order no pair of both differs.
  private var changed: [String] {
    [places.isEmpty ? "0" : "(\(places.map(\.differs).joined(separator: " OR ")))"]
  }
}
