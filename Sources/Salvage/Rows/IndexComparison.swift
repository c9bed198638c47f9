import Platform
internal import SQLiteFormat

/// An index with entries comparable to rows by value.
struct ComparableIndex {
  enum Field: Equatable {
    case field(Int)

    case rowid
  }

  var tree: Int

  /// The final rowid is not included.
  var fields: [Field]
}

extension Crawl {
  /// Returns full indexes of stored columns only.
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

/// Compares a table with its indexes.
///
/// A sum per leaf and intact index comes first: rows minus entries. Only where it is nonzero, rows are compared singly.
struct IndexComparison {
  /// The rows compared per walk.
  private static let rowsAtOnce = 1 << 16

  private static let maximumWalks = 16

  /// The most pages read for an entry.
  private static let longestEntry = 16

  let context: RowContext
  let crawl: Crawl
  let table: Int
  let leaves: [UInt32]
  private let firstKeys: [Int64]
  private let indexes: [ComparableIndex]

  private(set) var found = Contradictions()

  /// The pages that an intact index fully confirms.
  private(set) var agreeing = PageSet()

  private struct Conflict {
    var leaf: UInt32
    var rowid: Int64

    /// The page with a differing entry; 0 without an entry.
    var entryPage: UInt32
  }

  private var conflicts: [Conflict] = []

  /// The conflicts of each index that matches hardly any row.
  private var disowned: [[Conflict]] = []

  /// Intact indexes that match most rows.
  private var agreeingIndexes = 0

  init(_ context: RowContext, table: Int, leaves: [UInt32], indexes: [ComparableIndex]) {
    self.context = context
    crawl = context.crawl
    self.table = table
    self.leaves = leaves
    firstKeys = leaves.map { [map = crawl.map] in map.firstKey($0) }
    self.indexes = indexes
  }

  mutating func run() throws {
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

  /// Returns leaves with a nonzero sum; confirms the others if their values vary.
  private mutating func uneven(_ index: ComparableIndex) throws -> (suspects: [Int], isRead: Bool) {
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

  /// Hashes a rowid and the hash of its values, which is random in each process.
  static func mixed(_ rowid: Int64, _ key: Int?) -> Int {
    // The finalizer of splitmix64.
    var bits = UInt64(bitPattern: rowid) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(truncatingIfNeeded: key ?? 1)
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return Int(truncatingIfNeeded: bits ^ bits >> 31)
  }

  private func place(of rowid: Int64) -> Int? {
    let low = firstKeys.partitioningIndex { $0 > rowid }
    return low > 0 && rowid <= crawl.map.lastKey(leaves[low - 1]) ? low - 1 : nil
  }

  // MARK: Single rows

  /// A row under comparison.
  private struct Looked {
    var leaf: UInt32
    var key: Int?
    var isListed = false
    var entryPage: UInt32 = 0
  }

  /// Compares rows with an index one by one, and keeps the conflicts.
  private mutating func look(at suspects: [Int], _ index: ComparableIndex, isWhole: Bool) throws {
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
    // An index that matches most rows is believed for the rest; others are no evidence.
    let total = isWhole ? leaves.reduce(0) { $0 + crawl.map.cellCount($1) } : compared
    guard found.count * 2 <= total else {
      if isWhole, try tells(index) { disowned.append(found) }
      return
    }
    if isWhole { agreeingIndexes += 1 }
    conflicts += found
    for place in rest where isWhole { self.found.pages[leaves[place]] = .contradicted }
  }

  // MARK: Which page is at fault

  /// Decides for each contradicted page whether it or the index pages are of another time.
  ///
  /// An outdated leaf conflicts with many index pages; an outdated index page with many leaves.
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
      // A single row does not discredit a page, unless it is alone there.
      if own * 2 >= rows.count, rows.count > 1 || crawl.map.cellCount(leaf) == 1 {
        found.pages[leaf] = .contradicted
      } else {
        found.rows[leaf] = Set(rows.keys)
      }
    }
  }

  /// Whether a hardly matching index is neither empty nor a copied page.
  private func tells(_ index: ComparableIndex) throws -> Bool {
    let pages = crawl.trees[index.tree].leaves
    guard crawl.cellCount(ofIndex: index.tree) > 0 else { return false }
    guard pages.count == 1 else { return true }
    return try PageTwins(crawl).twins(of: pages[0], in: crawl).isEmpty
  }

  /// Decides for rows without a matching index: several indexes prevail; with one index and one page, either may be
  /// wrong.
  private mutating func settleDisowned() {
    guard agreeingIndexes == 0, agreeing.count == 0, disowned.count > 1 || disowned.count == 1 && leaves.count == 1
    else { return }
    for conflict in disowned.joined() { found.pages[conflict.leaf] = .contradicted }
  }

  // MARK: Rows and entries

  /// Calls a function with each row in its page's key range.
  ///
  /// The key is a hash of the values, nil if one is on another page.
  private func forEachRow(
    on places: some Sequence<Int>, _ index: ComparableIndex, _ body: (Int, Int64, Int?) -> Void
  ) throws {
    let reader = PageRows(crawl.reader)
    for place in places {
      try reader.forEach(on: leaves[place]) { row in
        guard self.place(of: row.rowid) == place else { return }
        body(place, row.rowid, key(of: row, index))
      }
    }
  }

  /// Returns a hash of the indexed values; nil if one is on another page.
  func key(of row: PageRows.Row, _ index: ComparableIndex) -> Int? {
    var hasher = Hasher()
    for field in index.fields {
      switch field {
      case .rowid: hasher.combine(IndexedValues.key(.integer(row.rowid)))
      case .field(let place):
        let added = place >= row.record.columnCount ? addedValue(place) : nil
        guard let value = row.record.value(at: place) ?? added else { return nil }
        hasher.combine(IndexedValues.key(value))
      }
    }
    return hasher.finalize()
  }

  /// Returns the default of a column added after the row.
  private func addedValue(_ field: Int) -> Value? {
    guard let definition = crawl.trees[table].definition, definition.storedColumns.indices.contains(field) else {
      return nil
    }
    return definition.defaultValue(ofColumn: definition.storedColumns[field], encoding: crawl.reader.layout.encoding)
  }

  /// Calls a function with each entry.
  ///
  /// The key is a hash of the values. Returns whether all entries were readable.
  private func forEachEntry(of index: ComparableIndex, _ body: (Int64, Int?, UInt32) -> Void) throws -> Bool {
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

  /// Reads an entry's record; false if incomplete or very long.
  func read(_ cell: LeafCell, _ page: [UInt8], into payload: inout [UInt8]) throws -> Bool {
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
