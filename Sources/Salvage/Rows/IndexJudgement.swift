internal import SQLiteFormat

/// The value of an index as evidence of missing rows.
enum IndexJudgement: Equatable {
  /// It is in order, and comparable entries agree with their rows.
  case own(IndexEvidence)

  /// It has unordered, unreadable or duplicate pages or entries.
  case broken

  /// It is intact, but lists missing rows and contradicts present ones: either is of another time or place.
  case contradicting
}

/// The information of an index on its table's rows.
struct IndexEvidence: Equatable {
  /// Whether its tree is intact, so that it lists all rows.
  var isWhole: Bool

  /// The listed rowids without a row, ascending.
  var missing: [Int64]
}

/// Infers the order of an index's entries.
///
/// Sort directions and case sensitivity remain those that all entries allow.
struct InferredIndexOrder {
  private struct Directions: OptionSet {
    let rawValue: Int
    static let ascending = Directions(rawValue: 1)
    static let descending = Directions(rawValue: 2)
    static let ascendingWithoutCase = Directions(rawValue: 4)
    static let descendingWithoutCase = Directions(rawValue: 8)
    static let all: Directions = [.ascending, .descending, .ascendingWithoutCase, .descendingWithoutCase]
  }

  private var directions: [Directions]
  private var previous: [Value] = []

  init(columns: Int) { directions = [Directions](repeating: .all, count: columns) }

  /// Takes the next entry; false if out of order.
  mutating func take(_ entry: [Value]) -> Bool {
    defer { previous = entry }
    guard previous.count == entry.count else { return previous.isEmpty }
    for (column, (before, after)) in zip(previous, entry).enumerated() {
      let sign = Self.compare(before, after, folding: false)
      guard sign != 0 else { continue }
      // Equal values are ordered by rowid.
      guard directions.indices.contains(column) else { return sign < 0 }
      let folded = Self.compare(before, after, folding: true)
      if sign > 0 { directions[column].remove(.ascending) } else { directions[column].remove(.descending) }
      if folded > 0 { directions[column].remove(.ascendingWithoutCase) }
      if folded < 0 { directions[column].remove(.descendingWithoutCase) }
      return !directions[column].isEmpty
    }
    return false
  }

  /// Compares two values as SQLite sorts: NULL, numbers, text, bytes.
  private static func compare(_ left: Value, _ right: Value, folding: Bool) -> Int {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
    case (.integer, .real), (.real, .integer), (.real, .real):
      let (left, right) = (left.real ?? 0, right.real ?? 0)
      return left < right ? -1 : left > right ? 1 : 0
    case (.text(let left), .text(let right)): return compare(left.bytes, right.bytes, folding: folding)
    case (.blob(let left), .blob(let right)): return compare(left, right, folding: false)
    default: return rank(left) - rank(right)
    }
  }

  private static func compare(_ left: [UInt8], _ right: [UInt8], folding: Bool) -> Int {
    func folded(_ byte: UInt8) -> UInt8 { folding && byte >= 0x41 && byte <= 0x5A ? byte + 0x20 : byte }
    for (left, right) in zip(left, right) {
      let (left, right) = (folded(left), folded(right))
      if left != right { return left < right ? -1 : 1 }
    }
    return left.count - right.count
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }
}

extension RowContext {
  /// Checks each comparable index of a table.
  ///
  /// - Parameter limit: the highest assigned rowid, if known.
  func judgements(of table: Int, limit: Int64?) throws -> [IndexJudgement] {
    let indexes = crawl.comparableIndexes(of: table)
    let leaves = crawl.wholeLeaves(of: table)
    let comparison = IndexComparison(self, table: table, leaves: leaves, indexes: indexes)
    return try indexes.map { try comparison.judgement(of: $0, limit: limit) }
  }
}

extension IndexComparison {
  /// An index that lists more missing rowids is no evidence.
  private static let maximumMissing = 1 << 22

  /// A lossy set of rowids, and of rowids with values.
  private struct RowBits {
    private var words: [UInt64]

    init(rows: Int) {
      var size = 1 << 10
      while size < 1 << 21, size * 2 < rows { size *= 2 }
      words = [UInt64](repeating: 0, count: size)
    }

    private func place(_ rowid: Int64, _ key: Int?) -> (word: Int, bit: UInt64) {
      let number = UInt(bitPattern: mixed(rowid, key)) & UInt(words.count * 64 - 1)
      return (Int(number / 64), 1 << UInt64(number % 64))
    }

    /// Inserts a rowid with a key, and alone, for which the key 0 stands.
    mutating func insert(_ rowid: Int64, _ key: Int?) {
      for place in [place(rowid, 0), place(rowid, key)] { words[place.word] |= place.bit }
    }

    func contains(_ rowid: Int64, _ key: Int? = 0) -> Bool {
      let place = place(rowid, key)
      return words[place.word] & place.bit != 0
    }
  }

  private struct Walk {
    var pages = PageSet()
    var order: InferredIndexOrder
    var missing: [Int64] = []
    var compared = 0
    var differing = 0
    var payload: [UInt8] = []
  }

