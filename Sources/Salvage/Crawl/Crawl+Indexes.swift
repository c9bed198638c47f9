internal import SQLiteFormat

/// The values of an index's first column by rowid.
struct IndexedValues {
  var field: Int

  var values: [Int64: Int]

  /// A comparable form, in which equal integers and reals match; nil for NULL.
  static func key(_ value: Value?) -> Int? {
    switch value {
    case .integer, .real: value?.real?.hashValue
    case .text(let text): text.bytes.hashValue
    case .blob(let bytes): bytes.hashValue
    case .null, nil: nil
    }
  }
}

extension Crawl {
  private static let entrySample = 16

  private struct Agreement {
    var looked = 0

    /// Entries that name an existing row.
    var present = 0

    /// Entries that match their row.
    var agreeing = 0

    /// Whether the values differ among entries.
    var isVaried = false
  }

  /// Whether the rows tie a page to one index rather than another.
  ///
  /// Likeness is weaker: an index on an untyped column holds any value.
  func hasEntries(_ page: UInt32, of index: Int, ratherThan other: Int) throws -> Bool {
    guard try hasEntries(page, of: index) else { return false }
    return try agreement(of: page, with: other).agreeing < agreement(of: page, with: index).agreeing
  }

  func hasEntries(_ page: UInt32, of index: Int) throws -> Bool {
    let own = try agreement(of: page, with: index)
    return own.agreeing > 0 && own.agreeing * 2 >= own.present
  }

  /// Whether the entries differ from their rows, or name missing rows of a whole table.
  func isContradicted(_ page: UInt32, asOf index: Int) throws -> Bool {
    let own = try agreement(of: page, with: index)
    guard own.looked > 0, let table = trees[index].table else { return false }
    let isKnown = trees[index].indexedColumns.contains { $0 != nil }
    return isKnown && own.present > 0 && own.agreeing * 2 < own.present || isFull(index)
      || own.present * 2 < own.looked && trees[table].isComplete
  }

  /// Whether an index has an entry for each known row.
  private func isFull(_ index: Int) -> Bool {
    guard let table = trees[index].table, !trees[index].isPartialIndex else { return false }
    let rows = trees[table].leaves.reduce(0) { $0 + map.cellCount($1) }
    return rows > 0 && cellCount(ofIndex: index) == rows
  }

  /// The index that matches most entries of a page, by the rows that they name.
  func index(withEntriesOf page: UInt32, _ buffer: inout [UInt8]) throws -> Int? {
    var best: (index: Int, agreeing: Int)?
    for (index, _) in try fits(of: page, &buffer, where: { trees[$0].kind == .index }) {
      let own = try agreement(of: page, with: index)
      guard own.agreeing > best?.agreeing ?? 0, own.agreeing * 2 >= own.present else { continue }
      best = (index, own.agreeing)
    }
    return best?.index
  }

  /// - Parameter other: the tree of rows to compare with; nil for the index's table.
  private func agreement(of page: UInt32, with index: Int, in other: Int? = nil) throws -> Agreement {
    guard trees[index].kind == .index, let table = trees[index].table, trees[table].hasRowids,
      let definition = trees[table].definition
    else { return Agreement() }
    // The first column stored in records; nil if all are expressions.
    let compared = trees[index].indexedColumns.indices.lazy.compactMap { place -> (place: Int, field: Int)? in
      guard let name = trees[index].indexedColumns[place], let column = definition.column(named: name),
        column != definition.rowidAlias, let field = definition.storedColumns.firstIndex(of: column)
      else { return nil }
      return (place, field)
    }.first
    let rows = PageRows(reader)
    let last = trees[index].indexedColumns.count
    var values: [Int64: Value] = [:]
    try rows.forEachEntry(on: page, kind: map.look(page) == .indexInterior ? .indexInterior : .indexLeaf) { record in
      guard values.count < Self.entrySample, let rowid = record.value(at: last)?.integer,
        let value = record.value(at: compared?.place ?? 0), !value.isNull
      else { return }
      values[rowid] = value
    }
    var agreement = Agreement(looked: values.count)
    agreement.isVaried = Set(values.values.map { IndexedValues.key($0) }).count > 1
    for leaf in Set(values.keys.compactMap({ leaf(endingFrom: $0, in: trees[other ?? table].leaves) })) {
      try rows.forEach(on: leaf) { row in
        guard let value = values[row.rowid] else { return }
        agreement.present += 1
        let isSame =
          compared.map { IndexedValues.key(row.record.value(at: $0.field)) == IndexedValues.key(value) }
          ?? row.record.values.contains { Self.isDerived(value, from: $0) }
        if isSame { agreement.agreeing += 1 }
      }
    }
    return agreement
  }

