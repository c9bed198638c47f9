import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Collects a kit's content from a sound database; any damage ends the survey.
///
/// Each table page is read once, by the survey or by an integrity check that passes it on.
struct KitSurvey {
  private let database: Database
  private let hasSums: Bool
  private var seen = PageSet()

  /// The remaining rowid ranges for all tables, at 16 bytes each.
  private var rangesLeft = 1 << 20

  private var kit: RecoveryKit?

  private var plans: [Plan] = []
  private var placeOfRoot: [UInt32: Int] = [:]

  private var current: Int?
  private var collected = Collected()

  private static let maximumDepth = 20

  init(_ database: Database, sumsUpTo limit: Int64) {
    self.database = database
    hasSums = Int64(database.pageCount) * Int64(database.pageSize) <= limit
  }

  mutating func run(at date: Timestamp) throws -> RecoveryKit {
    try begin(at: date)
    for place in plans.indices {
      start(place)
      try walk(plans[place].root, depth: 0)
    }
    return try takeKit()
  }

  /// Reads everything except rows.
  mutating func begin(at date: Timestamp) throws {
    guard let header = database.header, header.hasMagic, !database.findings.hasDamage else {
      throw SalvageError.notSound("its header is damaged")
    }
    let schema = try database.schema()
    guard !schema.findings.hasDamage else { throw SalvageError.notSound("its list of tables is damaged") }
    let log = database.isLogApplied ? database.writeAheadLog : nil
    let facts = RecoveryKit.FileFacts(
      pageSize: database.pageSize, reservedBytes: database.pageSize - database.usableSize,
      pageCount: database.pageCount, encoding: database.encoding, isAutoVacuum: header.isAutoVacuum,
      usesWriteAheadLog: header.usesWriteAheadLog, changeCounter: header.changeCounter,
      schemaCookie: header.schemaCookie,
      log: log.flatMap { log in
        log.header.map {
          RecoveryKit.LogMark(salt1: $0.salt1, salt2: $0.salt2, frames: UInt32(clamping: log.committedFrameCount))
        }
      })
    var kit = RecoveryKit(
      date: Timestamp(secondsSince1970: date.secondsSince1970), storeUUID: nil, versionHashes: [:], file: facts,
      entries: [], tables: [])
    kit.entries = schema.entries.map {
      RecoveryKit.Entry(
        kind: $0.kind.rawValue, name: $0.name, tableName: $0.tableName, root: $0.rootPage, sql: $0.sql)
    }
    try addMetadata(schema, to: &kit)
    self.kit = kit
    plan(schema)
  }

  private mutating func plan(_ schema: Schema) {
    plans = [Plan(name: "sqlite_schema", root: 1, hasRowids: true, hasEntities: false)]
    for entry in schema.tables where entry.rootPage > 0 {
      guard let definition = entry.tableDefinition, !definition.isVirtual else { continue }
      let stored = definition.storedColumns
      // Core Data's tables begin with the primary key, which aliases the rowid, and the entity number.
      let isEntity =
        stored.count > 1 && stored.first == definition.rowidAlias
        && definition.columns[stored[1]].name.uppercased() == "Z_ENT"
      plans.append(
        Plan(
          name: entry.name, root: entry.rootPage, hasRowids: !definition.isWithoutRowid, hasEntities: isEntity))
    }
    for (place, plan) in plans.enumerated() where placeOfRoot[plan.root] == nil { placeOfRoot[plan.root] = place }
  }

  /// Adds a page from an integrity check; ignores index pages.
  mutating func visit(_ page: BTreePage, ofTree root: UInt32) throws {
    if current.map({ plans[$0].root }) != root {
      guard let place = placeOfRoot[root] else { return }
      start(place)
    }
    try take(page.bytes.span, page.number)
  }

  mutating func takeKit() throws -> RecoveryKit {
    close()
    guard let kit, kit.tables.count == plans.count else { throw SalvageError.notSound("a table was not read") }
    return kit
  }

  private func addMetadata(_ schema: Schema, to kit: inout RecoveryKit) throws {
    guard let entry = schema.table(named: "Z_METADATA"), entry.rootPage > 0, let definition = entry.tableDefinition
    else { return }
    var rows = try database.rows(root: entry.rootPage, payloadLimit: 64 << 20)
    guard let row = try rows.next() else { return }
    let values = definition.values(of: row)
    guard let uuid = definition.column(named: "Z_UUID"), values.indices.contains(uuid),
      let list = definition.column(named: "Z_PLIST"), values.indices.contains(list)
    else { return }
    kit.storeUUID = values[uuid].string
    // The examination reports unreadable metadata; the kit is useful without it.
    let metadata = try? StoreMetadata(uuid: kit.storeUUID ?? "", propertyList: values[list].bytes ?? [])
    kit.versionHashes = metadata?.versionHashes.mapValues { Array($0.bytes) } ?? [:]
  }

  // MARK: Tables

  private struct Plan {
    let name: String
    let root: UInt32
    let hasRowids: Bool
    /// Whether the second record field is the entity number.
    let hasEntities: Bool
  }

  private struct Collected {
    var table = RecoveryKit.Table(name: "", root: 0, hasRowids: true, leaves: [], sums: [], rows: 0, groups: [])
    var hasEntities = false
    var entities: [Int64] = []
    var keys: [KeyRanges] = []
    var counts: [Int64] = []
    var lastKey: Int64?
  }

