internal import SQLiteFormat

/// The rows of `sqlite_schema` that can be found, on page 1 or on any other page.
struct SchemaSearch {
  /// The entries, those with statements of tables first come as they are found.
  var entries: [SchemaEntry] = []

  /// Whether the whole schema was read, so that no other table exists.
  var isWhole = false

  /// Whether the first page is a list of tables without any.
  var isEmpty = false

  /// The roots that the file lacks, by ``key(_:_:)``.
  var rootsBehindEnd: [String: UInt32] = [:]

  /// Reads the schema from page 1 down, then from pages that look like its leaves.
  static func find(_ reader: PageReader, _ map: PageMap) throws(SalvageError) -> SchemaSearch {
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
      // Page 1 may still have cells, whatever its header says.
      if map.pageCount >= 1, crawl.map.fate(1) != .tree { _ = try search.read(1, reader, &crawl.map, into: &seen) }
      // Pages that its tree leads to have what is left of their cells.
      for page in crawl.trees[0].gaps.map(\.page)
      where page > 1 && page <= map.pageCount && crawl.map.fate(page) == .unclaimed {
        _ = try search.read(page, reader, &crawl.map, into: &seen)
      }
      for page in 1...max(1, map.pageCount)
      where map.look(page) == .tableLeaf && map.fieldCount(page) == 5 && crawl.map.fate(page) == .unclaimed {
        _ = try search.read(page, reader, &crawl.map, into: &seen)
      }
    }
    search.entries.sort { $0.rowid < $1.rowid }
    search.removeSharedRoots(map)
    return search
  }

  /// Reads the entries of a page; whether all of its cells are entries.
  private mutating func read(
    _ page: UInt32, _ reader: PageReader, _ map: inout PageMap, into seen: inout Set<String>
  ) throws(SalvageError) -> Bool {
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer) else { return false }
    let isCopy = page == 1 && map.look(1) == .tableLeaf && buffer[0] == 13 && buffer[100] != 13
    let start = page == 1 && !isCopy ? DatabaseHeader.length : 0
    var scan = LeafScan()
    scan.read(
      buffer.span, start: start, kind: .tableLeaf, shape: .schema, geometry: reader.geometry,
      encoding: reader.layout.encoding)
    var isWhole = !scan.isDamaged
    let chains = OverflowChains(reader)
    for cell in scan.cells {
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
      if seen.insert("\(entry.kind.rawValue) \(entry.name)").inserted { entries.append(entry) }
    }
    return isWhole
  }

  /// One tree cannot be two tables, and no root is page 1 or behind the end.
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

  /// What stands for a table or an index by its name.
  static func key(_ isIndex: Bool, _ name: String) -> String { (isIndex ? "index " : "table ") + name.lowercased() }
}