  /// Whether an expression could yield the value: equal, or one contains the other, ignoring case.
  private static func isDerived(_ value: Value, from stored: Value) -> Bool {
    guard let text = words(value), let other = words(stored) else {
      return !stored.isNull && IndexedValues.key(value) == IndexedValues.key(stored)
    }
    // Short texts and numbers match by chance.
    let isLong = value.string != nil && stored.string != nil && min(text.utf8.count, other.utf8.count) >= 3
    return text == other || isLong && (other.contains(text) || text.contains(other))
  }

  private static func words(_ value: Value) -> String? {
    value.integer.map { "\($0)" } ?? value.string?.lowercased()
  }

  /// Finds complete tables with exchanged roots: their indexes have the rows of others, and hardly any of their own.
  ///
  /// Tables with alike indexes may have their own rows and exchanged indexes. These are disputed, as is a table with
  /// rows that several others have.
  ///
  /// - Returns: for each exchanged table, the table at whose root its rows are.
  func exchangedRoots() throws -> (places: [Int: Int], disputed: Set<Int>) {
    var indexes: [Int: [ComparableIndex]] = [:]
    var places: [Int: Int] = [:]
    let tables = trees.indices.dropFirst().filter {
      trees[$0].hasRowids && trees[$0].isListed && trees[$0].isComplete && trees[$0].definition != nil
    }
    let counts = trees.indices.map { cellCount(ofIndex: $0) }
    var disputed: Set<Int> = []
    for table in tables {
      let own = comparableIndexes(of: table).filter { index in
        trees[index.tree].isComplete && counts[index.tree] > 0 && index.fields.contains { $0 != .rowid }
      }
      guard !own.isEmpty else { continue }
      indexes[table] = own
      guard try own.allSatisfy({ try hasRows(of: $0.tree, in: table) == false }) else { continue }
      let others = try tables.filter { other in
        guard other != table else { return false }
        return try own.allSatisfy { index in
          try counts[other] == counts[index.tree] && hasRows(of: index.tree, in: other) == true
        }
      }
      if others.count == 1 { places[table] = others[0] } else if others.count > 1 { disputed.insert(table) }
    }
    // Indexes with the rows of their own table keep it in place.
    while let wrong = places.first(where: { indexes[$0.value] != nil && places[$0.value] == nil }) {
      places[wrong.key] = nil
    }
    let areAlike = places.contains { table, other in
      (indexes[other] ?? []).contains { theirs in indexes[table]?.contains { $0.fields == theirs.fields } ?? false }
    }
    if areAlike || Set(places.values).count < places.count {
      return ([:], disputed.union(places.keys).union(places.values))
    }
    var owners = Array(trees.indices)
    for (table, other) in places.sorted(by: { $0.key < $1.key }) {
      if let holder = owners.firstIndex(of: other) { owners.swapAt(table, holder) }
    }
    var buffer = reader.makeBuffer()
    for (table, other) in owners.enumerated() where table != other {
      let leaf = trees[other].leaves.first { map.fieldCount($0) > 0 }
      if let leaf, try fits(of: leaf, &buffer, where: { $0 == table }).isEmpty { return ([:], disputed) }
    }
    for (table, other) in owners.enumerated() { places[table] = table == other ? nil : other }
    return (places, disputed)
  }

