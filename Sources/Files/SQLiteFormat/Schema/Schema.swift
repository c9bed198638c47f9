/// The schema of a database: the rows of `sqlite_schema` that could be read.
public struct Schema: Sendable {
  /// The entries in the order of their rowids.
  public var entries: [SchemaEntry]

  /// What was wrong with the schema's own table.
  public var findings: Findings

  /// The tables, virtual ones included.
  public var tables: [SchemaEntry] { entries.filter { $0.kind == .table } }

  /// The indexes, automatic ones included.
  public var indexes: [SchemaEntry] { entries.filter { $0.kind == .index } }

  /// The table of a name, whose ASCII letters may be of either case.
  public func table(named name: String) -> SchemaEntry? {
    entries.first { $0.kind == .table && isSameName($0.name, name) }
  }

  /// The indexes of a table.
  public func indexes(ofTable name: String) -> [SchemaEntry] {
    entries.filter { $0.kind == .index && isSameName($0.tableName, name) }
  }
}

extension Database {
  /// Reads the schema: the table whose root is page 1.
  ///
  /// An entry whose root page is another entry's already has 0 there, with a finding. At most 65,536 entries with 64 MiB of statements are read.
  public func schema() throws(FormatError) -> Schema {
    var cursor = try rows(root: 1, payloadLimit: 2 * SchemaEntry.maximumSQLLength)
    var entries: [SchemaEntry] = []
    var malformed = Findings()
    var roots = PageSet()
    var room = 64 << 20
    while let row = try cursor.next() {
      guard entries.count < 65536, room > 0 else {
        malformed.note(.schemaTooLarge, page: row.page)
        break
      }
      room -= row.record.payload.count
      guard row.record.isComplete, var entry = SchemaEntry(row.record, rowid: row.rowid) else {
        malformed.note(.schemaRowMalformed, page: row.page, cell: row.cell)
        continue
      }
      if entry.rootPage == 1 || entry.rootPage > highestPage {
        malformed.note(.schemaRootInvalid, page: row.page, cell: row.cell, found: Int64(entry.rootPage))
      } else if entry.rootPage != 0, !roots.insert(entry.rootPage) {
        // One tree cannot be two tables; a caller that reads all tables must not read it thousands of times.
        malformed.note(.schemaRootInvalid, page: row.page, cell: row.cell, found: Int64(entry.rootPage))
        entry.rootPage = 0
      }
      entries.append(entry)
    }
    var findings = cursor.findings
    findings.append(contentsOf: malformed)
    return Schema(entries: entries, findings: findings)
  }
}

/// Whether two names are the same to SQLite, which takes no account of the case of ASCII letters.
func isSameName(_ first: String, _ second: String) -> Bool {
  first.utf8.elementsEqual(second.utf8) { lowercased($0) == lowercased($1) }
}

func lowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
