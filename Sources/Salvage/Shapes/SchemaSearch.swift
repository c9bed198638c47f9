internal import SQLiteFormat

/// The rows of `sqlite_schema` found on page 1 or any other page.
struct SchemaSearch {
  /// The entries as found, tables with statements first.
  var entries: [SchemaEntry] = []

  /// Whether the schema is complete, so no other table exists.
  var isWhole = false

  var isEmpty = false

  /// The entries of pages outside the schema's tree, by kind and name.
  private(set) var guesses: Set<String> = []

  /// Whether a page names an object twice, as no page of a schema does.
  private var repeats = false

  /// The roots missing in the file, by ``key(_:_:)``.
  var rootsBehindEnd: [String: UInt32] = [:]

  /// Reads the schema from page 1, then from similar leaves.
  static func find(_ reader: PageReader, _ map: PageMap) throws -> SchemaSearch {
    var search = SchemaSearch()
    var tree = Tree(name: "sqlite_schema", kind: .table, root: 1, shape: .schema)
    tree.isListed = true
    var crawl = Crawl(reader: reader, map: map, trees: [tree])
    try crawl.walkRoots()
    var isSound = crawl.trees[0].gaps.isEmpty
    var seen: Set<String> = []
    for page in crawl.trees[0].leaves {
      if try !search.read(page, reader, &crawl.map, into: &seen) { isSound = false }
    }
    search.isWhole = isSound && !search.entries.isEmpty
    search.isEmpty =
      isSound && search.entries.isEmpty && crawl.trees[0].leaves == [1] && !map.isFirstPageMisplaced
      && map.cellCount(1) == 0 && reader.layout.header?.hasMagic == true
    if !isSound || search.entries.isEmpty {
      // Page 1 may have cells despite a damaged header.
      if map.pageCount >= 1, crawl.map.fate(1) != .tree { _ = try search.read(1, reader, &crawl.map, into: &seen) }
      // Damaged pages of its tree may still have cells.
      for page in crawl.trees[0].gaps.map(\.page)
      where page > 1 && page <= map.pageCount && crawl.map.fate(page) == .unclaimed {
        _ = try search.read(page, reader, &crawl.map, into: &seen)
      }
      var others: [[SchemaEntry]] = []
      for page in 1...max(1, map.pageCount)
      where map.look(page) == .tableLeaf && map.fieldCount(page) == 5 && crawl.map.fate(page) == .unclaimed {
        var (other, names) = (SchemaSearch(), seen)
        _ = try other.read(page, reader, &crawl.map, into: &names)
        if !other.repeats { others.append(other.entries) }
      }
      try search.add(others, reader, map, &seen)
    }
    for (index, entry) in search.entries.enumerated() where entry.kind == .table {
      if let sql = ownDeclarations[entry.name.lowercased()] { search.entries[index].sql = sql }
    }
    search.entries.sort { $0.rowid < $1.rowid }
    search.removeSharedRoots(map)
    return search
  }

  /// The declarations of SQLite's own tables, the same in every store (SQLite's build.c and analyze.c).
  private static let ownDeclarations = [
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
  ]

