/// A query in SQL that a person typed, and which of its rows are shown.
package struct StoreQuery: Sendable, Hashable {
  /// The most characters of a query, so that an address can hold it.
  package static let longest = 4000

  /// The most rows that are passed over.
  package static let furthest = 1_000_000

  /// The statement: one `SELECT`, also with `WITH` before it, `VALUES`, or `EXPLAIN` of one.
  package var sql: String

  /// How many rows are passed over.
  package var offset = 0

  /// The most rows that are shown.
  package var size = RecordQuery.usualSize

  /// A query, from its first row on.
  ///
  /// - Throws: `bad-query` where it is too long, or has a NUL.
  package init(_ sql: String) throws(RecordBrowsingError) {
    guard sql.count <= Self.longest else {
      throw .badQuery(
        "the query has more than \(Self.longest) characters",
        hint: "Make it shorter, or export the tables that it reads.")
    }
    // SQLite would do what stands before it.
    guard !sql.utf8.contains(0) else { throw .badQuery("the query has a NUL in it", hint: "Write it as char(0).") }
    self.sql = sql
  }

  /// Reads which rows are shown from the parameters of an address.
  ///
  /// - Throws: `bad-query` where they are no numbers, or too large ones.
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

/// What a query gave.
package struct QueryResult: Sendable, Hashable {
  /// The names of the columns, as SQLite gives them; two may be the same.
  package var columns: [String]

  /// The rows that are shown; long values are cut, and say so.
  package var rows: [[PresentedValue]]

  /// How many rows were passed over before them.
  package var offset: Int

  /// Whether there are more rows.
  package var hasMore: Bool

  /// How long SQLite took, to the last row that is shown.
  package var time: Duration

  /// The names of the columns, each different from the others: `name`, `name_2`.
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
