package import Platform

/// The reading of an index's entries, which needs no rows of its table.
package struct IndexScan: Sendable {
  let plan: IndexPlan

  /// The most columns of an index of the table.
  let columns: Int

  /// Reads and sums the entries.
  ///
  /// - Parameter progress: returning false throws ``FileError/Kind/cancelled``.
  package func run(in database: Database, progress: () -> Bool) throws(FileError) -> IndexTotals {
    var entries = IndexEntries(database, plan, columns: columns)
    try entries.read(progress)
    return entries.totals
  }
}

/// The entries of an index, summed as hashes.
package struct IndexTotals: Sendable {
  var findings = Findings()
  var count = 0
  var sum: UInt64 = 0

  /// The columns per entry, without the rowid.
  var columns = -1
  var isUniform = true
}

private struct IndexEntries {
  private(set) var totals = IndexTotals()

  private let database: Database
  private let root: UInt32
  private let fieldCount: Int
  private let order: EntryOrder?
  private var fields = RecordFields()

  /// The previous entry, unless it overflows.
  private var previous = RecordFields()

  /// The remaining bytes of long entries, at most the database's size, since entries share no pages.
  private var budget: Int64

  /// Creates an empty sum.
  ///
  /// - Parameter columns: the table's largest index column count.
  init(_ database: Database, _ plan: IndexPlan, columns: Int) {
    self.database = database
    root = plan.entry.rootPage
    fieldCount = max(columns, plan.candidates.map(\.count).max() ?? 0, plan.order?.count ?? 0) + 2
    order = plan.order.map(EntryOrder.init)
    budget = Int64(database.highestPage) * Int64(database.pageSize)
  }

  mutating func read(_ progress: () -> Bool) throws(FileError) {
    // The previous entry's page; nil at first or if the entry overflows.
    var last: BTreePage?
    var pages = 0
    var walk = try BTreeWalk(database: database, root: root, isTable: false)
    while let (page, cells) = try walk.nextRun() {
      if pages & 0x3f == 0, !progress() { throw FileError.cancelled("compare the indexes") }
      pages &+= 1
      try read(page, cells, behind: &last)
    }
  }

  private mutating func read(_ page: BTreePage, _ cells: Range<Int>, behind last: inout BTreePage?) throws(FileError) {
    let span = page.bytes.span
    var isBehindOwn = false
    for index in cells {
      guard let cell = page.cell(at: index) else { continue }
      totals.count &+= 1
      guard fields.read(span, in: cell.localPayload, upTo: fieldCount), fields.end <= cell.localPayload.upperBound
      else {
        last = nil
        isBehindOwn = false
        try addLong(cell, index, on: page)
        continue
      }
      add(span)
      guard let order else { continue }
      let relation: EntryOrder.Relation =
        if isBehindOwn {
          order.relation(span, previous, to: span, fields)
        } else if let last {
          order.relation(last.bytes.span, previous, to: span, fields)
        } else {
          .unknown
        }
      if relation == .wrong { totals.findings.note(.indexOrder, page: page.number, cell: index, root: root) }
      isBehindOwn = true
      swap(&previous, &fields)
    }
    if isBehindOwn { last = page }
  }

  /// Adds an entry with overflow pages.
  private mutating func addLong(_ cell: Cell, _ index: Int, on page: BTreePage) throws(FileError) {
    budget -= Int64(cell.payloadLength)
    guard budget >= 0 else { return }
    var gathering = BTreeWalk(gatheringFrom: database, root: root)
    let payload = Array(try gathering.payload(of: cell, on: page, limit: cell.payloadLength))
    guard fields.read(payload.span, in: 0..<payload.count, upTo: fieldCount), fields.end <= payload.count else {
      totals.findings.note(.recordMalformed, page: page.number, cell: index, root: root)
      return
    }
    add(payload.span)
  }

  @inline(__always) private mutating func add(_ bytes: Span<UInt8>) {
    if totals.columns < 0 { totals.columns = fields.count - 1 }
    if fields.count - 1 != totals.columns { totals.isUniform = false }
    var hash = EntryHash()
    for field in 0..<fields.count { hash.add(fields.codes[field], bytes, at: fields.starts[field]) }
    totals.sum &+= hash.value
  }
}

/// The computation of an index's entries from rows.
struct IndexPlan: Sendable {
  let entry: SchemaEntry

  /// The columns by place; several if an automatic index may belong to different constraints, empty if entries cannot
  /// be computed.
  let candidates: [[Int]]

  var condition: RowCondition?

  let order: [EntryOrder.Column]?
}

struct IndexPlanning {
  let table: SchemaEntry
  let definition: TableDefinition
  let encoding: TextEncoding

  /// Whether DESC counts; formats below 4 ignore it.
  let honoursDescending: Bool

  let indexes: [SchemaEntry]