  private mutating func start(_ place: Int) {
    close()
    current = place
    let plan = plans[place]
    collected = Collected(
      table: .init(
        name: plan.name, root: plan.root, hasRowids: plan.hasRowids, leaves: [], sums: [], rows: 0, groups: []),
      hasEntities: plan.hasEntities)
  }

  private mutating func close() {
    guard current != nil else { return }
    current = nil
    let ranges = collected.keys.reduce(0) { $0 + $1.ranges.count }
    let isListed = collected.table.hasRowids && ranges <= rangesLeft
    if isListed { rangesLeft -= ranges }
    collected.table.groups = collected.entities.indices.map { place in
      RecoveryKit.Group(
        entity: collected.entities[place], rows: collected.counts[place], keys: isListed ? collected.keys[place] : nil)
    }.ordered { $0.entity < $1.entity }
    kit?.tables.append(collected.table)
  }

  private mutating func walk(_ number: UInt32, depth: Int) throws {
    guard number > 0, number <= database.pageCount, depth < Self.maximumDepth, seen.insert(number) else {
      throw SalvageError.notSound("a page is missing from a table, or part of two")
    }
    let found = try database.page(number)
    guard let page = found, page.presentCount == database.pageSize else {
      throw SalvageError.notSound("a page of a table is missing")
    }
    try take(page.bytes.span, number)
    try walkChildren(of: page, depth: depth)
  }

  private mutating func take(_ bytes: Span<UInt8>, _ number: UInt32) throws {
    let start = number == 1 ? DatabaseHeader.length : 0
    guard let kind = PageKind(rawValue: bytes[start]), kind.isTable == collected.table.hasRowids,
      let count = bytes.uint16(at: start + 3), count <= (database.usableSize - 8) / 4
    else { throw SalvageError.notSound("a page of a table is of another kind") }
    if kind.isLeaf || !kind.isTable {
      collected.table.leaves.append(number)
      if hasSums { collected.table.sums.append(PageSum.of(bytes)) }
    }
    if kind == .tableLeaf {
      try read(bytes, start + kind.headerLength, count)
    } else if !kind.isTable {
      add(Int64(count))
    }
  }

  private mutating func walkChildren(of page: Page, depth: Int) throws {
    let bytes = page.bytes.span
    let start = page.number == 1 ? DatabaseHeader.length : 0
    guard let kind = PageKind(rawValue: bytes[start]), !kind.isLeaf, let count = bytes.uint16(at: start + 3) else {
      return
    }
    let pointers = start + kind.headerLength
    for index in 0..<count {
      guard let offset = bytes.uint16(at: pointers + 2 * index), let child = bytes.uint32(at: offset) else {
        throw SalvageError.notSound("a page of a table cannot be read")
      }
      try walk(child, depth: depth + 1)
    }
    guard let last = bytes.uint32(at: start + 8) else {
      throw SalvageError.notSound("a page of a table cannot be read")
    }
    try walk(last, depth: depth + 1)
  }

  private mutating func add(_ rows: Int64) {
    collected.table.rows += rows
    if collected.counts.isEmpty {
      collected.entities.append(0)
      collected.keys.append(KeyRanges())
      collected.counts.append(0)
    }
    collected.counts[0] += rows
  }

  private mutating func read(
    _ bytes: Span<UInt8>, _ pointers: Int, _ count: Int
  ) throws {
    let hasEntities = collected.hasEntities
    let end = min(database.usableSize, bytes.count)
    var place = collected.entities.count - 1
    var previous = collected.lastKey
    for index in 0..<count {
      guard var offset = bytes.uint16(at: pointers &+ 2 &* index),
        Varint.read(bytes, at: &offset, before: end) != nil,
        let key = Varint.read(bytes, at: &offset, before: end)
      else { throw SalvageError.notSound("a row cannot be read") }
      if let previous, key <= previous { throw SalvageError.notSound("the rowids of a table are out of order") }
      previous = key
      let entity = hasEntities ? Self.entity(bytes, at: offset, before: end) : 0
      if place < 0 || collected.entities[place] != entity {
        if let known = collected.entities.firstIndex(of: entity) {
          place = known
        } else {
          place = collected.entities.count
          guard place < 4096 else { throw SalvageError.notSound("a table has rows of too many entities") }
          collected.entities.append(entity)
          collected.keys.append(KeyRanges())
          collected.counts.append(0)
        }
      }
      collected.counts[place] &+= 1
      if collected.keys[place].ranges.count <= rangesLeft { collected.keys[place].append(key) }
    }
    collected.lastKey = previous
    collected.table.rows += Int64(count)
  }

  /// The integer in a record's second field if the first is NULL, else 0.
  @inline(__always)
  private static func entity(_ bytes: Span<UInt8>, at start: Int, before end: Int) -> Int64 {
    var offset = start
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 2, header < 4096,
      let first = Varint.read(bytes, at: &offset, before: end), first == 0,
      let code = Varint.read(bytes, at: &offset, before: end)
    else { return 0 }
    switch code {
    case 9: return 1
    case 1...6:
      return bytes.signedInteger(at: start &+ Int(header), length: code < 5 ? Int(code) : code == 5 ? 6 : 8) ?? 0
    default: return 0
    }
  }
}
