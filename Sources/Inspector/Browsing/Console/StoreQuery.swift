/// A typed SQL query and the range of rows to show.
package struct StoreQuery: Sendable, Hashable {
  /// The most characters, so that a URL can hold them.
  package static let longest = 4000

  package static let furthest = 1_000_000

  /// The statement: one `SELECT` (with or without `WITH`), `VALUES`, or `EXPLAIN` of one.
  package var sql: String

  package var offset = 0

  package var size = RecordQuery.usualSize

  /// - Throws: `bad-query` if too long or with a NUL.
  package init(_ sql: String) throws(RecordBrowsingError) {
    guard sql.count <= Self.longest else {
      throw .badQuery(
        "the query has more than \(Self.longest) characters",
        hint: "Make it shorter, or export the tables that it reads.")
    }
    // SQLite would run the part before the NUL.
    guard !sql.utf8.contains(0) else { throw .badQuery("the query has a NUL in it", hint: "Write it as char(0).") }
    self.sql = sql
  }

  /// Parses URL parameters.
  ///
  /// - Throws: `bad-query` for invalid or too large numbers.
  package mutating func show(size: String?, offset: String?) throws(RecordBrowsingError) {
    if let size, !size.isEmpty {
      guard let number = Int(size), (1...RecordQuery.maximumSize).contains(number) else {
        throw .badQuery(
          "_size is not from 1 to \(RecordQuery.maximumSize)", hint: "Leave it out for \(RecordQuery.usualSize).")
      }
      self.size = number
    }
    if let offset, !offset.isEmpty {
      guard let number = Int(offset), (0...Self.furthest).contains(number) else {
        throw .badQuery(
          "_offset is not from 0 to \(Self.furthest)", hint: "Add a condition to the query, or export all of its rows.")
      }
      self.offset = number
    }
  }
}

package struct QueryResult: Sendable, Hashable {
  /// The column names by SQLite, possibly repeated.
  package var columns: [String]

  /// The shown rows; cut values are marked.
  package var rows: [[PresentedValue]]

  package var offset: Int

  package var hasMore: Bool

  /// SQLite's time up to the last shown row.
  package var time: Duration

  /// The column names made unique: `name`, `name_2`.
  package var uniqueColumns: [String] { Self.unique(columns) }

  static func unique(_ names: [String]) -> [String] {
    var taken: Set<String> = []
    var last: [String: Int] = [:]
    return names.map { name in
      var unique = name
      while !taken.insert(unique).inserted {
        last[name, default: 1] += 1
        unique = "\(name)_\(last[name, default: 2])"
      }
      return unique
    }
  }
}