  func plan(for index: SchemaEntry) -> IndexPlan? {
    guard index.sql != nil else { return automaticPlan(for: index) }
    guard let indexed = index.indexDefinition else { return nil }
    let condition = indexed.condition.flatMap { RowCondition($0, of: definition) }
    if indexed.isPartial, condition == nil { return nil }
    var columns: [Int] = []
    var order: [EntryOrder.Column] = []
    for column in indexed.columns {
      guard let name = column.name, let place = definition.column(named: name), isStored(place) else { return nil }
      columns.append(place)
      order.append(self.order(of: column))
    }
    return columns.isEmpty ? nil : IndexPlan(entry: index, candidates: [columns], condition: condition, order: order)
  }

  /// Returns a plan for the order alone, if known.
  func orderPlan(for index: SchemaEntry) -> IndexPlan? {
    guard let indexed = index.indexDefinition else { return nil }
    return IndexPlan(entry: index, candidates: [], order: indexed.columns.map { order(of: $0) })
  }

  /// Plans an automatic index of the primary key or a UNIQUE constraint, which has no statement.
  private func automaticPlan(for index: SchemaEntry) -> IndexPlan? {
    var lists: [[Int]] = []
    let key = definition.rowidAlias == nil ? [definition.primaryKey] : []
    for names in key + definition.uniqueConstraints where !names.isEmpty {
      let columns = names.compactMap { definition.column(named: $0) }
      guard columns.count == names.count, columns.allSatisfy(isStored) else { return nil }
      if columns != [definition.rowidAlias], !lists.contains(columns) { lists.append(columns) }
    }
    // If the numbers of constraints and indexes differ, a constraint was misread.
    guard !lists.isEmpty, lists.count == indexes.count(where: { $0.sql == nil }) else { return nil }
    let statement = SQLTokenizer.tokens(of: table.sql ?? "")
    let isPlain = lists.count == 1 && !statement.contains { $0.isWord("collate") || $0.isWord("desc") }
    let order = isPlain ? lists[0].map { _ in EntryOrder.Column(collation: .binary) } : nil
    return IndexPlan(entry: index, candidates: lists, order: order)
  }

  private func isStored(_ column: Int) -> Bool { definition.columns[column].generation != .virtual }

  /// Returns a column's order; an expression's collation is unknown.
  private func order(of column: IndexedColumn) -> EntryOrder.Column {
    let place = column.name.flatMap { definition.column(named: $0) }
    let isKnown = column.collation != nil || place != nil
    let name = column.collation ?? place.flatMap { definition.columns[$0].collation }
    return .init(
      collation: isKnown ? EntryOrder.Collation(name, encoding: encoding) : nil,
      isDescending: column.isDescending && honoursDescending)
  }
}

/// The order of an index, for SQLite's own collations.
struct EntryOrder {
  struct Column {
    /// The text collation; nil if not comparable here.
    var collation: Collation?

    var isDescending = false
  }

  enum Collation {
    case binary
    /// ASCII letters in lower case.
    case noCase
    /// Without trailing spaces.
    case rightTrimmed

    /// Returns a name's collation, binary by default; nil for the app's own.
    ///
    /// `noCase` and `rightTrimmed` compare bytes, so they need UTF-8.
    init?(_ name: String?, encoding: TextEncoding) {
      guard let name, !isSameName(name, "binary") else {
        self = .binary
        return
      }
      guard encoding == .utf8 else { return nil }
      if isSameName(name, "nocase") {
        self = .noCase
      } else if isSameName(name, "rtrim") {
        self = .rightTrimmed
      } else {
        return nil
      }
    }
  }

  enum Relation {
    case ascending, wrong
    /// An unknown collation, or a value on overflow pages.
    case unknown
  }

  /// The columns, without the trailing rowid.
  let columns: [Column]

  func relation(
    _ bytes: Span<UInt8>, _ first: borrowing RecordFields, to others: Span<UInt8>, _ second: borrowing RecordFields
  ) -> Relation {
    for index in 0...columns.count {
      guard index < first.count, index < second.count else { return .unknown }
      let (code, other) = (first.codes[index], second.codes[index])
      let (start, otherStart) = (first.starts[index], second.starts[index])
      guard
        let order = Self.compare(
          code, bytes, start, other, others, otherStart, index < columns.count ? columns[index].collation : .binary)
      else { return .unknown }
      if order != 0 {
        let isAscending = (order < 0) != (index < columns.count && columns[index].isDescending)
        return isAscending ? .ascending : .wrong
      }
    }
    return .wrong
  }

