internal import Platform
package import SQLiteFormat

extension Examiner {
  func checkPages(
    of database: Database, _ schema: Schema, into examination: inout Examination, _ options: Options,
    _ visitor: (any PageVisitor)? = nil
  ) throws(FileError) {
    let columns = options.countsRecords ? Self.entityColumns(of: schema, examination) : [:]
    let indexes = visitor == nil ? try IndexCheck(database, schema) : nil
    var report = try database.checkIntegrity(
      countingBy: columns, visitor: visitor ?? indexes, progress: options.progress)
    if examination.kind == .coreData { report.noteCopies() }
    examination.health.depth = .full
    examination.health.integrity = report
    examination.health.add(report.findings)
    guard report.isSound else {
      distrustIndexes(&examination)
      let indexes = report.findings.indexesAlone(of: schema)
      examination.markDamaged(indexes.map { .damagedIndexes($0, report.findings) } ?? .damagedPages(report))
      return
    }
    // Another visitor compares the indexes itself.
    guard let indexes else { return }
    let total = Int(database.highestPage)
    var compared = try indexes.finish { options.progress(total, total) }
    if !examination.isSchemaRefused {
      try compared.askSQLite(about: schema, of: DatabaseContent(database)) { !options.progress(total, total) }
      examination.noteUncompared(compared.uncompared, of: schema)
    }
    guard !compared.isSound else { return }
    distrustIndexes(&examination)
    examination.health.add(compared.findings)
    examination.markDamaged(
      .damagedIndexes(compared.findings.indexesAlone(of: schema) ?? [], compared.findings))
  }

  /// Counts every entity's records or table's rows; damage triggers a full check.
  func count(
    _ database: Database, _ schema: Schema, into examination: inout Examination, _ options: Options
  ) throws(FileError) {
    try count(database, schema, into: &examination)
    noteEntityNumbers(&examination)
    guard examination.health.isDamaged, examination.health.integrity == nil else { return }
    var options = options
    options.countsRecords = false
    try checkPages(of: database, schema, into: &examination, options)
  }

  private func count(
    _ database: Database, _ schema: Schema, into examination: inout Examination
  ) throws(FileError) {
    var counted: [String: [Int64?: Int]?] = [:]
    examination.entities = []
    defer {
      for (table, rows) in counted {
        guard let rows else { continue }
        let isNullSeen = schema.table(named: table)?.tableDefinition.map(Self.hasLocalEntityNumbers) ?? false
        examination.countedNumbers[table] = Set(rows.keys.filter { $0 != nil || isNullSeen })
      }
    }
    var numbering: EntityNumbering?
    if let model = examination.storeModel, let layout = Self.layout(of: model) {
      numbering = EntityNumbering(layout, examination.outline?.keyRows ?? [])
    }
    for counting in Self.countings(of: schema, examination) {
      var entity = EntityCount(name: counting.name, table: counting.table)
      if let table = schema.table(named: counting.table), table.rootPage > 0 {
        if counted[table.name] == nil {
          counted[table.name] = .some(try counts(of: table, counting.root != nil, database, &examination.health))
        }
        // Only a whole table gives a true count.
        if let rows = counted[table.name] ?? nil {
          if let root = counting.root, let share = numbering?.share(of: rows, root: root) {
            // A number outside its page is unknown.
            let isSeen = !rows.keys.contains(nil) || table.tableDefinition.map(Self.hasLocalEntityNumbers) == true
            let isTold = (isSeen || share.ofNone == 0) && !share.contested.contains(counting.name)
            entity.rows = isTold ? Int64(share.rows[counting.name] ?? 0) : nil
            if isSeen, share.ofNone > 0 { examination.rowsOfNoEntity[counting.table] = share.ofNone }
          } else {
            entity.rows = Int64(rows.values.reduce(0, +))
          }
        }
      } else if examination.drift != nil, schema.table(named: counting.table) == nil {
        // The rest of the schema is readable and lacks the table.
        entity.rows = 0
      }
      examination.entities.append(entity)
    }
    examination.noteRowsOfNoEntity()
  }

  /// Returns a table's rows by entity, or all under nil; nil if incomplete.
  private func counts(
    of table: SchemaEntry, _ byEntity: Bool, _ database: Database, _ health: inout Health
  ) throws(FileError) -> [Int64?: Int]? {
    // Such a table is an index b-tree with another column order: rows are only counted.
    if byEntity, table.tableDefinition?.isWithoutRowid == true { return nil }
    let trees = health.integrity?.isSound == true ? health.integrity?.trees ?? [] : []
    if let tree = trees.first(where: { $0.root == table.rootPage }) {
      return byEntity ? tree.counts : [nil: tree.rows]
    }
    guard byEntity else {
      let counted = try database.countRows(root: table.rootPage)
      health.add(counted.findings)
      return counted.findings.hasDamage ? nil : [nil: counted.count]
    }
    guard let column = table.tableDefinition?.column(named: "Z_ENT") else { return nil }
    let counted = try database.countRows(root: table.rootPage, byIntegerIn: column)
    health.add(counted.findings)
    return counted.findings.hasDamage ? nil : counted.counts
  }

