import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// What the rows of a table, and the entries of its indexes, tell of its columns, place by place.
struct ColumnEvidence {
  /// What the values in one place of the rows are like.
  struct Place {
    /// Values that are not NULL.
    var count = 0

    /// How many of them are of each class.
    var integers = 0
    var reals = 0
    var texts = 0
    var blobs = 0

    /// The range of the integers.
    var low = Int64.max
    var high = Int64.min

    /// Integers that are neither 0 nor 1.
    var notBoolean = 0

    /// Blobs that do not have the sixteen bytes of a UUID.
    var notUUID = 0

    /// The places in indexes whose entries have the values of this place: the number of columns of the index, and which.
    var indexes: Set<IndexPlace> = []
  }

  /// A column of some index.
  struct IndexPlace: Hashable {
    var width: Int
    var column: Int
  }

  /// The places of a row.
  fileprivate(set) var places: [Place]

  /// Whether some rows have fewer fields than others or than the table has columns: columns were added after them.
  fileprivate(set) var hasShortRows = false

  /// How many rows were looked at.
  fileprivate(set) var rowCount = 0

  /// The highest key that was seen in each table, by its name in the layout.
  fileprivate(set) var highestKeys: [String: Int64] = [:]

  /// Values that contradict the rest may be damage: as many as one in so many do not count.
  private static let tolerance = 50

  fileprivate init(columnCount: Int) { places = [Place](repeating: Place(), count: columnCount) }

  /// Whether any row has a value in a place.
  func hasValues(_ place: Int) -> Bool { places.indices.contains(place) && places[place].count > 0 }

  /// For each place, which columns of the table can stand there.
  ///
  /// - Parameter isStrict: whether mandatory values are taken to be there, which those of older versions need not be.
  func fits(_ table: TableLayout, _ layout: StoreLayout, _ schema: ExpectedSchema, isStrict: Bool) -> [[Bool]] {
    let mandatory = table.columns.map { isStrict && isMandatory($0, table, layout) }
    let indexes = indexedColumns(of: table, layout)
    return places.indices.map { place in
      table.columns.indices.map { column in
        // The first three are the same everywhere.
        if place < 3 || column < 3 { return place == column }
        if mandatory[column], (rowCount - places[place].count) * Self.tolerance > rowCount { return false }
        return fits(places[place], table.columns[column], layout, schema)
          && places[place].indexes.allSatisfy { indexes[$0]?.contains(table.columns[column].name) ?? true }
      }
    }
  }

  /// Whether every row of a table has a value in a column.
  private func isMandatory(_ column: ColumnLayout, _ table: TableLayout, _ layout: StoreLayout) -> Bool {
    guard case .attribute(let key, _) = column.role, key.entityName == table.rootEntityName,
      let attribute = layout.model.entities[key.entityName]?.properties[key.name]?.attribute
    else { return false }
    return !attribute.traits.isOptional && !attribute.isDerived
  }

  /// The names of the columns that stand in each place of the table's indexes.
  private func indexedColumns(of table: TableLayout, _ layout: StoreLayout) -> [IndexPlace: Set<String>] {
    var result: [IndexPlace: Set<String>] = [:]
    for index in layout.indexes where index.tableName == table.name {
      for (place, column) in index.columns.enumerated() {
        result[IndexPlace(width: index.columns.count, column: place), default: []].insert(column.name)
      }
    }
    return result
  }

  private func fits(_ place: Place, _ column: ColumnLayout, _ layout: StoreLayout, _ schema: ExpectedSchema) -> Bool {
    func isRare(_ count: Int) -> Bool { count * Self.tolerance <= place.count && count < place.count }
    guard place.count > 0 else { return true }
    switch column.type {
    case .integer: guard isRare(place.count - place.integers) else { return false }
    case .float, .timestamp: guard isRare(place.texts + place.blobs) else { return false }
    case .decimal: guard isRare(place.blobs) else { return false }
    case .varchar: guard isRare(place.count - place.texts) else { return false }
    case .blob: guard isRare(place.count - place.blobs) else { return false }
    }
    switch column.role {
    case .attribute(_, .boolean), .compositeLeaf(_, _, .boolean): return isRare(place.notBoolean)
    case .attribute(_, .uuid), .compositeLeaf(_, _, .uuid): return isRare(place.notUUID)
    case .attribute(_, .integer16), .compositeLeaf(_, _, .integer16):
      return place.low >= Int64(Int16.min) && place.high <= Int64(Int16.max)
    case .attribute(_, .integer32), .compositeLeaf(_, _, .integer32):
      return place.low >= Int64(Int32.min) && place.high <= Int64(Int32.max)
    case .toOne(let key):
      guard place.low > 0 else { return false }
      guard
        let name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName,
        let target = layout.entity(named: name), let highest = highestKeys[target.tableName]
      else { return true }
      return place.high <= highest.addingClamped(highest / 4 + 64)
    case .owner(let key):
      guard place.low > 0 else { return false }
      guard let target = layout.entity(named: key.entityName), let highest = highestKeys[target.tableName] else {
        return true
      }
      return place.high <= highest.addingClamped(highest / 4 + 64)
    case .toOneEntity(let key):
      guard
        let name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName,
        let target = layout.entity(named: name), let numbers = schema.entityNumbers(ofTable: target.tableName)
      else { return true }
      return numbers.contains(place.low) && numbers.contains(place.high)
    case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneOrder, .ownerOrder: return true
    }
  }
}

extension ColumnEvidence.Place {
  fileprivate mutating func learn(_ value: Value) {
    switch value {
    case .null: return
    case .integer(let number):
      integers += 1
      low = min(low, number)
      high = max(high, number)
      if number != 0, number != 1 { notBoolean += 1 }
    case .real: reals += 1
    case .text: texts += 1
    case .blob(let bytes):
      blobs += 1
      if bytes.count != 16 { notUUID += 1 }
    }
    count += 1
  }
}