  /// Checks an index against itself and the live rows.
  func judgement(of index: ComparableIndex, limit: Int64?) throws -> IndexJudgement {
    let tree = crawl.trees[index.tree]
    guard let live = context.tables.live[table] else { return .broken }
    var rows = RowBits(rows: leaves.reduce(0) { $0 + crawl.map.cellCount($1) })
    var count = 0
    for leaf in leaves {
      var found: [(rowid: Int64, key: Int?)] = []
      try PageRows(crawl.reader).forEach(on: leaf) { found.append(($0.rowid, key(of: $0, index))) }
      for row in found where try live.hasRow(row.rowid) {
        rows.insert(row.rowid, row.key)
        count += 1
      }
    }
    var walk = Walk(order: InferredIndexOrder(columns: index.fields.count))
    guard try follow(tree.root, of: index, depth: 0, rows, live, &walk) else { return .broken }
    walk.missing.sort()
    let isTwice = zip(walk.missing, walk.missing.dropFirst()).contains { $0 == $1 }
    guard !isTwice, limit.map({ limit in walk.missing.last.map { $0 <= limit } ?? true }) ?? true else {
      return .broken
    }
    if walk.compared == 0, try isAnothers(index) { return .broken }
    let evidence = IndexEvidence(isWhole: tree.isComplete, missing: walk.missing)
    let differing = walk.differing + (tree.isComplete ? abs(count - walk.compared) : 0)
    // Doubtful rows may differ from their entries.
    let doubtful = context.tables.tallies[table].doubts.reduce(Int64(0)) { sum, doubt in
      doubt.key == .contradicted || doubt.key == .misplacedPage ? sum : sum + doubt.value
    }
    guard differing <= doubtful else { return tree.isComplete && !walk.missing.isEmpty ? .contradicting : .broken }
    return .own(evidence)
  }

  /// Whether an index without comparable rows matches the rows of another table.
  private func isAnothers(_ index: ComparableIndex) throws -> Bool {
    guard let page = crawl.trees[index.tree].leaves.first else { return false }
    for other in crawl.trees.indices
    where crawl.trees[other].kind == .index && crawl.trees[other].table != table
      && crawl.trees[other].indexedColumns.count == index.fields.count
    {
      if try crawl.hasEntries(page, of: other, ratherThan: index.tree) { return true }
    }
    return false
  }

  /// Walks an index; false if interrupted or contradictory.
  private func follow(
    _ page: UInt32, of index: ComparableIndex, depth: Int, _ rows: RowBits, _ live: OutputTable, _ walk: inout Walk
  ) throws -> Bool {
    let isWhole = crawl.trees[index.tree].isComplete
    guard page > 0, page <= crawl.map.pageCount, crawl.map.fate(page) == .tree, crawl.map.owner(page) == index.tree
    else { return !isWhole }
    guard depth < Crawl.maximumDepth, walk.pages.insert(page) else { return false }
    var buffer = crawl.reader.makeBuffer()
    guard try crawl.reader.readPlace(page, into: &buffer), let kind = PageKind(rawValue: buffer[0]), !kind.isTable,
      let count = buffer.span.uint16(at: 3)
    else { return false }
    var room = crawl.reader.usableSize
    for place in 0..<count {
      guard let offset = buffer.span.uint16(at: kind.headerLength + 2 * place),
        let cell = LeafCell(buffer.span, kind: kind, at: offset, index: place, geometry: crawl.reader.geometry),
        room >= cell.end - cell.offset
      else { return false }
      room -= cell.end - cell.offset
      if !kind.isLeaf {
        let child = buffer.span.uint32(at: offset) ?? 0
        guard try follow(child, of: index, depth: depth + 1, rows, live, &walk) else { return false }
      }
      guard try read(cell, buffer, into: &walk.payload),
        let record = Record(payload: walk.payload[...], encoding: crawl.reader.layout.encoding),
        try take(record.values, index, rows, live, &walk)
      else { return false }
    }
    guard !kind.isLeaf else { return true }
    return try follow(buffer.span.uint32(at: 8) ?? 0, of: index, depth: depth + 1, rows, live, &walk)
  }

  /// Checks an entry against its predecessor and row.
  private func take(
    _ values: [Value], _ index: ComparableIndex, _ rows: RowBits, _ live: OutputTable, _ walk: inout Walk
  ) throws -> Bool {
    guard values.count == index.fields.count + 1, let rowid = values.last?.integer, walk.order.take(values) else {
      return false
    }
    guard try live.hasRow(rowid) else {
      walk.missing.append(rowid)
      return walk.missing.count < Self.maximumMissing
    }
    // Only rows on the table's leaves are comparable.
    guard rows.contains(rowid) else { return true }
    walk.compared += 1
    var hasher = Hasher()
    for value in values.dropLast() { hasher.combine(IndexedValues.key(value)) }
    if !rows.contains(rowid, hasher.finalize()), !rows.contains(rowid, nil) { walk.differing += 1 }
    return true
  }
}
