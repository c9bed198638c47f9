package import GRDB

/// SQLite's own check of a database or a table, with trouble of reading told from damage.
///
/// `PRAGMA integrity_check` gives an error of reading as a line of text among the others, where every other statement
/// fails with its code.
package enum IntegrityCheck {
  /// The lines that SQLite gives, `ok` alone for a sound database.
  ///
  /// - Parameters:
  ///   - table: the table to be checked with its indexes; the whole database if nil.
  ///   - limit: the most lines.
  /// - Throws: `DatabaseError` of the environment where a page could not be read.
  package static func lines(of database: Database, table: String? = nil, limit: Int = 100) throws -> [String] {
    let first = try ask(database, table, limit)
    guard first != sound else { return first }
    // Damage is there at a second look too, whatever its lines say.
    try database.execute(sql: "PRAGMA shrink_memory")
    guard try ask(database, table, limit) != sound else { throw DatabaseError(resultCode: .SQLITE_IOERR) }
    return first
  }

  private static let sound = ["ok"]

  private static func ask(_ database: Database, _ table: String?, _ limit: Int) throws -> [String] {
    let lines =
      if let table {
        try String.fetchAll(
          database, sql: "SELECT integrity_check FROM pragma_integrity_check(?) LIMIT \(limit)", arguments: [table])
      } else {
        try String.fetchAll(database, sql: "PRAGMA integrity_check(\(limit))")
      }
    for code in lines.compactMap(resultCode(in:)) where ResultCodeCause(code).isEnvironmental {
      throw DatabaseError(resultCode: code)
    }
    return lines
  }

  /// The result code that a line quotes: `unable to get the page. error code=522`.
  package static func resultCode(in line: String) -> ResultCode? {
    let words = line.split { $0 == " " || $0 == "=" }
    guard let place = words.lastIndex(of: "code"), place > 0, words[place - 1] == "error", place + 1 < words.count,
      let code = Int32(words[place + 1])
    else { return nil }
    return ResultCode(rawValue: code)
  }
}
