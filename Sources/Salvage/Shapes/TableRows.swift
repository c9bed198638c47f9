internal import SQLiteFormat

/// A sample of the rows under a table's root, taken before the choice of a definition.
struct TableRows {
  struct Row {
    var classes: [StorageClasses]

    /// The number in `Z_ENT`, if any.
    var entity: Int64?
  }

  let hasRowids: Bool

  /// Whether every page of the tree was found.
  private(set) var isWhole = false

  /// Rows from all over the tree.
  private(set) var rows: [Row] = []

  private static let leafLimit = 32

  private static let rowLimit = 1024

  private static let fieldLimit = 1 << 21

  private static let tableLimit = 4096

  /// The share of rows that may contradict a definition by damage.
  private static let tolerance = 0.1

  static func gather(
    _ entries: [SchemaEntry], _ reader: PageReader, _ map: PageMap
  ) throws -> [UInt32: TableRows] {
    // No sound record has more fields than a page's note can count.
    let any = RecordShape(
      fields: [RecordShape.Field](repeating: .init(allowed: .any, usual: .any), count: 256), minimumFields: 1)
    var trees: [Tree] = []
    var entityFields: [Int?] = []
    for entry in entries where entry.kind == .table && entry.rootPage > 1 && entry.rootPage <= map.pageCount {
      guard trees.count < tableLimit else { break }
      let kind: Tree.Kind
      switch map.look(entry.rootPage) {
      case .tableLeaf, .tableInterior: kind = .table
      case .indexLeaf, .indexInterior: kind = .withoutRowid
      case .missing, .zero, .unknown, .broken, .linked: continue
      }
      var tree = Tree(name: entry.name, kind: kind, root: entry.rootPage, shape: any)
      tree.isListed = true
      trees.append(tree)
      let definition = entry.tableDefinition
      let place = definition?.column(named: "Z_ENT")
      entityFields.append(place.flatMap { definition?.storedColumns.firstIndex(of: $0) })
    }
    var crawl = Crawl(reader: reader, map: map, trees: trees)
    try crawl.walkRoots()
    var result: [UInt32: TableRows] = [:]
    var budget = fieldLimit
    for (tree, field) in zip(crawl.trees, entityFields) {
      var rows = TableRows(hasRowids: tree.kind == .table)
      rows.isWhole = tree.gaps.isEmpty
      try rows.read(tree.leaves, entityField: field, &budget, reader)
      result[tree.root] = rows
    }
    return result
  }

  private mutating func read(
    _ leaves: [UInt32], entityField: Int?, _ budget: inout Int, _ reader: PageReader
  ) throws {
    let pages = PageRows(reader)
    let step = max(1, leaves.count / Self.leafLimit)
    var found: [Row] = []
    var left = budget
    func take(_ record: Record) {
      guard found.count < Self.rowLimit, left > 0 else { return }
      let classes = record.serialTypes.map { StorageClasses(serialType: $0.rawValue) }
      left -= classes.count
      found.append(Row(classes: classes, entity: entityField.flatMap { record.value(at: $0)?.integer }))
    }
    for place in stride(from: 0, to: leaves.count, by: step) {
      guard found.count < Self.rowLimit, left > 0 else { break }
      if hasRowids {
        try pages.forEach(on: leaves[place], step: leaves.count > Self.leafLimit ? 4 : 1) { take($0.record) }
      } else {
        try pages.forEachEntry(on: leaves[place], take)
      }
    }
    budget = left
    rows = found
  }

  /// Whether the rows can have a definition: enough columns, and the key in its place.
  func canBe(of definition: TableDefinition) -> Bool {
    guard definition.isWithoutRowid != hasRowids else { return false }
    let stored = definition.storedColumns
    var contradictions = 0
    for row in rows {
      if row.classes.count > stored.count {
        contradictions += 1
      } else if let alias = definition.rowidAlias, let field = stored.firstIndex(of: alias),
        row.classes.indices.contains(field), row.classes[field] != .null
      {
        contradictions += 1
      }
    }
    return Double(contradictions) <= Double(rows.count) * Self.tolerance
  }

  /// Returns the share of values misfit to their declared types; 0 without values.
  func strangeShare(in definition: TableDefinition) -> Double {
    let shape = RecordShape(definition, isCoreData: true)
    var strange = 0
    var values = 0
    for row in rows {
      for (field, storage) in row.classes.enumerated() where storage != .null {
        values += 1
        if !shape.fields.indices.contains(field) || !shape.fields[field].usual.contains(storage) { strange += 1 }
      }
    }
    return values > 0 ? Double(strange) / Double(values) : 0
  }

