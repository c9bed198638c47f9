public import Platform

/// The readable rows of `sqlite_schema`.
public struct Schema: Sendable {
  /// The entries in rowid order.
  public let entries: [SchemaEntry]

  /// The damage of the schema's own table.
  public let findings: Findings

  /// The places of the tables in the entries, by folded name.
  private let tablePlaces: [[UInt8]: Int]

  /// The places of the indexes, by their table's folded name.
  private let indexPlaces: [[UInt8]: [Int]]

  init(entries: [SchemaEntry], findings: Findings) {
    self.entries = entries
    self.findings = findings
    tablePlaces = Dictionary(
      entries.indices.filter { entries[$0].kind == .table }.map { (folded(entries[$0].name), $0) },
      uniquingKeysWith: { first, _ in first })
    indexPlaces = Dictionary(grouping: entries.indices.filter { entries[$0].kind == .index }) {
      folded(entries[$0].tableName)
    }
  }

  /// The tables, including virtual ones.
  public var tables: [SchemaEntry] { entries.filter { $0.kind == .table } }

  /// The indexes, including automatic ones.
  public var indexes: [SchemaEntry] { entries.filter { $0.kind == .index } }

  /// Returns a table by name, ignoring ASCII case.
  public func table(named name: String) -> SchemaEntry? { tablePlaces[folded(name)].map { entries[$0] } }

  /// Returns a table's indexes.
  public func indexes(ofTable name: String) -> [SchemaEntry] {
    indexPlaces[folded(name), default: []].map { entries[$0] }
  }
}

extension Database {
  /// Reads the schema.
  ///
  /// An entry that repeats a root page gets 0, with a finding. Reads at most 65,536 entries with 64 MiB of statements.
  public func schema() throws(FileError) -> Schema {
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

/// A name as SQLite compares it.
func folded(_ name: String) -> [UInt8] { name.utf8.map(lowercased) }

func lowercased(_ byte: UInt8) -> UInt8 { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte }

/// A row of `sqlite_schema`: a table, index, view or trigger.
public struct SchemaEntry: Sendable, Hashable {
  /// The kind of an entry.
  public enum Kind: String, Sendable, Hashable { case table, index, view, trigger }

  /// The kind.
  public var kind: Kind { didSet { cache = DefinitionCache() } }

  /// The name.
  public var name: String { didSet { cache = DefinitionCache() } }

  /// The table that it belongs to; its own name for tables and views.
  public var tableName: String { didSet { cache = DefinitionCache() } }

  /// The b-tree's root page; 0 for views, triggers and virtual tables.
  public var rootPage: UInt32 { didSet { cache = DefinitionCache() } }

  /// The creating statement; nil for automatic indexes.
  public var sql: String? { didSet { cache = DefinitionCache() } }

  /// The rowid.
  public var rowid: Int64

  private var cache = DefinitionCache()

  /// Creates an entry.
  public init(kind: Kind, name: String, tableName: String, rootPage: UInt32, sql: String?, rowid: Int64 = 0) {
    self.kind = kind
    self.name = name
    self.tableName = tableName
    self.rootPage = rootPage
    self.sql = sql
    self.rowid = rowid
  }

  /// The table's definition, if readable.
  ///
  /// A damaged statement is read if the table has a b-tree, with the entry's name.
  public var tableDefinition: TableDefinition? {
    guard kind == .table, let sql else { return nil }
    return cache.definition { readDefinition(sql) }
  }

  private func readDefinition(_ sql: String) -> TableDefinition? {
    var definition = TableDefinition(sql: sql)
    if definition == nil, rootPage > 0 { definition = TableDefinition(damagedSQL: sql, name: name) }
    if name == tableName { definition?.name = name }
    return definition
  }

  /// The index's definition; nil for automatic indexes.
  public var indexDefinition: IndexDefinition? { kind == .index ? sql.flatMap { IndexDefinition(sql: $0) } : nil }
}

/// A definition read once; it plays no part in an entry's equality.
private final class DefinitionCache: Sendable, Hashable {
  private let content = Mutex<TableDefinition??>(nil)

  func definition(_ read: () -> TableDefinition?) -> TableDefinition? {
    if let known = content.withLock(\.self) { return known }
    let definition = read()
    content.withLock { $0 = .some(definition) }
    return definition
  }

  static func == (_: DefinitionCache, _: DefinitionCache) -> Bool { true }

  func hash(into _: inout Hasher) {}
}

extension SchemaEntry {
  /// SQLite's default limit.
  static let maximumSQLLength = 1_000_000

  /// Reads a row of `sqlite_schema`; nil if invalid.
  public init?(_ record: Record, rowid: Int64) {
    let values = record.values
    guard values.count >= 5, let kind = values[0].string.flatMap(Kind.init(rawValue:)), let name = values[1].string,
      let tableName = values[2].string
    else { return nil }
    let root: UInt32
    switch values[3] {
    case .integer(let page) where page >= 0 && page <= Int64(UInt32.max): root = UInt32(page)
    case .null: root = 0
    case .integer, .real, .text, .blob: return nil
    }
    switch values[4] {
    case .text(let text) where text.bytes.count <= SchemaEntry.maximumSQLLength:
      self.init(kind: kind, name: name, tableName: tableName, rootPage: root, sql: text.string, rowid: rowid)
    case .null: self.init(kind: kind, name: name, tableName: tableName, rootPage: root, sql: nil, rowid: rowid)
    case .integer, .real, .text, .blob: return nil
    }
  }
}
