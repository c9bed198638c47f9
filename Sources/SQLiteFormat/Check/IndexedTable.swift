/// A table with indexes, and what its rows add up to for the entries that they should have.
///
/// The entries are added up as hashes, so that memory does not grow with the rows.
struct IndexedTable: Sendable {
  /// What the rows add up to for a list of columns.
  struct Expected: Sendable {
    /// The columns by their places in the table.
    let columns: [Int]

    /// Which rows have an entry; nil for all.
    let condition: RowCondition?

    /// The rows that have one.
    var rows = 0

    /// The sum of the hashes of all entries.
    var sum: UInt64 = 0

    /// A value could not be computed.
    var isUncertain = false
  }

  /// The table's root page; 0 where nothing is to be added up.
  private(set) var root: UInt32 = 0

  /// The indexes that are compared, or whose order is.
  private(set) var plans: [IndexPlan] = []

  /// The indexes that cannot be compared.
  private(set) var uncompared: [String] = []

  /// What the rows add up to.
  private(set) var lists: [Expected] = []

  /// The rows that were added.
  private(set) var rows = 0

  /// The rows that could not be read.
  private(set) var findings = Findings()

  private let definition: TableDefinition
  private let encoding: TextEncoding

  /// What is added to the hashes, for one list after the other: the field of a record, or one of the steps below.
  private var steps: [Int] = []
  private static let rowidStep = -1
  private static let endStep = -2

  /// Below this, a column that records do not have: −3 for column 0.
  private static let absentStep = -3

  /// The column that each field of a record holds.
  private var columnOfField: [Int]

  private var fieldCount = 0

  private var fields = RecordFields()

  /// - Parameter indexes: those of the table; nil is returned where it has none.
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
        // The order of its entries can be told all the same.
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

  /// Adds what the rows of a leaf should have in the indexes.
  ///
  /// - Parameters:
  ///   - database: where the rest of long rows is.
  ///   - budget: the bytes of long rows that may still be gathered. Nothing of a row is added behind its end, which only a
  ///     database reaches whose rows share their pages.
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

  /// Adds the entries that a row should have.
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

  /// What a row has in a column; nil where that cannot be told.
  private func value(ofColumn column: Int, _ bytes: Span<UInt8>, _ rowid: Int64) -> Value? {
    if column == definition.rowidAlias { return .integer(rowid) }
    guard let field = columnOfField.firstIndex(of: column) else { return nil }
    guard field < fields.count else { return defaultValue(ofColumn: column) }
    return SerialType.value(of: fields.codes[field], in: bytes, at: fields.starts[field], encoding: encoding)
  }

  /// What a row has that was written before the column was added; nil where that is not beyond doubt.
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
