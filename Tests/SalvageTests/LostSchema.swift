import GRDB
import Platform
import SystemPackage
import TestSupport

/// Copies of stores whose list of tables is lost, and stores that another writer made.
enum LostSchema {
  /// Overwrites page 1 and every page that has a word of a definition.
  static func damage(_ store: FilePath, to place: FilePath, pageSize: Int = 4096) throws {
    var bytes = try FileSystem().contents(of: store, limit: 1 << 28)
    let words = Array("CREATE ".utf8)
    for start in stride(from: 0, to: bytes.count, by: pageSize) {
      let page = Array(bytes[start..<min(start + pageSize, bytes.count)])
      let isSchema = page.indices.dropLast(words.count).contains { page[$0...].starts(with: words) }
      guard start == 0 || isSchema else { continue }
      for offset in page.indices { bytes[start + offset] = 0 }
    }
    try FileSystem().writeAtomically(bytes, to: place, replacing: true)
  }

  /// Makes a table again with its columns behind the third in another order, and leaves no trace of the old one.
  static func reorder(_ table: String, _ queue: DatabaseQueue, by order: ([String]) -> [String]) throws {
    try queue.writeWithoutTransaction { database in
      let columns = try Row.fetchAll(database, sql: "SELECT name, type FROM pragma_table_info(?)", arguments: [table])
      let types = Dictionary(columns.map { ($0[0] as String, $0[1] as String) }) { first, _ in first }
      let names = columns.map { $0[0] as String }
      let new = Array(names.prefix(3)) + order(Array(names.dropFirst(3)))
      let indexes = try String.fetchAll(
        database, sql: "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL",
        arguments: [table])
      let list = new.map { "\($0) \(types[$0] ?? "")\($0 == "Z_PK" ? " PRIMARY KEY" : "")" }
      try database.execute(
        sql: """
          ALTER TABLE \(table) RENAME TO before_it; CREATE TABLE \(table) (\(list.joined(separator: ", ")));
          INSERT INTO \(table) (\(new.joined(separator: ", "))) SELECT \(new.joined(separator: ", ")) FROM before_it;
          DROP TABLE before_it
          """)
      for index in indexes { try database.execute(sql: index) }
    }
  }

  /// Gives the entities of a store other numbers, in rows and in names, as another writer might have.
  static func renumber(_ queue: DatabaseQueue, _ numbers: [Int: Int]) throws {
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA legacy_alter_table = 1")
      let tables = try String.fetchAll(
        database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'Z%' ORDER BY 1")
      func renamed(_ name: String) -> String {
        for prefix in ["Z_FOK_", "Z_", "Z"] where name.hasPrefix(prefix) {
          let digits = name.dropFirst(prefix.count).prefix { $0.isNumber }
          guard let number = Int(digits), let new = numbers[number] else { continue }
          return prefix + "\(new)" + name.dropFirst(prefix.count + digits.count)
        }
        return name
      }
      let cases = numbers.sorted { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
      for table in tables {
        let columns = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
        for column in columns {
          let isEntity = column == "Z_ENT" || column.wholeMatch(of: /Z[0-9]+_.*/) != nil
          if isEntity, table != "Z_PRIMARYKEY" {
            try database.execute(sql: "UPDATE \(table) SET \(column) = CASE \(column) \(cases) ELSE \(column) END")
          }
          if renamed(column) != column {
            try database.execute(sql: "ALTER TABLE \(table) RENAME COLUMN \(column) TO \(renamed(column))")
          }
        }
        if renamed(table) != table {
          try database.execute(sql: "ALTER TABLE \(table) RENAME TO \(renamed(table))")
        }
      }
      try database.execute(
        sql: """
          CREATE TEMP TABLE keys AS SELECT CASE Z_ENT \(cases) ELSE Z_ENT END AS e, Z_NAME AS n,
            CASE Z_SUPER \(cases) ELSE Z_SUPER END AS s, Z_MAX AS m FROM Z_PRIMARYKEY;
          DELETE FROM Z_PRIMARYKEY; INSERT INTO Z_PRIMARYKEY SELECT * FROM temp.keys
          """)
    }
  }
}
