internal import SQLiteFormat

/// An index whose entries can be compared with the rows of its table, value by value.
struct ComparableIndex {
  /// A value of an entry.
  enum Field {
    /// It is the field of the table's records.
    case field(Int)

    case rowid
  }

  /// The place of the index in the list of trees.
  var tree: Int

  /// What its values are, in their order; the rowid that ends each entry is not among them.
  var fields: [Field]
}

extension Crawl {
  /// The indexes of a table that have an entry for each row and nothing but columns that records hold.
  func comparableIndexes(of table: Int) -> [ComparableIndex] {
    guard let definition = trees[table].definition, trees[table].isListed, trees[table].doubt == nil else { return [] }
    return trees.indices.compactMap { place in
      let index = trees[place]
      guard index.kind == .index, index.table == table, index.isListed, index.isWalked, !index.isPartialIndex,
        !index.indexedColumns.isEmpty
      else { return nil }
      var fields: [ComparableIndex.Field] = []
      for name in index.indexedColumns {
        guard let name, let column = definition.column(named: name) else { return nil }
        if column == definition.rowidAlias {
          fields.append(.rowid)
        } else if let field = definition.storedColumns.firstIndex(of: column) {
          fields.append(.field(field))
        } else {
          return nil
        }
      }
      return ComparableIndex(tree: place, fields: fields)
    }
  }
}

/// Compares the rows of one table with its indexes.
///
/// First a sum for each page of rows and each index that is whole: all of its rows less all of its entries. Only where that
/// is not zero single rows are looked at, so many at a time.
struct IndexComparison {
  /// How many rows are looked at with one walk over an index.
  private static let rowsAtOnce = 1 << 16

  private static let maximumWalks = 16

  /// How many pages an entry that is read may fill.
  private static let longestEntry = 16

  let context: RowContext
  let crawl: Crawl
  let table: Int
  let leaves: [UInt32]
  private let firstKeys: [Int64]
  private let indexes: [ComparableIndex]

  /// The pages that are of another time or store as a whole.
  private(set) var pages: [UInt32: DoubtReason] = [:]

  /// The rows of other pages that an index contradicts.
  private(set) var rows: [UInt32: Set<Int64>] = [:]

  /// The pages all of whose rows an index that is whole has as they are.
  private(set) var agreeing = PageSet()

  /// A row that an index contradicts: it does not list it, or lists it otherwise.
  private struct Conflict {
    var leaf: UInt32
    var rowid: Int64

    /// The page with the other entry; 0 where no entry has the row.
    var entryPage: UInt32
  }

  private var conflicts: [Conflict] = []

  /// The rows that indexes contradict which have hardly any row of the table as it is, one list for each index.
  private var disowned: [[Conflict]] = []

  /// How many indexes that are whole have most rows of the table as they are.
  private var agreeingIndexes = 0

  init(_ context: RowContext, table: Int, leaves: [UInt32], indexes: [ComparableIndex]) {
    self.context = context
    crawl = context.crawl
    self.table = table
    self.leaves = leaves
    firstKeys = leaves.map { [map = crawl.map] in map.firstKey($0) }
    self.indexes = indexes
  }

  mutating func run() throws(SalvageError) {
    for index in indexes {
      let isWhole = crawl.trees[index.tree].isComplete
      guard isWhole else {
        try look(at: Array(leaves.indices), index, isWhole: false)
        continue
      }
      let (suspects, isRead) = try uneven(index)
      try look(at: suspects, index, isWhole: isRead)
    }
    settle()
    settleDisowned()
  }

  // MARK: Sums

  /// The places of pages whose rows are not what an index that is whole has of them; of the others those are noted that
  /// agree, and with more than one value.
  ///
  /// - Returns: those places, and whether every entry could be read.
  private mutating func uneven(
    _ index: ComparableIndex
  ) throws(SalvageError) -> (suspects: [Int], isRead: Bool) {
    var sums = [Int](repeating: 0, count: leaves.count)
    var previous: (place: Int, key: Int?) = (-1, nil)
    var isVaried = [Bool](repeating: false, count: leaves.count)
    try forEachRow(on: leaves.indices, index) { place, rowid, key in
      sums[place] &+= Self.mixed(rowid, key)
      if previous.place == place, previous.key != key { isVaried[place] = true }
      previous = (place, key)
    }
    let isRead = try forEachEntry(of: index) { rowid, key, _ in
      if let place = place(of: rowid) { sums[place] &-= Self.mixed(rowid, key) }
    }
    for place in leaves.indices where sums[place] == 0 && isVaried[place] { _ = agreeing.insert(leaves[place]) }
    return (leaves.indices.filter { sums[$0] != 0 }, isRead)
  }

