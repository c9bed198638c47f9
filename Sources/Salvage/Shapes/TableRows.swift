internal import SQLiteFormat

/// What the rows on the pages that a table's root leads to are like, seen before it is decided what they are read by.
struct TableRows {
  /// A row by its storage classes.
  struct Row {
    /// The classes of its fields.
    var classes: [StorageClasses]

    /// The number in its `Z_ENT`; nil where it has none.
    var entity: Int64?
  }

  /// Whether the rows are in a b-tree with rowids.
  let hasRowids: Bool

  /// Whether every page of the tree was found.
  private(set) var isWhole = false

  /// Some of the rows, from all over the tree.
  private(set) var rows: [Row] = []

  /// How many leaves of a table are looked at.
  private static let leafLimit = 32

  /// How many rows of a table are looked at.
  private static let rowLimit = 1024

  /// How many fields of all tables are looked at.
  private static let fieldLimit = 1 << 21

  private static let tableLimit = 4096

  /// The share of rows that may contradict a definition: damage may have hit some of them.
  private static let tolerance = 0.1

  /// Looks at the tables of a schema; the result has them by their root pages.
  static func gather(
    _ entries: [SchemaEntry], _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> [UInt32: TableRows] {
    // No record of a sound table has more fields than a page notes.
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
  ) throws(SalvageError) {
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

  /// Whether the rows can be those of a table of that definition: no row has more fields than it has columns, and the key
  /// is where it says.
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

  /// The share of values that are not of the kind that their columns are declared for; 0 where there are none.
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

  /// How many values of a field are not of the kind that a type stands for.
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

  /// Whether a field is NULL in every row, and there are rows.
  func isAlwaysNull(_ field: Int) -> Bool {
    !rows.isEmpty && rows.allSatisfy { !$0.classes.indices.contains(field) || $0.classes[field] == .null }
  }
}

extension RecordShape {
  /// Lets fields hold what several rows of a whole tree have there, although their columns are not declared for it: SQLite
  /// stores, and reads, any value in any column.
  ///
  /// A row with more strange values than others is no witness: its page may be another table's.
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
  /// Makes of a damaged definition one that SQLite accepts: columns of the same name get different ones, and the key has no
  /// column that is not there.
  mutating func makeAcceptable() {
    // The last number that was put behind a name, so that thousands of the same name take no longer than others.
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

  /// A name as SQLite compares it: letters of ASCII are of either case.
  private static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