  func strangeCount(_ field: Int, _ type: String) -> Int {
    let usual: StorageClasses =
      switch Affinity(declaredType: type) {
      case .integer: [.null, .integer]
      case .real, .numeric: [.null, .integer, .real]
      case .text: [.null, .text]
      case .blob: type.isEmpty ? .any : [.null, .blob]
      }
    return rows.count { $0.classes.indices.contains(field) && !usual.contains($0.classes[field]) }
  }

  /// Whether a field is NULL in all rows, with at least one row.
  func isAlwaysNull(_ field: Int) -> Bool {
    !rows.isEmpty && rows.allSatisfy { !$0.classes.indices.contains(field) || $0.classes[field] == .null }
  }
}

extension RecordShape {
  /// Allows the undeclared classes that several rows of a complete tree have, since SQLite accepts any value in any
  /// column.
  ///
  /// A row with more strange values than others does not count: its page may be another table's.
  mutating func admit(_ seen: TableRows) {
    guard seen.isWhole, isStrict else { return }
    var counts: [Int: [StorageClasses.RawValue: Int]] = [:]
    for row in seen.rows where row.classes.count <= fields.count {
      if let entityNumbers, !(row.entity.map(entityNumbers.contains) ?? false) { continue }
      let strange = row.classes.indices.filter { !fields[$0].allowed.contains(row.classes[$0]) }
      guard strange.count * 2 <= row.classes.count, !strange.contains(where: { fields[$0].allowed == .null }) else {
        continue
      }
      for field in strange { counts[field, default: [:]][row.classes[field].rawValue, default: 0] += 1 }
    }
    for (field, classes) in counts {
      for (storage, count) in classes where count > 1 {
        fields[field].allowed.insert(StorageClasses(rawValue: storage))
        fields[field].usual.insert(StorageClasses(rawValue: storage))
      }
    }
  }
}

extension TableDefinition {
  /// Makes a damaged definition acceptable to SQLite: unique column names, and keys without missing columns.
  mutating func makeAcceptable() {
    // Keeps thousands of equal names fast.
    var numbers: [String: Int] = [:]
    for index in columns.indices {
      let name = columns[index].name
      while let last = numbers[Self.folded(columns[index].name)] {
        numbers[Self.folded(columns[index].name)] = last + 1
        columns[index].name = "\(name)_\(last + 1)"
      }
      numbers[Self.folded(columns[index].name)] = 1
    }
    primaryKeyColumns = primaryKeyColumns.filter { $0.name.flatMap { column(named: $0) } != nil }
  }

  /// Folds ASCII case, as SQLite compares names.
  private static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}

/// Reads rows of table pages before their owner is known.
struct PageRows {
  /// A row without its overflow pages.
  struct Row {
    var rowid: Int64
    var record: Record
  }

  private let reader: PageReader

  init(_ reader: PageReader) { self.reader = reader }

  /// - Parameter step: takes one row in so many.
  func forEach(on page: UInt32, step: Int = 1, _ body: (Row) -> Void) throws {
    try forEach(on: page, kind: .tableLeaf, step: step) { rowid, record in body(Row(rowid: rowid, record: record)) }
  }

  func forEachEntry(
    on page: UInt32, kind: PageKind = .indexLeaf, _ body: (Record) -> Void
  ) throws {
    try forEach(on: page, kind: kind, step: 1) { _, record in body(record) }
  }

  private func forEach(
    on page: UInt32, kind: PageKind, step: Int, _ body: (Int64, Record) -> Void
  ) throws {
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer) else { return }
    let start = page == 1 && buffer[0] != kind.rawValue ? DatabaseHeader.length : 0
    guard start + 8 < buffer.count, buffer[start] == kind.rawValue, let count = buffer.span.uint16(at: start + 3) else {
      return
    }
    // No byte of a sound page belongs to two cells; without this bound a page could occupy a reader for long.
    var room = reader.usableSize
    for index in stride(from: 0, to: count, by: max(1, step)) {
      guard let offset = buffer.span.uint16(at: start + kind.headerLength + 2 * index),
        let cell = LeafCell(buffer.span, kind: kind, at: offset, index: index, geometry: reader.geometry),
        room >= cell.end - cell.offset,
        let record = Record(
          payload: buffer[cell.payload..<(cell.payload + cell.local)], payloadLength: cell.length,
          encoding: reader.layout.encoding), record.isWellFormed
      else { continue }
      room -= cell.end - cell.offset
      body(cell.rowid, record)
    }
  }

  /// Returns the leaves of a table's tree, and whether they are complete.
  func leaves(
    of root: UInt32, shape: RecordShape, _ map: PageMap
  ) throws -> (pages: [UInt32], isWhole: Bool) {
    var tree = Tree(name: "", kind: .table, root: root, shape: shape)
    tree.isListed = true
    var crawl = Crawl(reader: reader, map: map, trees: [tree])
    try crawl.walkRoots()
    return (crawl.trees[0].leaves, crawl.trees[0].gaps.isEmpty)
  }
}