  /// A number that only the same rowid with the same values gives.
  private static func mixed(_ rowid: Int64, _ key: Int?) -> Int {
    var hasher = Hasher()
    hasher.combine(rowid)
    hasher.combine(key)
    return hasher.finalize()
  }

  /// The place of the page that can have a rowid; nil where none can.
  private func place(of rowid: Int64) -> Int? {
    var low = 0
    var high = firstKeys.count
    while low < high {
      let middle = (low + high) / 2
      if firstKeys[middle] <= rowid { low = middle + 1 } else { high = middle }
    }
    return low > 0 && rowid <= crawl.map.lastKey(leaves[low - 1]) ? low - 1 : nil
  }

  // MARK: Single rows

  /// What is known of a row that is looked at.
  private struct Looked {
    var leaf: UInt32
    var key: Int?
    var isListed = false
    var entryPage: UInt32 = 0
  }

  /// Compares the rows of some pages with an index one by one, and keeps what it contradicts.
  private mutating func look(at suspects: [Int], _ index: ComparableIndex, isWhole: Bool) throws(SalvageError) {
    var found: [Conflict] = []
    var compared = 0
    var walks = 0
    var rest = suspects[...]
    while !rest.isEmpty, walks < Self.maximumWalks {
      var count = 0
      let part = rest.prefix { place in
        defer { count += crawl.map.cellCount(leaves[place]) }
        return count < Self.rowsAtOnce
      }
      rest = rest.dropFirst(part.count)
      walks += 1
      var looked: [Int64: Looked] = [:]
      try forEachRow(on: part, index) { place, rowid, key in
        if looked[rowid] == nil { looked[rowid] = Looked(leaf: leaves[place], key: key) }
      }
      _ = try forEachEntry(of: index) { rowid, key, page in
        guard let row = looked[rowid], !row.isListed else { return }
        if row.key == nil || key == nil || row.key == key {
          looked[rowid]?.isListed = true
        } else {
          looked[rowid]?.entryPage = page
        }
      }
      for (rowid, row) in looked where isWhole || row.isListed || row.entryPage != 0 {
        compared += 1
        if !row.isListed { found.append(Conflict(leaf: row.leaf, rowid: rowid, entryPage: row.entryPage)) }
      }
    }
    // Of an index whose tree leads to what it has of most rows the rest is believed; one that has nothing of them as it is
    // says nothing of the rows.
    let total = isWhole ? leaves.reduce(0) { $0 + crawl.map.cellCount($1) } : compared
    guard found.count * 2 <= total else {
      if isWhole, try tells(index) { disowned.append(found) }
      return
    }
    if isWhole { agreeingIndexes += 1 }
    conflicts += found
    for place in rest where isWhole { pages[leaves[place]] = .contradicted }
  }

  // MARK: Which page is at fault

  /// Decides of each page with rows that are contradicted whether it, or the pages of the indexes, are of another time.
  ///
  /// A page of rows of another time is contradicted by many pages of an index, and such a page of an index contradicts
  /// many pages of rows.
  private mutating func settle() {
    var ofEntryPages: [UInt32: Int] = [:]
    var ofLeaves: [UInt32: [Int64: UInt32]] = [:]
    for conflict in conflicts {
      if conflict.entryPage != 0 { ofEntryPages[conflict.entryPage, default: 0] += 1 }
      let known = ofLeaves[conflict.leaf]?[conflict.rowid] ?? 0
      ofLeaves[conflict.leaf, default: [:]][conflict.rowid] = max(known, conflict.entryPage)
    }
    for (leaf, rows) in ofLeaves {
      let own = rows.values.count { page in (ofEntryPages[page] ?? 0) <= rows.count }
      // A single row is not the sign of a page of another time, unless it is all that the page has.
      if own * 2 >= rows.count, rows.count > 1 || crawl.map.cellCount(leaf) == 1 {
        pages[leaf] = .contradicted
      } else {
        self.rows[leaf] = Set(rows.keys)
      }
    }
  }

  /// Whether an index that has hardly any row of its table tells of the rows: not where it is empty, nor where its page is a
  /// copy of another one.
  private func tells(_ index: ComparableIndex) throws(SalvageError) -> Bool {
    let pages = crawl.trees[index.tree].leaves
    guard crawl.cellCount(ofIndex: index.tree) > 0 else { return false }
    guard pages.count == 1 else { return true }
    return try PageTwins(crawl).twins(of: pages[0], in: crawl).isEmpty
  }

