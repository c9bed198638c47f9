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

/// A set of page numbers, one bit for each page up to the highest one in it.
package struct PageSet: Sendable {
  private var words: [UInt64] = []

  /// How many pages are in it.
  package private(set) var count = 0

  /// An empty set.
  package init() {}

  /// Whether a page is in it.
  package func contains(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    guard word < words.count else { return false }
    return words[word] & (1 << UInt64(page & 63)) != 0
  }

  /// Puts a page in, and returns whether it was new.
  ///
  /// Memory grows to an eighth of a byte per page number, so callers check first that the page exists in the file.
  package mutating func insert(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: max(word + 1, words.count &* 2) - words.count))
    }
    let bit: UInt64 = 1 << UInt64(page & 63)
    guard words[word] & bit == 0 else { return false }
    words[word] |= bit
    count += 1
    return true
  }
}

/// The findings of one piece of work: all are counted, and the first ones kept.
///
/// A hostile file can hold a flaw per byte; memory stays bounded because only ``limit`` findings are stored.
public struct Findings: Sendable {
  /// How many findings are kept at most.
  public let limit: Int

  /// The findings that were kept, in the order they were met.
  public private(set) var items: [Finding] = []

  /// How many findings there were of each kind, kept or not.
  public private(set) var counts: [Finding.Kind: Int] = [:]

  /// An empty list that keeps up to `limit` findings.
  public init(limit: Int = 1000) {
    self.limit = max(0, limit)
  }

  /// How many findings there were, kept or not.
  public var total: Int { counts.values.reduce(0, &+) }

  /// Whether nothing at all was found.
  public var isEmpty: Bool { counts.isEmpty }

  /// Whether any finding means that content is damaged, and is not just worth knowing.
  public var hasDamage: Bool { counts.keys.contains { $0.severity == .damage } }

  /// How many findings of damage there were of each kind, kept or not.
  package var damage: [Finding.Kind: Int] { counts.filter { $0.key.severity == .damage } }

  /// Whether a finding of this kind was met.
  public func contains(_ kind: Finding.Kind) -> Bool { counts[kind] != nil }

  /// How many findings of this kind were met.
  public func count(of kind: Finding.Kind) -> Int { counts[kind] ?? 0 }

  /// Adds a finding.
  public mutating func append(_ finding: Finding) {
    counts[finding.kind, default: 0] &+= 1
    if items.count < limit { items.append(finding) }
  }

  /// Adds all findings of another list; what that one had only counted is counted.
  public mutating func append(contentsOf other: Findings) {
    for (kind, count) in other.counts { counts[kind, default: 0] &+= count }
    items.append(contentsOf: other.items.prefix(max(0, limit - items.count)))
  }

  mutating func note(
    _ kind: Finding.Kind, page: UInt32? = nil, cell: Int? = nil, root: UInt32? = nil, expected: Int64? = nil,
    found: Int64? = nil
  ) {
    append(Finding(kind, page: page, cell: cell, root: root, expected: expected, found: found))
  }
}
