package import GRDB

extension Database {
  /// Whether an ordinary table has columns of these names whose values are in the file, so that reading them evaluates no
  /// expression of the schema.
  package func hasStored(_ columns: [String], in table: String) throws -> Bool {
    // What is generated, stored or not, is in no `table_info`; a view is no table.
    let names = try String.fetchAll(
      self,
      sql: """
        SELECT upper(c.name) FROM pragma_table_list(?1) AS l, pragma_table_info(?1) AS c
        WHERE l.schema = 'main' AND l.type = 'table'
        """, arguments: [table])
    return Set(columns.map { $0.uppercased() }).isSubset(of: names)
  }
}

/// The tables of a schema that SQLite cannot check without evaluating an expression that the schema has.
package enum ForeignExpressions {
  /// The names of ordinary tables with computed columns, or with an index that is partial or has an expression.
  ///
  /// Nothing is evaluated to find them. Checks and defaults do not count: evidence is never written to, and its checks are
  /// off.
  package static func tables(of database: Database) throws -> Set<String> {
    try Set(
      String.fetchAll(
        database,
        sql: """
          SELECT l.name FROM pragma_table_list AS l, pragma_table_xinfo(l.name) AS c
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND c.hidden = 2
          UNION SELECT l.name FROM pragma_table_list AS l, pragma_index_list(l.name) AS i
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND i.partial
          UNION SELECT l.name FROM pragma_table_list AS l, pragma_index_list(l.name) AS i, pragma_index_info(i.name) AS c
          WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND c.cid = -2
          """))
  }
}
