/// Compares the entries of a table's indexes with its rows: each row has one entry in each index, each entry a row, and the
/// entries are in order.
///
/// A table and each of its indexes are read once. The entries that the rows should have are added up as hashes, and so are
/// those that are there: memory does not grow with the rows.
struct IndexComparison {
  let database: Database
  let progress: () -> Bool
  var report = IndexReport()

  /// An index that is compared.
  private struct Plan {
    let entry: SchemaEntry

    /// The columns by their places in the table; several where an automatic index may be that of one or another constraint.
    let candidates: [[Int]]

    let order: [EntryOrder.Column]?
  }

  /// What the rows of a table add up to for a list of columns.
  private struct Expected {
    let columns: [Int]
    var sum: UInt64 = 0
    /// A value could not be computed.
    var isUncertain = false
  }

  private var fields = RecordFields()
  private var pages = 0

  init(_ database: Database, progress: @escaping () -> Bool) {
    self.database = database
    self.progress = progress
  }

  /// Compares the indexes of one table.
  mutating func compare(_ table: SchemaEntry, _ indexes: [SchemaEntry]) throws(FormatError) {
    let there = indexes.filter { $0.rootPage > 0 }
    guard !there.isEmpty else { return }
    guard let definition = table.tableDefinition, !definition.isWithoutRowid, !definition.isVirtual, table.rootPage > 0
    else {
      report.uncompared += there.map(\.name)
      return
    }
    var plans: [Plan] = []
    for index in there {
      if let plan = plan(for: index, of: definition, table, there) {
        plans.append(plan)
      } else {
        report.uncompared.append(index.name)
        // The order of its entries can be told all the same.
        let columns = index.indexDefinition?.columns.map { order(of: $0, in: definition) }
        if let columns { _ = try addEntries(of: Plan(entry: index, candidates: [], order: columns)) }
      }
    }
    guard !plans.isEmpty else { return }
    var lists: [Expected] = []
    for columns in plans.flatMap(\.candidates) where !lists.contains(where: { $0.columns == columns }) {
      lists.append(Expected(columns: columns))
    }
    let rows = try addRows(of: table, definition, to: &lists)
    for plan in plans { try check(plan, rows: rows, lists) }
  }

  private mutating func advance() throws(FormatError) {
    pages &+= 1
    guard pages & 0x3f == 0, !progress() else { return }
    throw FormatError.cancelled("compare the indexes")
  }

  // MARK: Definitions

  private func plan(
    for index: SchemaEntry, of table: TableDefinition, _ entry: SchemaEntry, _ all: [SchemaEntry]
  ) -> Plan? {
    guard index.sql != nil else { return automaticPlan(for: index, of: table, entry, all) }
    guard let definition = index.indexDefinition, !definition.isPartial else { return nil }
    var columns: [Int] = []
    var order: [EntryOrder.Column] = []
    for column in definition.columns {
      guard let name = column.name, let place = table.column(named: name), isStored(place, in: table) else {
        return nil
      }
      columns.append(place)
      order.append(self.order(of: column, in: table))
    }
    return columns.isEmpty ? nil : Plan(entry: index, candidates: [columns], order: order)
  }

  /// An automatic index has no statement: it is that of the primary key, or of one of the UNIQUE constraints.
  private func automaticPlan(
    for index: SchemaEntry, of table: TableDefinition, _ entry: SchemaEntry, _ all: [SchemaEntry]
  ) -> Plan? {
    var lists: [[Int]] = []
    let key = table.rowidAlias == nil ? [table.primaryKey] : []
    for names in key + table.uniqueConstraints where !names.isEmpty {
      let columns = names.compactMap { table.column(named: $0) }
      guard columns.count == names.count, columns.allSatisfy({ isStored($0, in: table) }) else { return nil }
      if columns != [table.rowidAlias], !lists.contains(columns) { lists.append(columns) }
    }
    // Where constraints and indexes are not as many as each other, one of them was not understood.
    guard !lists.isEmpty, lists.count == all.count(where: { $0.sql == nil }) else { return nil }
    let statement = SQLTokenizer.tokens(of: entry.sql ?? "")
    let isPlain = lists.count == 1 && !statement.contains { $0.isWord("collate") || $0.isWord("desc") }
    let order = isPlain ? lists[0].map { _ in EntryOrder.Column(collation: .binary) } : nil
    return Plan(entry: index, candidates: lists, order: order)
  }

