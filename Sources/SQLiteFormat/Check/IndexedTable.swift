/// A table with its expected index entries, summed as hashes to bound memory.
struct IndexedTable: Sendable {
  struct Expected: Sendable {
    /// The columns by place.
    let columns: [Int]

    let condition: RowCondition?

    var rows = 0

    var sum: UInt64 = 0

    var isUncertain = false
  }

  /// The root page; 0 if there are no entries to sum.
  private(set) var root: UInt32 = 0

  private(set) var plans: [IndexPlan] = []

  private(set) var uncompared: [String] = []

  private(set) var lists: [Expected] = []

  private(set) var rows = 0

  private(set) var findings = Findings()

  private let definition: TableDefinition
  private let encoding: TextEncoding

  /// The hash inputs, list by list: record fields or the steps below.
  private var steps: [Int] = []
  private static let rowidStep = -1
  private static let endStep = -2

  /// From here down, columns absent from records: −3 for column 0.
  private static let absentStep = -3

  /// The column in each record field.
  private var columnOfField: [Int]

  private var fieldCount = 0

  private var fields = RecordFields()

  init?(_ table: SchemaEntry, _ indexes: [SchemaEntry], in database: Database) {
    let there = indexes.filter { $0.rootPage > 0 }
    guard !there.isEmpty else { return nil }
    definition = table.tableDefinition ?? TableDefinition(name: table.name)
    encoding = database.encoding
    columnOfField = definition.storedColumns
    guard table.tableDefinition != nil, !definition.isWithoutRowid, !definition.isVirtual, table.rootPage > 0 else {
      uncompared = there.map(\.name)
      return
    }
    root = table.rootPage
    let planning = IndexPlanning(
      table: table, definition: definition, encoding: encoding,
      honoursDescending: (database.header?.schemaFormat ?? 4) >= 4, indexes: there)
    for index in there {
      if let plan = planning.plan(for: index) {
        plans.append(plan)
      } else {
        uncompared.append(index.name)
        // The order of its entries can still be checked.
        if let plan = planning.orderPlan(for: index) { plans.append(plan) }
      }
    }
    for plan in plans {
      for columns in plan.candidates
      where !lists.contains(where: { $0.columns == columns && $0.condition == plan.condition }) {
        lists.append(Expected(columns: columns, condition: plan.condition))
      }
    }
    planSteps()
  }

  private mutating func planSteps() {
    var fieldOf = [Int?](repeating: nil, count: definition.columns.count)
    for (field, column) in columnOfField.enumerated() { fieldOf[column] = field }
    for list in lists {
      for column in list.columns {
        if column == definition.rowidAlias {
          steps.append(Self.rowidStep)
        } else if let field = fieldOf[column] {
          steps.append(field)
          fieldCount = max(fieldCount, field + 1)
        } else {
          steps.append(Self.absentStep - column)
        }
      }
      steps.append(Self.endStep)
      for field in (list.condition?.columns ?? []).compactMap({ fieldOf[$0] }) {
        fieldCount = max(fieldCount, field + 1)
      }
    }
  }

  // MARK: Rows

  /// Adds a leaf's expected entries.
  ///
  /// - Parameters:
  ///   - database: holds the overflow pages.
  ///   - budget: the bytes of long rows left; further rows are skipped. Only a database with
  ///     shared pages exhausts it.
  mutating func add(
    _ page: BTreePage, _ cells: [Cell], in database: Database, _ budget: inout Int64
  ) throws(FormatError) {
    rows &+= cells.count
    guard !lists.isEmpty else { return }
    let span = page.bytes.span
    for index in cells.indices {
      let payload = cells[index].localPayload
      let isHere =
        fieldCount == 0
        || fields.read(span, in: payload, upTo: fieldCount) && fields.end <= payload.upperBound
      guard !isHere else {
        add(span, cells[index].rowid)
        continue
      }
      budget -= Int64(cells[index].payloadLength)
      if budget >= 0 { try addLong(cells[index], index, on: page, in: database) }
    }
  }

  private mutating func addLong(
    _ cell: Cell, _ index: Int, on page: BTreePage, in database: Database
  ) throws(FormatError) {
    var gathering = BTreeWalk(gatheringFrom: database, root: root)
    let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
    guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
      findings.note(.recordMalformed, page: page.number, cell: index, root: root)
      return
    }
    add(payload.span, cell.rowid)
  }

  @inline(__always)
  private mutating func add(_ bytes: Span<UInt8>, _ rowid: Int64) {
    var hash = EntryHash()
    var list = 0
    for step in steps {
      if step >= 0, step < fields.count {
        hash.add(fields.codes[step], bytes, at: fields.starts[step])
      } else if step == Self.rowidStep {
        hash.add(rowid)
      } else if step == Self.endStep {
        hash.add(rowid)
        switch lists[list].condition.map({ $0.holds { value(ofColumn: $0, bytes, rowid) } }) ?? true {
        case true?:
          lists[list].sum &+= hash.value
          lists[list].rows &+= 1
        case false?: break
        case nil: lists[list].isUncertain = true
        }
        hash = EntryHash()
        list &+= 1
      } else if let value = defaultValue(ofColumn: step >= 0 ? columnOfField[step] : Self.absentStep - step) {
        hash.add(value)
      } else {
        lists[list].isUncertain = true
      }
    }
  }

  private func value(ofColumn column: Int, _ bytes: Span<UInt8>, _ rowid: Int64) -> Value? {
    if column == definition.rowidAlias { return .integer(rowid) }
    guard let field = columnOfField.firstIndex(of: column) else { return nil }
    guard field < fields.count else { return defaultValue(ofColumn: column) }
    return SerialType.value(of: fields.codes[field], in: bytes, at: fields.starts[field], encoding: encoding)
  }

  /// Returns the value for rows older than the column; nil if in doubt.
  private func defaultValue(ofColumn column: Int) -> Value? {
    let column = (place: column, definition: definition.columns[column])
    guard column.definition.hasDefault else { return .null }
    guard let literal = column.definition.defaultValue else { return nil }
    switch (literal, column.definition.affinity) {
    case (.null, _): return .null
    case (.integer, .integer), (.integer, .numeric), (.integer, .real), (.integer, .blob), (.text, .text),
      (.text, .blob):
      return definition.defaultValue(ofColumn: column.place, encoding: encoding)
    default: return nil
    }
  }
}