  /// Returns nil if undecided.
  private static func compare(
    _ code: Int64, _ bytes: Span<UInt8>, _ start: Int, _ other: Int64, _ others: Span<UInt8>, _ otherStart: Int,
    _ collation: Collation?
  ) -> Int? {
    let (rank, otherRank) = (rank(of: code), Self.rank(of: other))
    if rank != otherRank { return rank < otherRank ? -1 : 1 }
    switch rank {
    case 0: return 0
    case 1:
      if code != 7, other != 7 {
        let (number, otherNumber) = (integer(code, bytes, start), integer(other, others, otherStart))
        return number == otherNumber ? 0 : number < otherNumber ? -1 : 1
      }
      return compareNumbers(number(code, bytes, start), number(other, others, otherStart))
    default:
      var (count, otherCount) = (Int((code &- 12) >> 1), Int((other &- 12) >> 1))
      guard let collation = rank == 2 ? collation : .binary else { return nil }
      if collation == .rightTrimmed {
        while count > 0, bytes[start &+ count &- 1] == 0x20 { count -= 1 }
        while otherCount > 0, others[otherStart &+ otherCount &- 1] == 0x20 { otherCount -= 1 }
      }
      for index in 0..<min(count, otherCount) {
        var (byte, otherByte) = (bytes[start &+ index], others[otherStart &+ index])
        // NOCASE ignores everything after a zero byte.
        if collation == .noCase, byte == 0 || otherByte == 0 { return nil }
        if byte == otherByte { continue }
        if collation == .noCase { (byte, otherByte) = (lowercased(byte), lowercased(otherByte)) }
        if byte != otherByte { return byte < otherByte ? -1 : 1 }
      }
      return count == otherCount ? 0 : count < otherCount ? -1 : 1
    }
  }

  private static func rank(of code: Int64) -> Int { code == 0 ? 0 : code < 12 ? 1 : code & 1 == 1 ? 2 : 3 }

  /// Codes 10 and 11 never occur in files.
  @inline(__always) private static func integer(_ code: Int64, _ bytes: Span<UInt8>, _ start: Int) -> Int64 {
    if code > 7 { return code == 9 ? 1 : 0 }
    return bytes.signedInteger(at: start, length: SerialType.length(of: code) ?? 1) ?? 0
  }

  private static func number(_ code: Int64, _ bytes: Span<UInt8>, _ start: Int) -> Value {
    SerialType.value(of: code, in: bytes, at: start, encoding: .utf8) ?? .null
  }

  private static func compareNumbers(_ first: Value, _ second: Value) -> Int? {
    if case .integer(let number) = first, case .integer(let other) = second {
      return number == other ? 0 : number < other ? -1 : 1
    }
    guard let number = first.real, let other = second.real else { return nil }
    if number != other { return number < other ? -1 : 1 }
    // An integer of more than 53 bits may differ from its closest real.
    return abs(number) < 9e15 ? 0 : nil
  }
}

/// The encoding-independent hash of an index entry.
///
/// Hashes are summed, so order does not matter. An integer and an equal real hash alike, because REAL columns store
/// integers to save space.
struct EntryHash {
  private(set) var value: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// Each step is one-to-one, so one different word changes the hash.
  @inline(__always) private mutating func fold(_ word: UInt64) {
    value = (value ^ word) &* 0xff51_afd7_ed55_8ccd
    value ^= value >> 32
  }

  @inline(__always) mutating func addNull() { fold(0) }

  @inline(__always) mutating func add(_ number: Int64) {
    fold(1)
    fold(UInt64(bitPattern: number))
  }

  @inline(__always) mutating func add(_ number: Double) {
    if let whole = Int64(exactly: number) { return add(whole) }
    fold(2)
    fold(number.bitPattern)
  }

  @inline(__always) mutating func add(_ bytes: Span<UInt8>, from start: Int, count: Int, isText: Bool) {
    fold(UInt64(truncatingIfNeeded: count) << 3 | (isText ? 3 : 4))
    var offset = start
    let end = start &+ count
    while offset &+ 8 <= end, let word = bytes.uint64(at: offset) {
      fold(word)
      offset &+= 8
    }
    guard offset < end else { return }
    var word: UInt64 = 0
    while offset < end {
      word = word << 8 | UInt64(bytes[offset])
      offset &+= 1
    }
    fold(word)
  }

  /// Adds a complete record field.
  @inline(__always) mutating func add(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int) {
    switch code {
    case 8: add(Int64(0))
    case 9: add(Int64(1))
    case 1...6: add(bytes.signedInteger(at: offset, length: SerialType.length(of: code) ?? 1) ?? 0)
    case 7:
      let number = Double(bitPattern: UInt64(bitPattern: bytes.signedInteger(at: offset, length: 8) ?? 0))
      if number.isNaN { addNull() } else { add(number) }
    case 12...: add(bytes, from: offset, count: Int((code &- 12) >> 1), isText: code & 1 == 1)
    default: addNull()
    }
  }

  mutating func add(_ value: Value) {
    switch value {
    case .null: addNull()
    case .integer(let number): add(number)
    case .real(let number): add(number)
    case .text(let text): add(text.bytes.span, from: 0, count: text.bytes.count, isText: true)
    case .blob(let bytes): add(bytes.span, from: 0, count: bytes.count, isText: false)
    }
  }
}