extension ColumnEvidence {
  /// How many pages of each table, and how many pages of indexes, are looked at at most.
  private static let pageLimit = 64
  private static let indexPageLimit = 2048

  /// How many entries an index page must share with the rows that were looked at.
  private static let entryMinimum = 4

  /// A value as it is compared: numbers by what they are, not by how they are stored.
  private static func key(_ value: Value) -> Int? {
    switch value {
    case .null: nil
    case .integer, .real: value.real?.hashValue
    case .text(let text): text.bytes.hashValue
    case .blob(let bytes): bytes.hashValue
    }
  }

  /// Looks at the rows of tables, by the entity numbers in them, and at the entries of indexes.
  ///
  /// - Returns: what was seen, by the names of the tables in the layout; none of tables that no row was found of.
  static func gather(
    _ tables: [TableLayout], _ schema: ExpectedSchema, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> [String: ColumnEvidence] {
    guard let layout = schema.layout else { return [:] }
    let wanted = Set(tables.map(\.name))
    var owners: [Int64: TableLayout] = [:]
    for table in layout.tables {
      for entity in schema.entities(ofTable: table.name) { owners[Int64(entity.number)] = table }
    }
    func owner(_ record: SQLiteFormat.Record, _ width: Int) -> TableLayout? {
      guard width >= 4, record.value(at: 0)?.isNull == true, let number = record.value(at: 1)?.integer,
        let table = owners[number], width <= table.columns.count
      else { return nil }
      switch record.value(at: 2) {
      case .integer, .null: return table
      case nil, .real?, .text?, .blob?: return nil
      }
    }
    let rows = PageRows(reader)
    var pages: [String: [UInt32]] = [:]
    var highest: [String: Int64] = [:]
    for page in 1...map.pageCount where map.look(page) == .tableLeaf && map.fieldCount(page) >= 4 {
      var table: TableLayout?
      try rows.forEach(on: page, step: 1 << 20) { row in table = owner(row.record, row.record.columnCount) }
      guard let table else { continue }
      highest[table.name] = max(highest[table.name] ?? 0, map.lastKey(page))
      if wanted.contains(table.name) { pages[table.name, default: []].append(page) }
    }
    var result: [String: ColumnEvidence] = [:]
    var samples: [(table: String, rows: [Int64: [Int?]])] = []
    for table in tables {
      guard let all = pages[table.name] else { continue }
      var evidence = ColumnEvidence(columnCount: table.columns.count)
      evidence.highestKeys = highest
      var sample: [Int64: [Int?]] = [:]
      for index in stride(from: 0, to: all.count, by: max(1, all.count / pageLimit)) {
        try rows.forEach(on: all[index]) { row in
          let values = row.record.values
          guard owner(row.record, values.count)?.name == table.name else { return }
          evidence.rowCount += 1
          if values.count < table.columns.count { evidence.hasShortRows = true }
          if row.record.isComplete {
            for (place, value) in values.enumerated() { evidence.places[place].learn(value) }
            sample[row.rowid] = values.map(key)
          } else {
            // Of a value that goes on elsewhere its class is known.
            for (place, type) in row.record.serialTypes.enumerated() where type.rawValue != 0 {
              evidence.places[place].learn(StorageClasses(serialType: type.rawValue))
            }
          }
        }
      }
      result[table.name] = evidence
      samples.append((table.name, sample))
    }
    try learnIndexes(&result, samples, rows, map)
    return result
  }

  /// Compares the entries of index pages with the rows they lead to.
  private static func learnIndexes(
    _ result: inout [String: ColumnEvidence], _ samples: [(table: String, rows: [Int64: [Int?]])], _ rows: PageRows,
    _ map: PageMap
  ) throws(SalvageError) {
    let pages = (1...map.pageCount).filter { map.look($0) == .indexLeaf && map.fieldCount($0) >= 2 }
    for index in stride(from: 0, to: pages.count, by: max(1, pages.count / indexPageLimit)) {
      var entries: [(rowid: Int64, values: [Int?])] = []
      let width = map.fieldCount(pages[index]) - 1
      try rows.forEachEntry(on: pages[index]) { record in
        guard record.isComplete, record.columnCount == width + 1, let rowid = record.value(at: width)?.integer else {
          return
        }
        entries.append((rowid, record.values.dropLast().map(key)))
      }
      for field in 0..<width {
        // The one table and place that all entries agree with.
        var matches: [(table: String, place: Int)] = []
        for sample in samples {
          let shared = entries.compactMap { entry in
            sample.rows[entry.rowid].flatMap { row in entry.values[field].map { (row, $0) } }
          }
          guard shared.count >= entryMinimum, Set(shared.map(\.1)).count > 1,
            let places = result[sample.table]?.places.count
          else { continue }
          for place in 3..<max(3, places) {
            let agreeing = shared.count { $0.0.indices.contains(place) && $0.0[place] == $0.1 }
            if agreeing * 20 >= shared.count * 19 { matches.append((sample.table, place)) }
          }
        }
        guard matches.count == 1, let match = matches.first else { continue }
        result[match.table]?.places[match.place].indexes.insert(IndexPlace(width: width, column: field))
      }
    }
  }
}

extension ColumnEvidence.Place {
  fileprivate mutating func learn(_ storage: StorageClasses) {
    switch storage {
    case .integer: integers += 1
    case .real: reals += 1
    case .text: texts += 1
    case .blob:
      blobs += 1
      // No UUID goes on elsewhere.
      notUUID += 1
    default: return
    }
    count += 1
  }
}
