import ManagedObjectModel
import Platform
import SQLiteFormat

extension Examiner {
  /// Compares schema, bookkeeping and each table's first and last row with the metadata's model.
  ///
  /// A schema damaged or refused by SQLite is skipped: missing parts may exist.
  ///
  /// - Parameter cached: the store's own model, whether or not the metadata names it.
  func compare(
    _ database: Database, _ schema: Schema, cached: ManagedObjectModel?, _ examination: inout Examination
  ) throws(FileError) {
    guard !schema.findings.hasDamage, !examination.isSchemaRefused, let model = examination.storeModel,
      let layout = Self.layout(of: model), let hashes = examination.metadata?.versionHashes
    else { return }
    var outline = Self.outline(of: schema, layout)
    if let cached { outline.cachedModel = .model(cached.versionHashes()) }
    outline.keyRows = try keyRows(database, schema, &examination.health)
    for table in layout.tables { try readEnds(of: table.name, database, schema, &outline, &examination.health) }
    examination.outlineOfTables = outline
    for table in layout.tables { try readIndexEnds(of: table.name, database, schema, &outline) }
    examination.outline = outline
    examination.take(StoreDrift(of: outline, to: layout, hashes: hashes), outline, layout)
  }

  /// Discards what damaged indexes showed about rows.
  func distrustIndexes(_ examination: inout Examination) {
    guard let outline = examination.outlineOfTables, outline != examination.outline, let model = examination.storeModel,
      let layout = Self.layout(of: model), let hashes = examination.metadata?.versionHashes
    else { return }
    examination.outline = outline
    examination.take(StoreDrift(of: outline, to: layout, hashes: hashes), outline, layout)
  }

  /// Adds numbers seen while counting, beyond the tables' ends.
  func noteEntityNumbers(_ examination: inout Examination) {
    guard var outline = examination.outline, let model = examination.storeModel, let layout = Self.layout(of: model),
      let hashes = examination.metadata?.versionHashes, !examination.countedNumbers.isEmpty
    else { return }
    for (table, numbers) in examination.countedNumbers { outline.note(numbers, in: table) }
    let drift = StoreDrift(of: outline, to: layout, hashes: hashes)
    guard drift != examination.drift || drift.isBeyondRepair(outline, layout) != examination.isBeyondRepair else {
      return
    }
    examination.take(drift, outline, layout)
    if examination.verdict == .compatible || examination.verdict == .repairable {
      examination.give(.repairable, .repairable(drift, isBeyondRepair: examination.isBeyondRepair))
    }
  }

  // MARK: What is there

  private static func outline(of schema: Schema, _ layout: StoreLayout) -> StoreOutline {
    let names = layout.tables.map(\.name) + layout.joinTables.map(\.name) + StoreLayout.bookkeepingTableNames
    let expected = Set(names.map(StoreOutline.key))
    var outline = StoreOutline()
    for entry in schema.entries {
      switch entry.kind {
      case .table: add(entry, isExpected: expected.contains(StoreOutline.key(entry.name)), to: &outline)
      case .index:
        guard expected.contains(StoreOutline.key(entry.tableName)), let index = entry.indexDefinition else { continue }
        outline.indexes.append(
          .init(
            name: entry.name, tableName: entry.tableName, isUnique: index.isUnique, isPartial: index.isPartial,
            columns: index.columns.map(\.name)))
      case .trigger: outline.triggers.append(entry.name)
      case .view: outline.views.append(entry.name)
      }
    }
    return outline
  }

  private static func add(_ entry: SchemaEntry, isExpected: Bool, to outline: inout StoreOutline) {
    guard isExpected, let definition = entry.tableDefinition else {
      let isVirtual = entry.rootPage == 0 && entry.sql?.uppercased().hasPrefix("CREATE VIRTUAL") == true
      outline.tables.append(.init(name: entry.name, columns: [], isVirtual: isVirtual))
      return
    }
    let columns = definition.columns.map { column in
      StoreOutline.Column(
        name: column.name, declaredType: column.declaredType,
        isMandatory: column.isNotNull && !column.hasDefault && column.generation == nil && !column.isPrimaryKey)
    }
    let alias = definition.rowidAlias.map { definition.columns[$0].name }
    outline.tables.append(.init(name: entry.name, columns: columns, isVirtual: definition.isVirtual, rowidAlias: alias))
    let keys = definition.rowidAlias == nil && !definition.primaryKey.isEmpty ? [definition.primaryKey] : []
    for (place, key) in (keys + definition.uniqueConstraints).enumerated() {
      outline.indexes.append(
        .init(
          name: "sqlite_autoindex_\(entry.name)_\(place + 1)", tableName: entry.name, isUnique: true,
          isPartial: false, columns: key))
    }
  }

  /// A model has far fewer entities.
  private static let keyRowLimit = 65536