  /// Decides where no index has the rows: several that say so are not all of another time, and of one and a single page
  /// either may be.
  private mutating func settleDisowned() {
    guard agreeingIndexes == 0, agreeing.count == 0, disowned.count > 1 || disowned.count == 1 && leaves.count == 1
    else { return }
    for conflict in disowned.joined() { pages[conflict.leaf] = .contradicted }
  }

  // MARK: Rows and entries

  /// Calls a function with each row of some pages that lies between its page's keys: the place of its page, its rowid, and
  /// what stands for its values; nil for that where a value is not on the page.
  private func forEachRow(
    on places: some Sequence<Int>, _ index: ComparableIndex, _ body: (Int, Int64, Int?) -> Void
  ) throws(SalvageError) {
    let reader = PageRows(crawl.reader)
    for place in places {
      try reader.forEach(on: leaves[place]) { row in
        guard self.place(of: row.rowid) == place else { return }
        body(place, row.rowid, key(of: row, index))
      }
    }
  }

  /// What stands for the values that an index has of a row; nil where one of them is not on the row's page.
  func key(of row: PageRows.Row, _ index: ComparableIndex) -> Int? {
    var hasher = Hasher()
    for field in index.fields {
      switch field {
      case .rowid: hasher.combine(IndexedValues.key(.integer(row.rowid)))
      case .field(let place):
        if let value = row.record.value(at: place) {
          hasher.combine(IndexedValues.key(value))
        } else if place >= row.record.columnCount, let value = addedValue(place) {
          hasher.combine(IndexedValues.key(value))
        } else {
          return nil
        }
      }
    }
    return hasher.finalize()
  }

  /// The value of a column that was added after a row was written; nil where it is not known.
  private func addedValue(_ field: Int) -> Value? {
    guard let definition = crawl.trees[table].definition, definition.storedColumns.indices.contains(field) else {
      return nil
    }
    return definition.defaultValue(
      ofColumn: definition.storedColumns[field], encoding: crawl.reader.layout.encoding)
  }

  /// Calls a function with each entry of an index: the rowid, what stands for its values, and its page.
  ///
  /// - Returns: whether all of them could be read.
  private func forEachEntry(
    of index: ComparableIndex, _ body: (Int64, Int?, UInt32) -> Void
  ) throws(SalvageError) -> Bool {
    let tree = crawl.trees[index.tree]
    var buffer = crawl.reader.makeBuffer()
    var payload: [UInt8] = []
    var isRead = true
    for page in tree.leaves + tree.innerPages {
      let fate = crawl.map.fate(page)
      guard fate == .tree || fate == .placed, try crawl.reader.readPlace(page, into: &buffer) else { continue }
      let start = page == 1 ? DatabaseHeader.length : 0
      guard let kind = PageKind(rawValue: buffer[start]), !kind.isTable, let count = buffer.span.uint16(at: start + 3)
      else { continue }
      // No byte of a sound page belongs to two cells.
      var room = crawl.reader.usableSize
      for place in 0..<count {
        guard let offset = buffer.span.uint16(at: start + kind.headerLength + 2 * place),
          let cell = LeafCell(buffer.span, kind: kind, at: offset, index: place, geometry: crawl.reader.geometry),
          room >= cell.end - cell.offset, try read(cell, buffer, into: &payload),
          let record = Record(payload: payload[...], encoding: crawl.reader.layout.encoding),
          let rowid = record.value(at: index.fields.count)?.integer
        else {
          isRead = false
          continue
        }
        room -= cell.end - cell.offset
        var hasher = Hasher()
        for field in index.fields.indices { hasher.combine(IndexedValues.key(record.value(at: field))) }
        body(rowid, hasher.finalize(), page)
      }
    }
    return isRead
  }

  /// Reads the record of an entry; false where a part of it cannot be read, or it is very long.
  func read(
    _ cell: LeafCell, _ page: [UInt8], into payload: inout [UInt8]
  ) throws(SalvageError) -> Bool {
    payload.removeAll(keepingCapacity: true)
    payload.append(contentsOf: page[cell.payload..<(cell.payload + cell.local)])
    guard cell.overflow != 0 else { return true }
    guard cell.length <= Self.longestEntry * crawl.reader.pageSize else { return false }
    switch try context.complete(&payload, of: cell) {
    case .whole, .contested, .leadingOn: return payload.count == cell.length
    case .broken, .torn, .shared, .behindEnd: return false
    }
  }
}
