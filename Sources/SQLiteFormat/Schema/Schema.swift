/// The readable rows of `sqlite_schema`.
public struct Schema: Sendable {
  /// The entries in rowid order.
  public var entries: [SchemaEntry]

  /// The damage of the schema's own table.
  public var findings: Findings

  /// The tables, including virtual ones.
  public var tables: [SchemaEntry] { entries.filter { $0.kind == .table } }

  /// The indexes, including automatic ones.
  public var indexes: [SchemaEntry] { entries.filter { $0.kind == .index } }

  /// Returns a table by name, ignoring ASCII case.
  public func table(named name: String) -> SchemaEntry? {
    entries.first { $0.kind == .table && isSameName($0.name, name) }
  }

  /// Returns a table's indexes.
  public func indexes(ofTable name: String) -> [SchemaEntry] {
    entries.filter { $0.kind == .index && isSameName($0.tableName, name) }
  }
}

extension Database {
  /// Reads the schema.
  ///
  /// An entry that repeats a root page gets 0, with a finding. Reads at most 65,536 entries with 64 MiB of statements.
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
      if case .text(let sql)? = row.record.value(at: 4), !sql.isValid {
        malformed.note(.schemaRowMalformed, page: row.page, cell: row.cell)
      }
      if entry.rootPage == 1 || entry.rootPage > highestPage {
        malformed.note(.schemaRootInvalid, page: row.page, cell: row.cell, found: Int64(entry.rootPage))
      } else if entry.rootPage != 0, !roots.insert(entry.rootPage) {
        // Otherwise a caller might read one tree thousands of times.
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

/// SQLite ignores ASCII case.
func isSameName(_ first: String, _ second: String) -> Bool {
  first.utf8.elementsEqual(second.utf8) { lowercased($0) == lowercased($1) }
}

func lowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
