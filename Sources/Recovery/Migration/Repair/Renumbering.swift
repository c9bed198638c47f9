internal import StoreFiles

/// The entity numbers that the records of a hierarchy get.
package struct Renumbering: Hashable {
  /// The new number of each number that the records have and the model gives to another entity, or to none.
  var numbers: [Int: Int]

  /// The number of the only entity whose records the table can hold; nil where there are several.
  var sole: Int?

  /// Whether `Z_PRIMARYKEY` calls the entities by other numbers too, so that whatever names an entity by its number does.
  ///
  /// Else the records alone are wrong, and nothing has to follow.
  var isOfStore: Bool

  /// The new number in the place of what a column holds, as SQL.
  ///
  /// - Parameters:
  ///   - column: the column, as SQL.
  ///   - isOwn: whether it is the one that tells the entity of a row, not of what the row refers to.
  func sql(of column: String, isOwn: Bool) -> String {
    if isOwn, let sole { return "\(sole)" }
    guard !numbers.isEmpty else { return column }
    let cases = numbers.ordered { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
    return "CASE \(column) \(cases) ELSE \(column) END"
  }

  /// Which rows get another number, as SQL.
  func condition(of column: String, isOwn: Bool) -> String {
    if isOwn, let sole { return "\(column) IS NOT \(sole)" }
    return "\(column) IN \(numbers.keys.sorted().sqlList)"
  }
}
