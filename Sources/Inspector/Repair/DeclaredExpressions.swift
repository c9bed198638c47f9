import HTTPServer
import PersistentStore
import Platform
import SQLiteFormat

/// The schema expressions SQLite would evaluate while a repair writes rows, unless they are the model's.
///
/// The inspector runs no code that a store declares (see `HOSTILE_CONTENT.md`), so the schema is read without SQLite.
enum DeclaredExpressions {
  /// Why a copy isn't repaired here; nil if no declared expression would run.
  ///
  /// - Parameter command: the equivalent command.
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

  /// Whether an index is partial or on an expression, unlike the model's.
  private static func computes(_ entry: SchemaEntry, _ conditions: Set<String>) -> Bool {
    // An automatic index has no statement or expression.
    guard entry.sql != nil else { return false }
    guard let index = entry.indexDefinition else { return true }
    if index.columns.contains(where: { $0.name == nil }) { return true }
    return index.condition.map { !conditions.contains($0) } ?? false
  }

  /// Whether a statement has an expression's keyword, even in a quoted name.
  private static func declares(_ sql: String?) -> Bool {
    guard let sql else { return true }
    var rest = sql.utf8[...]
    while let start = rest.firstIndex(where: isWordByte) {
      let end = rest[start...].firstIndex { !isWordByte($0) } ?? rest.endIndex
      let word = rest[start..<end]
      rest = rest[end...]
      // The longest keyword has 9 letters.
      guard word.count <= 9 else { continue }
      switch String(decoding: word, as: UTF8.self).uppercased() {
      case "CHECK", "GENERATED", "AS": return true
      case "DEFAULT":
        // A literal or parentheses follow, perhaps after a comment.
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
