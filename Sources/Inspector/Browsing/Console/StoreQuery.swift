internal import GRDB
package import PersistentStore

/// A typed SQL query and the range of rows to show.
package struct StoreQuery: Sendable, Hashable {
  /// The most characters, so that a URL can hold them.
  package static let longest = 4000

  static let furthest = 1_000_000

  /// The statement: one `SELECT` (with or without `WITH`), `VALUES`, or `EXPLAIN` of one.
  package var sql: String

  package var offset = 0

  package var size = RecordQuery.usualSize

  /// - Throws: `bad-query` if too long or with a NUL.
  package init(_ sql: String) throws(PersistentStoreError) {
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
  package mutating func show(size: String?, offset: String?) throws(PersistentStoreError) {
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

  var offset: Int

  package var hasMore: Bool

  /// SQLite's time up to the last shown row.
  var time: Duration

  /// The column names made unique: `name`, `name_2`.
  var uniqueColumns: [String] { Self.unique(columns) }

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

/// A source of queries: an entity by the model's names, or a table of the file.
package struct QuerySource: Sendable, Hashable {
  package struct Column: Sendable, Hashable {
    package var name: String

    var type: String

    /// The table column's name, if different.
    var stored: String?

    /// Whether a store's expression would compute it, which makes it unreadable.
    package var isComputed = false
  }

  package var name: String

  var table: String?

  package var columns: [Column]

  /// A query of all readable columns.
  package var selection: String {
    let names = columns.filter { !$0.isComputed }.map { SQLText.readableIdentifier($0.name) }
    let isWhole = names.count == columns.count
    return "SELECT \(isWhole ? "*" : names.isEmpty ? "count(*)" : names.joined(separator: ", ")) FROM "
      + SQLText.readableIdentifier(name)
  }
}

struct QueryCatalog: Sendable {
  var sources: [QuerySource]

  var rules: QueryAuthorizer.Rules

  /// The statements of views with entity names, by case-folded name.
  private(set) var views: [String: String] = [:]

  private static let mostViews = 5000

  init(_ database: Database, _ collections: [RecordCollection]) throws {
    rules = try QueryAuthorizer.Rules(database, functions: QueryFunctions.names)
    var tables: [QuerySource] = []
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT l.name, c.name, c.type, c.hidden FROM pragma_table_list AS l, pragma_table_xinfo(l.name) AS c
        WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY l.name, c.cid
        """)
    while let row = try rows.next() {
      let (name, type): (DatabaseValue, DatabaseValue) = (row[0], row[2])
      let (columnName, hidden): (DatabaseValue, DatabaseValue) = (row[1], row[3])
      let table = String.fromDatabaseValue(name) ?? ""
      let column = QuerySource.Column(
        name: String.fromDatabaseValue(columnName) ?? "",
        type: (String.fromDatabaseValue(type) ?? "").lowercased(), isComputed: Int.fromDatabaseValue(hidden) == 2)
      if tables.last?.name == table {
        tables[tables.count - 1].columns.append(column)
      } else {
        tables.append(QuerySource(name: table, table: nil, columns: [column]))
      }
    }
    var taken = Set(tables.map(\.name.caseFolded))
    var entities: [QuerySource] = []
    for collection in collections.prefix(Self.mostViews) where collection.isEntity {
      // A table keeps its name.
      guard taken.insert(collection.name.caseFolded).inserted else { continue }
      entities.append(Self.source(collection))
      views[collection.name.caseFolded] = Self.view(collection)
    }
    sources = entities + tables
  }

  private static func source(_ collection: RecordCollection) -> QuerySource {
    QuerySource(
      name: collection.name, table: SQLText.plain(collection.tableSQL),
      columns: collection.columns.map { column in
        let stored = SQLText.plain(column.sql)
        return QuerySource.Column(
          name: column.name, type: column.typeName, stored: stored == column.name ? nil : stored)
      })
  }

  /// The temporary view with the model's names.
  private static func view(_ collection: RecordCollection) -> String {
    let columns = collection.columns.map { "\($0.sql) AS \(SQLText.quotedIdentifier($0.name))" }
    return "CREATE TEMP VIEW \(SQLText.quotedIdentifier(collection.name)) AS SELECT \(columns.joined(separator: ", ")) "
      + "FROM main.\(collection.tableSQL)\(PageStatement.whereClause([collection.condition].compactMap(\.self)))"
  }
}

extension SQLText {
  /// Returns a SQL name without quotation marks.
  static func plain(_ identifier: String) -> String {
    guard identifier.hasPrefix("\""), identifier.hasSuffix("\""), identifier.count > 1 else { return identifier }
    return String(identifier.dropFirst().dropLast()).replacing("\"\"", with: "\"")
  }
}