  /// Returns whether entity numbers always lie on the row's page, so that an unseen one is NULL.
  ///
  /// A record header has a few bytes per column, and on a page of 4,096 bytes at least 489 bytes of a record fit.
  static func hasLocalEntityNumbers(_ table: TableDefinition) -> Bool {
    guard let column = table.column(named: "Z_ENT") else { return false }
    return column <= 2 && table.columns.count <= 100
  }

  private struct Counting {
    let name: String
    let table: String

    var root: EntityLayout?
  }

  private static func entityColumns(of schema: Schema, _ examination: Examination) -> [UInt32: Int] {
    var columns: [UInt32: Int] = [:]
    for counting in countings(of: schema, examination) where counting.root != nil {
      guard let table = schema.table(named: counting.table), table.rootPage > 0 else { continue }
      columns[table.rootPage] = table.tableDefinition?.column(named: "Z_ENT")
    }
    return columns
  }

  /// Returns the uncounted entities of Core Data stores or tables of others.
  static func entities(of schema: Schema, _ examination: Examination) -> [EntityCount] {
    countings(of: schema, examination).map { .init(name: $0.name, table: $0.table) }
  }

  private static func countings(of schema: Schema, _ examination: Examination) -> [Counting] {
    var countings: [Counting] = []
    if examination.kind == .coreData, let model = examination.storeModel, let layout = layout(of: model) {
      countings = layout.entities.map { entity in
        Counting(name: entity.name, table: entity.tableName, root: layout.entity(named: entity.rootName))
      }
    } else {
      // Shadow tables count once, under their virtual table.
      var shadows: [String: String?] = [:]
      for entry in schema.tables {
        guard let module = entry.tableDefinition?.module else { continue }
        for name in ShadowTables.names(of: entry.name, module: module) { shadows[name] = .some(nil) }
        if let rows = ShadowTables.rows(of: entry.name, module: module) { shadows[rows] = entry.name }
      }
      for table in schema.tables where !table.name.hasPrefix("sqlite_") && table.rootPage > 0 {
        if let virtual = shadows[table.name.lowercased()] {
          if let virtual { countings.append(Counting(name: virtual, table: table.name)) }
          continue
        }
        let isBookkeeping = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(table.name)
        if examination.kind == .coreData, isBookkeeping { continue }
        countings.append(Counting(name: table.name, table: table.name))
      }
    }
    return countings.ordered { $0.name < $1.name }
  }
}

extension Examination {
  fileprivate mutating func noteUncompared(_ indexes: [String], of schema: Schema) {
    guard !indexes.isEmpty else { return }
    unchecked += indexes.sorted().map { Unchecked(kind: .index, name: $0) }
    let names = Self.list(indexes.sorted())
    var words =
      "the entries of \(counted(Int64(indexes.count), "index", "indexes")) could not be compared with the rows of their tables: \(names)"
    let functions = Set(
      schema.indexes.filter { indexes.contains($0.name) }.compactMap { $0.indexDefinition?.foreignFunction })
    if !functions.isEmpty {
      words +=
        "; only the app has the \(functions.count == 1 ? "function" : "functions") \(Self.list(functions.sorted()))"
    }
    health.notes.append(HealthNote(Health.indexesUncompared, .note, words))
  }

  fileprivate mutating func noteRowsOfNoEntity() {
    for (table, count) in rowsOfNoEntity.ordered(by: { $0.key < $1.key }) {
      let rows = count == 1 ? "1 row" : "\(grouped(count)) rows"
      health.notes.append(
        HealthNote(
          "rows-of-no-entity", .warning,
          "\(rows) of table \(printableName(table)) \(count == 1 ? "has" : "have") the number of no entity of that table, and \(count == 1 ? "is" : "are") counted for none"
        ))
    }
  }
}

extension Findings {
  /// Returns the damaged indexes if all damage is theirs.
  package func indexesAlone(of schema: Schema) -> [String]? {
    let damage = items.filter { $0.kind.severity == .damage }
    // Damage beyond the kept items is unknown.
    guard !damage.isEmpty, items.count == total else { return nil }
    let names = Dictionary(schema.indexes.map { ($0.rootPage, $0.name) }) { first, _ in first }
    let found = damage.map { $0.root.flatMap { names[$0] } }
    return found.contains(nil) ? nil : Set(found.compactMap(\.self)).sorted()
  }
}

extension IntegrityReport {
  /// Reports a Core Data table sharing a leaf with another table: an entity number belongs to one table, and Core Data
  /// writes only into declared columns.
  fileprivate mutating func noteCopies() {
    let entities = Set(schema.tables.filter { $0.tableDefinition?.column(named: "Z_ENT") == 1 }.map(\.rootPage))
    for copy in copies {
      let stranger: LeafCopy.Place
      if entities.contains(copy.first.root), entities.contains(copy.second.root) {
        stranger = copy.stranger ?? copy.second
      } else if let strange = copy.stranger, entities.contains(strange.root) {
        stranger = strange
      } else {
        continue
      }
      guard !findings.items.contains(where: { $0.kind == .pageCopied && $0.page == stranger.page }) else { continue }
      findings.append(Finding(.pageCopied, page: stranger.page, root: stranger.root))
    }
  }
}