  /// Whether a table has the rows of an index's sampled entries; nil if it has some, or the entries are no evidence.
  private func hasRows(of index: Int, in table: Int) throws -> Bool? {
    let leaves = trees[index].leaves
    guard let leaf = leaves.dropFirst(leaves.count / 2).first else { return nil }
    let own = try agreement(of: leaf, with: index, in: table)
    guard own.looked >= Self.minimumRows, own.isVaried else { return nil }
    if own.agreeing == own.looked { return true }
    return own.agreeing * 8 < own.looked ? false : nil
  }

  private static let entryLimit = 1 << 17

  /// The fewest rows that identify a page if some table lacks an index.
  private static let minimumRows = 4

  /// The only candidate with an index that has the rows of a page.
  mutating func indexedTree(of page: UInt32, among candidates: [Int]) throws -> Int? {
    var rows: [PageRows.Row] = []
    try PageRows(reader).forEach(on: page) { rows.append($0) }
    for tree in candidates where indexedValues[tree] == nil { indexedValues[tree] = try indexes(of: tree) }
    // If the indexes of all others contradict a row, one is enough.
    let areAllIndexed = candidates.allSatisfy { indexedValues[$0]?.isEmpty == false }
    var found: Int?
    for tree in candidates {
      let isListed = (indexedValues[tree] ?? []).contains { index in
        let keys = rows.compactMap { row in
          IndexedValues.key(row.record.value(at: index.field)).map { (row.rowid, $0) }
        }
        guard !keys.isEmpty, areAllIndexed || keys.count >= Self.minimumRows && Set(keys.map(\.1)).count > 1 else {
          return false
        }
        let agreeing = keys.count { index.values[$0.0] == $0.1 }
        return agreeing * 20 >= keys.count * 19
      }
      guard isListed else { continue }
      guard found == nil else { return nil }
      found = tree
    }
    return found
  }

  enum IndexAgreement {
    case agreeing

    /// Whole indexes lack them, and one has hardly any.
    case contradicted

    case untold
  }

  mutating func indexAgreement(of page: UInt32, with tree: Int) throws -> IndexAgreement {
    if indexedValues[tree] == nil { indexedValues[tree] = try indexes(of: tree) }
    var rows: [PageRows.Row] = []
    try PageRows(reader).forEach(on: page) { rows.append($0) }
    var agreement = IndexAgreement.untold
    for index in indexedValues[tree] ?? [] {
      let keys = rows.compactMap { row in
        IndexedValues.key(row.record.value(at: index.field)).map { (row.rowid, $0) }
      }
      let agreeing = keys.count { index.values[$0.0] == $0.1 }
      if keys.isEmpty { continue }
      if agreeing * 20 >= keys.count * 19 { return .agreeing }
      if agreeing * 2 < keys.count { agreement = .contradicted }
    }
    return agreement
  }

  private func indexes(of table: Int) throws -> [IndexedValues] {
    guard let definition = trees[table].definition, trees[table].hasRowids else { return [] }
    var result: [IndexedValues] = []
    for index in trees.indices where trees[index].kind == .index && trees[index].table == table {
      guard trees[index].isComplete, !trees[index].isPartialIndex, let name = trees[index].indexedColumns.first ?? nil,
        let column = definition.column(named: name), column != definition.rowidAlias,
        let field = definition.storedColumns.firstIndex(of: column)
      else { continue }
      let last = trees[index].indexedColumns.count
      var values = IndexedValues(field: field, values: [:])
      try forEachEntry(of: index) { record, _, _ in
        guard let rowid = record.value(at: last)?.integer, let key = IndexedValues.key(record.value(at: 0)) else {
          return true
        }
        values.values[rowid] = key
        return values.values.count < Self.entryLimit
      }
      if values.values.count < Self.entryLimit { result.append(values) }
    }
    return result
  }
}
