import GRDB
import PersistentStore
import SystemPackage

/// Everything that the tables of a store hold, whatever the order of columns and rows: for comparing two stores.
func tableContents(_ path: FilePath) throws -> [String: [String]] {
  let store = try PersistentStore(opening: path)
  let result = try store.read { database in
    var result: [String: [String]] = [:]
    let schema = try SQLSchema(database)
    for table in schema.tables.values where !["Z_METADATA", "Z_MODELCACHE"].contains(table.name) {
      let columns = table.columns.map { "\"\($0.name)\"" }.sorted()
      result[table.name] = try Row.fetchAll(
        database, sql: "SELECT \(columns.joined(separator: ", ")) FROM \"\(table.name)\""
      ).map { row in
        zip(columns, row.databaseValues).map { "\($0)=\($1)" }.joined(separator: "|")
      }.sorted()
    }
    return result
  }
  try store.close()
  return result
}