  /// Returns whether all cells are entries.
  private mutating func read(
    _ page: UInt32, _ reader: PageReader, _ map: inout PageMap, into seen: inout Set<String>
  ) throws -> Bool {
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer) else { return false }
    let isCopy = page == 1 && map.look(1) == .tableLeaf && buffer[0] == 13 && buffer[100] != 13
    let start = page == 1 && !isCopy ? DatabaseHeader.length : 0
    var scan = LeafCellScan()
    scan.read(
      buffer.span, start: start, kind: .tableLeaf, shape: .schema, geometry: reader.geometry,
      encoding: reader.layout.encoding)
    var isWhole = !scan.isDamaged
    let chains = OverflowChains(reader)
    var own: Set<String> = []
    for (index, cell) in scan.cells.enumerated() {
      guard entries.count < 65536, cell.length < 4 << 20 else { return false }
      var payload = Array(buffer[cell.payload..<(cell.payload + cell.local)])
      if cell.overflow != 0 {
        let outcome = try chains.follow(
          from: cell.overflow, length: cell.length, into: &payload, map: &map)
        guard case .whole = outcome else {
          isWhole = false
          continue
        }
      }
      guard let record = Record(payload: payload[...], encoding: reader.layout.encoding),
        let entry = SchemaEntry(record, rowid: cell.rowid)
      else {
        isWhole = false
        continue
      }
      let key = "\(entry.kind.rawValue) \(entry.name)"
      // A carved cell may be an older version of a row.
      if index < scan.cells.count - scan.carved, !own.insert(key).inserted { repeats = true }
      if seen.insert(key).inserted { entries.append(entry) }
    }
    return isWhole
  }

  /// Adds entries of pages outside the schema's tree, where rows of a table can look alike.
  ///
  /// The named roots decide: most of the available ones must have the right kind and number of columns. Without any, a
  /// statement must name a known table.
  private mutating func add(
    _ pages: [[SchemaEntry]], _ reader: PageReader, _ map: PageMap, _ seen: inout Set<String>
  ) throws {
    var undecided: [[SchemaEntry]] = []
    func add(_ page: [SchemaEntry]) {
      for entry in page where entries.count < 65536 && seen.insert("\(entry.kind.rawValue) \(entry.name)").inserted {
        entries.append(entry)
        guesses.insert("\(entry.kind.rawValue) \(entry.name)")
      }
    }
    for page in pages where !page.isEmpty {
      var (right, wrong) = (0, 0)
      for entry in page {
        guard let isRoot = try Self.hasRoot(entry, reader, map) else { continue }
        if isRoot { right += 1 } else { wrong += 1 }
      }
      if right > 0, right >= wrong { add(page) } else if right + wrong == 0 { undecided.append(page) }
    }
    for page in undecided where page.contains(where: { seen.contains("table \($0.tableName)") }) { add(page) }
  }

  /// Whether an entry's root can be its own; nil if unavailable.
  private static func hasRoot(
    _ entry: SchemaEntry, _ reader: PageReader, _ map: PageMap
  ) throws -> Bool? {
    guard entry.rootPage > 0, entry.rootPage <= map.pageCount else { return nil }
    let definition = entry.tableDefinition
    let isIndex = entry.kind == .index || definition?.isWithoutRowid == true
    var page = entry.rootPage
    for _ in 0..<20 {
      switch map.look(page) {
      case .indexLeaf, .indexInterior: return isIndex
      case .tableLeaf:
        guard !isIndex, let columns = definition?.storedColumns.count else { return isIndex ? false : nil }
        let fields = map.fieldCount(page)
        // Older rows lack added columns.
        guard fields > 0 else { return map.cellCount(page) == 0 ? true : nil }
        return fields <= columns && 2 * fields >= min(columns, 255)
      case .tableInterior:
        guard !isIndex else { return false }
        guard let child = try InnerPage(page, reader).children.first, child <= map.pageCount else { return nil }
        page = child
      case .missing, .zero, .unknown, .broken, .linked: return nil
      }
    }
    return nil
  }

  /// Removes roots shared by two tables, page 1, and roots beyond the end.
  private mutating func removeSharedRoots(_ map: PageMap) {
    var roots: Set<UInt32> = []
    for index in entries.indices where entries[index].rootPage != 0 {
      let root = entries[index].rootPage
      if root > map.pageCount, root <= InnerPage.highestPage, roots.insert(root).inserted {
        rootsBehindEnd[Self.key(entries[index].kind == .index, entries[index].name)] = root
      }
      if root == 1 || root > map.pageCount || !roots.insert(root).inserted { entries[index].rootPage = 0 }
    }
  }

  static func key(_ isIndex: Bool, _ name: String) -> String { (isIndex ? "index " : "table ") + name.lowercased() }
}
