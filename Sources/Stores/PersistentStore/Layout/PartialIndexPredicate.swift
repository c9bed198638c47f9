/// The predicate of a partial index, translated to the condition of an SQL index.
///
/// Understood are comparisons of a property with a constant, joined by `AND`; Core Data's own words are not known, so
/// everything here is unverified. What is not understood is no predicate, and the index then covers all rows, which is
/// always right and only larger.
package enum PartialIndexPredicate {
  /// The condition as SQL; nil where the predicate is not understood or names a property without a column.
  package static func sql(_ predicate: String, column: (String) -> String?) -> String? {
    guard predicate.utf8.count <= 4096, let tokens = tokens(of: predicate) else { return nil }
    var conditions: [String] = []
    for clause in tokens.split(whereSeparator: { isWord($0, "AND") || $0 == "&&" }) {
      let clause = Array(clause)
      guard clause.count == 3, let column = column(clause[0]),
        let condition = comparison(SQLText.identifier(column), clause[1], clause[2])
      else { return nil }
      conditions.append(condition)
    }
    let joints = tokens.filter { isWord($0, "AND") || $0 == "&&" }.count
    guard !conditions.isEmpty, joints == conditions.count - 1 else { return nil }
    return conditions.joined(separator: " AND ")
  }

  private static func comparison(_ column: String, _ sign: String, _ constant: String) -> String? {
    let sign = ["==": "=", "=": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="][sign]
    guard let sign else { return nil }
    if ["nil", "null"].contains(where: { isWord(constant, $0) }) {
      return sign == "=" ? "\(column) IS NULL" : sign == "<>" ? "\(column) IS NOT NULL" : nil
    }
    return value(constant).map { "\(column) \(sign) \($0)" }
  }

  private static func value(_ constant: String) -> String? {
    if ["YES", "TRUE"].contains(where: { isWord(constant, $0) }) { return "1" }
    if ["NO", "FALSE"].contains(where: { isWord(constant, $0) }) { return "0" }
    if let number = Int64(constant) { return String(number) }
    if let quote = constant.first, quote == "\"" || quote == "'", constant.count >= 2, constant.last == quote {
      return SQLText.literal(String(constant.dropFirst().dropLast()))
    }
    return nil
  }

  private static func isWord(_ token: String, _ word: String) -> Bool { token.uppercased() == word.uppercased() }

  /// Words, signs and quoted texts; nil where there is anything else.
  private static func tokens(of predicate: String) -> [String]? {
    var tokens: [String] = []
    var rest = Substring(predicate)
    while let first = rest.first {
      if first == " " {
        rest.removeFirst()
      } else if first == "\"" || first == "'" {
        guard let end = rest.dropFirst().firstIndex(of: first), !rest[..<end].contains("\\") else { return nil }
        tokens.append(String(rest[...end]))
        rest = rest[rest.index(after: end)...]
      } else if "=<>!&".contains(first) {
        let sign = rest.prefix { "=<>!&".contains($0) }
        tokens.append(String(sign))
        rest = rest.dropFirst(sign.count)
      } else {
        let word = rest.prefix { $0.isLetter || $0.isNumber || "._-".contains($0) }
        guard !word.isEmpty else { return nil }
        tokens.append(String(word))
        rest = rest.dropFirst(word.count)
      }
    }
    return tokens
  }
}