  /// Returns `Z_PRIMARYKEY` rows; nil if incomplete or in an index b-tree.
  ///
  /// Missing columns give nil, a missing number column no rows.
  private func keyRows(
    _ database: Database, _ schema: Schema, _ health: inout Health
  ) throws(FileError) -> [StoreOutline.KeyRow]? {
    guard let table = schema.table(named: "Z_PRIMARYKEY"), table.rootPage > 0, let definition = table.tableDefinition,
      !definition.isWithoutRowid
    else { return nil }
    guard let number = definition.column(named: "Z_ENT") else { return [] }
    let (name, parent, maximum) = (
      definition.column(named: "Z_NAME"), definition.column(named: "Z_SUPER"), definition.column(named: "Z_MAX")
    )
    var rows = try database.rows(root: table.rootPage, payloadLimit: 1 << 16)
    var result: [StoreOutline.KeyRow] = []
    while let row = try rows.next() {
      guard result.count < Self.keyRowLimit else { return nil }
      let values = definition.values(of: row)
      guard let entity = values[number].integer else { continue }
      result.append(
        .init(
          number: entity, name: name.flatMap { values[$0].string }, parentNumber: parent.flatMap { values[$0].integer },
          maximum: maximum.flatMap { values[$0].integer }))
    }
    health.add(rows.findings)
    return rows.findings.hasDamage ? nil : result
  }

  /// Reads a table's highest key and the entity numbers at both ends.
  private func readEnds(
    of name: String, _ database: Database, _ schema: Schema, _ outline: inout StoreOutline, _ health: inout Health
  ) throws(FileError) {
    guard let (table, definition) = Self.keyedTable(name, schema) else { return }
    var rows = try database.rows(root: table.rootPage, payloadLimit: 512)
    let first = try rows.next()
    health.add(rows.findings)
    let last = try database.lastRow(root: table.rootPage, payloadLimit: 512)
    outline.highestKeys[StoreOutline.key(name)] = last?.rowid
    guard let column = definition.column(named: "Z_ENT") else { return }
    let numbers = [first, last].compactMap(\.self).map { definition.values(of: $0)[column].integer }
    let isNullSeen = Self.hasLocalEntityNumbers(definition)
    outline.note(numbers.filter { $0 != nil || isNullSeen }, in: name)
  }

  /// Returns whether entity numbers always lie on the row's page, so that an unseen one is NULL.
  ///
  /// A record header has a few bytes per column, and on a page of 4,096 bytes at least 489 bytes of a record fit.
  static func hasLocalEntityNumbers(_ table: TableDefinition) -> Bool {
    guard let column = table.column(named: "Z_ENT") else { return false }
    return column <= 2 && table.columns.count <= 100
  }

  private static func keyedTable(_ name: String, _ schema: Schema) -> (SchemaEntry, TableDefinition)? {
    guard let table = schema.table(named: name), table.rootPage > 0, let definition = table.tableDefinition,
      let key = definition.column(named: "Z_PK"), definition.rowidAlias == key
    else { return nil }
    return (table, definition)
  }

  /// Reads both ends of an entity number index; a full check compares it with the rows.
  ///
  /// Core Data indexes most tables of several entities, with consecutive numbers: if least and greatest belong, all do.
  /// Without an index, rows in between stay unread.
  private func readIndexEnds(
    of name: String, _ database: Database, _ schema: Schema, _ outline: inout StoreOutline
  ) throws(FileError) {
    guard let (_, definition) = Self.keyedTable(name, schema), definition.column(named: "Z_ENT") != nil else { return }
    for entry in schema.entries where entry.kind == .index && entry.rootPage > 0 && isSame(entry.tableName, name) {
      guard let index = entry.indexDefinition, !index.isPartial,
        let column = index.columns.first?.name, isSame(column, "Z_ENT")
      else { continue }
      // NULL comes first in an index.
      let ends = try database.indexEnds(root: entry.rootPage).compactMap { $0.values.first }
      outline.note(ends.map(\.integer), in: name)
    }
  }

  private func isSame(_ name: String, _ other: String) -> Bool { StoreOutline.key(name) == StoreOutline.key(other) }
}

extension Examination {
  fileprivate mutating func take(_ drift: StoreDrift, _ outline: StoreOutline, _ layout: StoreLayout) {
    self.drift = drift
    isBeyondRepair = drift.isBeyondRepair(outline, layout)
    health.notes.removeAll { ["lacks-model-parts"].contains($0.code) || Self.notedRemarks.contains($0.code) }
    if !drift.isEmpty {
      let count = drift.differences.count
      health.note(
        "lacks-model-parts", .warning, "it differs from its own model in \(count) \(count == 1 ? "place" : "places")")
    }
    for code in Self.notedRemarks {
      let remarks = drift.remarks.filter { $0.code == code }
      guard let first = remarks.first else { continue }
      health.note(code, .warning, first.words, count: remarks.count)
    }
  }

  /// The remarks that become notes.
  private static let notedRemarks = ["mandatory-column", "other-primary-key"]
}
