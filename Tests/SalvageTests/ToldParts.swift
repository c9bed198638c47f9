import GRDB

/// The rows of a result that are told to be parts of rows, because a long value of theirs is lost or doubtful.
struct ToldParts {
  private let rows: [String: Set<Int64>]

  init(_ database: Database) throws {
    var rows: [String: Set<Int64>] = [:]
    let told = try Row.fetchAll(
      database, sql: "SELECT \"table\", \"row\" FROM lazaret_provenance WHERE doubt = 'long-value'")
    for row in told { rows[row[0], default: []].insert(row[1]) }
    self.rows = rows
  }

  /// How many rows of a table there are.
  func count(_ table: String) -> Int { rows[table]?.count ?? 0 }

  /// How many of a table's rows, each with its rowid first, are neither in the store nor told to be parts of such rows.
  func falseRows(_ table: String, _ found: Set<[DatabaseValue]>, truth: Set<[DatabaseValue]>) -> Int {
    let wrong = found.subtracting(truth)
    guard !wrong.isEmpty, let told = rows[table] else { return wrong.count }
    let whole = Dictionary(truth.map { ($0.first, $0) }, uniquingKeysWith: { first, _ in first })
    return wrong.count { row in
      guard let key = row.first.flatMap({ Int64.fromDatabaseValue($0) }), told.contains(key),
        let original = whole[row.first]
      else { return true }
      return !zip(row, original).allSatisfy { Self.isPart($0, of: $1) }
    }
  }

  /// Whether a value is one of the store's, or its beginning, or was left out.
  private static func isPart(_ value: DatabaseValue, of original: DatabaseValue) -> Bool {
    if value == original || value.isNull { return true }
    guard let text = String.fromDatabaseValue(value), let whole = String.fromDatabaseValue(original) else {
      return false
    }
    return whole.utf8.starts(with: text.utf8)
  }
}
