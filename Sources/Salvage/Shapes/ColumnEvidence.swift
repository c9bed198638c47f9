import ManagedObjectModel
internal import PersistentStore
internal import SQLiteFormat

/// The evidence on columns from a table's rows and index entries, by field.
struct ColumnEvidence {
  struct Place {
    var count = 0

    /// Values by class.
    var integers = 0
    var reals = 0
    var texts = 0
    var blobs = 0

    var low = Int64.max
    var high = Int64.min

    var notBoolean = 0

    /// Blobs without the sixteen bytes of a UUID.
    var notUUID = 0

    /// The index columns with this field's values.
    var indexes: Set<IndexPlace> = []
  }

  /// A column of an index.
  struct IndexPlace: Hashable {
    var width: Int
    var column: Int
  }

  fileprivate(set) var places: [Place]

  /// Whether rows lack fields, so columns were added later.
  fileprivate(set) var hasShortRows = false

  fileprivate(set) var rowCount = 0

  /// The highest key by table of the layout.
  fileprivate(set) var highestKeys: [String: Int64] = [:]

  /// One contradictory value in this many counts as damage.
  private static let tolerance = 50

  fileprivate init(columnCount: Int) { places = [Place](repeating: Place(), count: columnCount) }

  func hasValues(_ place: Int) -> Bool { places.indices.contains(place) && places[place].count > 0 }

  /// Returns the possible columns of each field.
  ///
  /// - Parameter isStrict: whether mandatory values must be present, which older versions may lack.
  func fits(_ table: TableLayout, _ layout: StoreLayout, _ schema: ExpectedSchema, isStrict: Bool) -> [[Bool]] {
    let mandatory = table.columns.map { isStrict && isMandatory($0, table, layout) }
    let indexes = indexedColumns(of: table, layout)
    return places.indices.map { place in
      table.columns.indices.map { column in
        // The first three columns never move.
        if place < 3 || column < 3 { return place == column }
        if mandatory[column], (rowCount - places[place].count) * Self.tolerance > rowCount { return false }
        return fits(places[place], table.columns[column], layout, schema)
          && places[place].indexes.allSatisfy { indexes[$0]?.contains(table.columns[column].name) ?? true }
      }
    }
  }

  /// Whether every row has a value in a column.
  private func isMandatory(_ column: ColumnLayout, _ table: TableLayout, _ layout: StoreLayout) -> Bool {
    guard case .attribute(let key, _) = column.role, key.entityName == table.rootEntityName,
      let attribute = layout.model.entities[key.entityName]?.properties[key.name]?.attribute
    else { return false }
    return !attribute.traits.isOptional && !attribute.isDerived
  }

  /// Returns the column names at each index position.
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
  private static let pageLimit = 64
  private static let indexPageLimit = 2048

  private static let entryMinimum = 4

  /// Returns a hash of a value, with numbers equal across storage classes.
  private static func key(_ value: Value) -> Int? {
    switch value {
    case .null: nil
    case .integer, .real: value.real?.hashValue
    case .text(let text): text.bytes.hashValue
    case .blob(let bytes): bytes.hashValue
    }
  }

  /// Reads rows, attributed by entity number, and index entries.
  ///
  /// - Returns: the evidence by table of the layout, for tables with rows.
  static func gather(
    _ tables: [TableLayout], _ schema: ExpectedSchema, _ reader: PageReader, _ map: PageMap
  ) throws -> [String: ColumnEvidence] {
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
            // The class of an incomplete value is known.
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

  /// Compares index entries with their rows.
  private static func learnIndexes(
    _ result: inout [String: ColumnEvidence], _ samples: [(table: String, rows: [Int64: [Int?]])], _ rows: PageRows,
    _ map: PageMap
  ) throws {
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
      // A UUID never overflows.
      notUUID += 1
    default: return
    }
    count += 1
  }
}
