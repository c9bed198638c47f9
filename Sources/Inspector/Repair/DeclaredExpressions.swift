import HTTPServer
import PersistentStore
import Platform
import SQLiteFormat

/// What of a store's schema SQLite would evaluate where a repair writes rows: checks, generated columns, defaults and indexes
/// with expressions that are none of the model's.
///
/// The inspector runs nothing that a store declares; see `HOSTILE_CONTENT.md`. It is read without SQLite.
enum DeclaredExpressions {
  /// Why a copy of a store is not repaired by the inspector; nil where a repair would run nothing that the store declares.
  ///
  /// - Parameter command: what does the same for the app.
  static func problem(
    of files: StoreFileSet, _ layout: StoreLayout, in fileSystem: FileSystem, command: String
  ) throws -> Problem? {
    let tables = try tables(of: files, layout, in: fileSystem)
    guard let first = tables.first else { return nil }
    let others = tables.count == 1 ? "" : " and \(Words.counted(tables.count - 1, "other table"))"
    return Problem(
      .conflict, code: "schema-expressions", title: "Not from here.",
      detail: """
        Table \(printable(String(first.prefix(DriftList.maximumLength))))\(others) declares checks, generated columns, \
        defaults or indexes with expressions of its own, which a repair would run; the inspector runs none.
        """,
      hint: "Use the command, which stands for the app: \(command).")
  }

  /// The names of the tables of a model, and of the bookkeeping, that declare such expressions.
  static func tables(
    of files: StoreFileSet, _ layout: StoreLayout, in fileSystem: FileSystem
  ) throws -> [String] {
    let schema = try schema(of: files, in: fileSystem)
    let written = layout.tables.map(\.name) + layout.joinTables.map(\.name) + StoreLayout.bookkeepingTableNames
    let names = Set(written.map { $0.uppercased() })
    let conditions = Set(layout.indexes.compactMap { IndexDefinition(sql: $0.statement)?.condition })
    var found: Set<String> = []
    for entry in schema.entries where names.contains(entry.tableName.uppercased()) {
      switch entry.kind {
      case .table where declares(entry.sql): found.insert(entry.tableName)
      case .index where computes(entry, conditions): found.insert(entry.tableName)
      case .table, .index, .view, .trigger: continue
      }
    }
    return found.sorted()
  }

  private static func schema(of files: StoreFileSet, in fileSystem: FileSystem) throws -> Schema {
    func part(_ part: StoreFileSet.Part) throws -> (any ByteSource)? {
      guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
      let file = try fileSystem.open(files.path(of: part))
      return file.count > 0 ? file : nil
    }
    return try Database(
      main: try fileSystem.open(files.main), writeAheadLog: try part(.wal), rollbackJournal: try part(.journal)
    ).schema()
  }

  /// Whether an index is partial or of an expression, and not as the model has one.
  private static func computes(_ entry: SchemaEntry, _ conditions: Set<String>) -> Bool {
    // An automatic index has no statement, and no expression.
    guard entry.sql != nil else { return false }
    guard let index = entry.indexDefinition else { return true }
    if index.columns.contains(where: { $0.name == nil }) { return true }
    return index.condition.map { !conditions.contains($0) } ?? false
  }

  /// Whether the statement of a table has a word by which expressions begin; one in a quoted name counts too.
  private static func declares(_ sql: String?) -> Bool {
    guard let sql else { return true }
    var rest = sql.utf8[...]
    while let start = rest.firstIndex(where: isWordByte) {
      let end = rest[start...].firstIndex { !isWordByte($0) } ?? rest.endIndex
      let word = rest[start..<end]
      rest = rest[end...]
      // No word that is looked for is longer.
      guard word.count <= 9 else { continue }
      switch String(decoding: word, as: UTF8.self).uppercased() {
      case "CHECK", "GENERATED", "AS": return true
      case "DEFAULT":
        // What follows is a literal, or stands in parentheses, maybe behind a comment.
        let value = rest.drop { $0 == 0x20 || (9...13).contains($0) }
        if value.first == UInt8(ascii: "(") || value.first == UInt8(ascii: "/") || value.starts(with: "--".utf8) {
          return true
        }
      default: continue
      }
    }
    return false
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }
}