  private func isStored(_ column: Int, in table: TableDefinition) -> Bool {
    table.columns[column].generation != .virtual
  }

  /// How a column of an index is ordered; of the text that an expression gives the collation is not known.
  private func order(of column: IndexedColumn, in table: TableDefinition) -> EntryOrder.Column {
    let place = column.name.flatMap { table.column(named: $0) }
    let isKnown = column.collation != nil || place != nil
    let name = column.collation ?? place.flatMap { table.columns[$0].collation }
    return .init(
      collation: isKnown ? EntryOrder.Collation(name, encoding: database.encoding) : nil,
      isDescending: column.isDescending && honoursDescending)
  }

  /// Files of schema formats below 4 take no account of DESC.
  private var honoursDescending: Bool { (database.header?.schemaFormat ?? 4) >= 4 }

  // MARK: Rows

  /// Adds up what all rows of a table should have in its indexes, and counts them.
  private mutating func addRows(
    of table: SchemaEntry, _ definition: TableDefinition, to lists: inout [Expected]
  ) throws(FormatError) -> Int {
    let stored = definition.storedColumns
    var fieldOf = [Int?](repeating: nil, count: definition.columns.count)
    for (field, column) in stored.enumerated() { fieldOf[column] = field }
    let wanted = Set(lists.flatMap(\.columns)).filter { $0 != definition.rowidAlias }
    let fieldCount = (wanted.compactMap { fieldOf[$0] }.max() ?? -1) + 1
    var rows = 0
    var walk = try BTreeWalk(database: database, root: table.rootPage, isTable: true)
    while let page = try walk.nextPage() {
      try advance()
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index) else { continue }
        rows &+= 1
        let isHere =
          fieldCount == 0
          || fields.read(page.bytes.span, in: cell.localPayload, upTo: fieldCount)
            && fields.end <= cell.localPayload.upperBound
        if isHere {
          add(page.bytes.span, cell.rowid, definition, fieldOf, to: &lists)
        } else {
          var gathering = BTreeWalk(gatheringFrom: database, root: table.rootPage)
          let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
          guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
            report.findings.note(.recordMalformed, page: page.number, cell: index, root: table.rootPage)
            continue
          }
          add(payload.span, cell.rowid, definition, fieldOf, to: &lists)
        }
      }
    }
    return rows
  }

  /// Adds the entries that a row should have.
  @inline(__always)
  private func add(
    _ bytes: Span<UInt8>, _ rowid: Int64, _ table: TableDefinition, _ fieldOf: [Int?], to lists: inout [Expected]
  ) {
    for place in lists.indices {
      var hash = EntryHash()
      for column in lists[place].columns {
        if column == table.rowidAlias {
          hash.add(rowid)
        } else if let field = fieldOf[column], field < fields.count {
          hash.add(fields.codes[field], bytes, at: fields.starts[field])
        } else if let value = defaultValue(ofColumn: column, in: table) {
          hash.add(value)
        } else {
          lists[place].isUncertain = true
        }
      }
      hash.add(rowid)
      lists[place].sum &+= hash.value
    }
  }

  /// What a row has that was written before the column was added; nil where that is not beyond doubt.
  private func defaultValue(ofColumn column: Int, in table: TableDefinition) -> Value? {
    let definition = table.columns[column]
    guard definition.hasDefault else { return .null }
    guard let literal = definition.defaultValue else { return nil }
    switch (literal, definition.affinity) {
    case (.null, _): return .null
    case (.integer, .integer), (.integer, .numeric), (.integer, .real), (.integer, .blob), (.text, .text),
      (.text, .blob):
      return table.defaultValue(ofColumn: column, encoding: database.encoding)
    default: return nil
    }
  }

  // MARK: Entries

  private mutating func check(_ plan: Plan, rows: Int, _ lists: [Expected]) throws(FormatError) {
    let root = plan.entry.rootPage
    let found = try addEntries(of: plan)
    let expected = lists.filter { list in plan.candidates.contains(list.columns) }
    let fitting = expected.filter { $0.columns.count == found.columns }
    // An index of no row has nothing to compare.
    if found.entries == 0, rows == 0 {
      report.compared += 1
    } else if expected.contains(where: \.isUncertain) {
      report.uncompared.append(plan.entry.name)
    } else if found.entries == rows, found.isUniform, fitting.contains(where: { $0.sum == found.sum }) {
      report.compared += 1
    } else if found.entries == rows, found.isUniform, fitting.isEmpty {
      // As many columns as the statement does not say: what it says was not understood.
      report.uncompared.append(plan.entry.name)
    } else {
      report.compared += 1
      report.findings.note(
        .indexEntriesDiffer, root: root, expected: Int64(rows), found: Int64(found.entries))
    }
  }

  /// What the entries of an index add up to.
  private struct Found {
    var entries = 0
    var sum: UInt64 = 0
    /// The columns of each entry, the rowid left out.
    var columns = -1
    var isUniform = true
  }

  private mutating func addEntries(of plan: Plan) throws(FormatError) -> Found {
    var found = Found()
    let root = plan.entry.rootPage
    let fieldCount = max(plan.candidates.map(\.count).max() ?? 0, plan.order?.count ?? 0) + 2
    let order = plan.order.map(EntryOrder.init)
    var previous = RecordFields()
    // The page of the entry before; nil where that is not wholly on it, or where there is none.
    var last: BTreePage?
    var walk = try BTreeWalk(database: database, root: root, isTable: false)
    while let (page, cells) = try walk.nextRun() {
      try advance()
      for index in cells {
        guard let cell = page.cell(at: index) else { continue }
        found.entries &+= 1
        guard fields.read(page.bytes.span, in: cell.localPayload, upTo: fieldCount),
          fields.end <= cell.localPayload.upperBound
        else {
          last = nil
          try addLong(cell, index, on: page, root, fieldCount, to: &found)
          continue
        }
        add(page.bytes.span, to: &found)
        guard let order else { continue }
        if let last, order.relation(last.bytes.span, previous, to: page.bytes.span, fields) == .wrong {
          report.findings.note(.indexOrder, page: page.number, cell: index, root: root)
        }
        if last?.number != page.number { last = page }
        swap(&previous, &fields)
      }
    }
    return found
  }

  /// Adds an entry that goes on behind its page.
  private mutating func addLong(
    _ cell: Cell, _ index: Int, on page: BTreePage, _ root: UInt32, _ fieldCount: Int, to found: inout Found
  ) throws(FormatError) {
    var gathering = BTreeWalk(gatheringFrom: database, root: root)
    let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
    guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
      report.findings.note(.recordMalformed, page: page.number, cell: index, root: root)
      return
    }
    add(payload.span, to: &found)
  }

  @inline(__always)
  private func add(_ bytes: Span<UInt8>, to found: inout Found) {
    if found.columns < 0 { found.columns = fields.count - 1 }
    if fields.count - 1 != found.columns { found.isUniform = false }
    var hash = EntryHash()
    for field in 0..<fields.count { hash.add(fields.codes[field], bytes, at: fields.starts[field]) }
    found.sum &+= hash.value
  }
}

extension Database {
  /// Compares the entries of indexes with the rows of their tables, and looks whether they are in order.
  ///
  /// For a database whose pages are sound: what a damaged page holds is left out. Each table and each index is read once.
  ///
  /// - Parameters:
  ///   - tables: the root pages of the tables whose indexes are compared; all if nil.
  ///   - progress: called now and then; where it returns false, ``FormatError/Kind/cancelled`` is thrown.
  public func compareIndexes(
    _ schema: Schema, ofTables tables: Set<UInt32>? = nil, progress: @escaping () -> Bool = { true }
  ) throws(FormatError) -> IndexReport {
    var comparison = IndexComparison(self, progress: progress)
    for table in schema.tables where table.rootPage > 0 && tables?.contains(table.rootPage) != false {
      try comparison.compare(table, schema.indexes(ofTable: table.name))
    }
    return comparison.report
  }
}
