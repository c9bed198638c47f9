import Platform
internal import SQLiteFormat

/// Compares pages readable in both the database file and its log or journal, to see whether they belong together.
///
/// Unreadable content proves no mismatch. Links between the files mean that SQLite wrote both for one tree, so keys
/// must match. A changed row usually keeps one of its longer values.
struct SharedPages {
  /// The parent-child links between the two files.
  private(set) var links = CrossingLinks()

  /// Pages of one tree kind, with records of one length or a shared row.
  private(set) var alikePages = 0

  /// Pages of different kinds, or with records of different lengths.
  private(set) var unlikePages = 0

  /// Rows with a longer value in common.
  private(set) var relatedRows = 0

  /// Rows with several longer values, all different.
  private(set) var unrelatedRows = 0

  private static let pageLimit = 1024

  private static let rowLimit = 64

  /// The fewest rows that prove a log foreign.
  private static let rowMinimum = 8

  /// The least bytes of a value unlikely to match by chance.
  private static let longLength = 8

  /// Tables with the same rows in every store of an app.
  private static let commonTables = ["Z_PRIMARYKEY", "Z_MODELCACHE"]

  var hasOtherTrees: Bool { links.areContradicted }

  var hasOtherPages: Bool { unlikePages > alikePages }

  var hasOtherRows: Bool {
    unrelatedRows >= Self.rowMinimum && relatedRows * 8 <= unrelatedRows && links.contradicting >= links.fitting
  }

  init(_ crawl: Crawl, _ entries: [SchemaEntry]) throws {
    guard let overlay = crawl.reader.overlay, crawl.reader.main.count > 0 else { return }
    try addLinks(crawl, overlay)
    let same = entries.filter { entry in Self.commonTables.contains { isSame($0, entry.name) } }.map(\.rootPage)
    let numbers = overlay.images.keys.filter { $0 > 1 && $0 <= crawl.reader.layout.pageCount && !same.contains($0) }
      .sorted()
    let step = max(1, numbers.count / Self.pageLimit)
    var newer = crawl.reader.makeBuffer()
    var older = crawl.reader.makeBuffer()
    for index in stride(from: 0, to: numbers.count, by: step) {
      guard try crawl.reader.readPlace(numbers[index], into: &newer),
        try crawl.reader.readMain(numbers[index], into: &older)
      else { continue }
      add(newer.span, older.span, crawl.reader)
    }
  }

  private mutating func addLinks(_ crawl: Crawl, _ overlay: PageOverlay) throws {
    let map = crawl.map
    guard map.pageCount > 1 else { return }
    for page in 1...map.pageCount where map.look(page) == .tableInterior && map.fate(page) == .tree {
      let node = try InnerPage(page, crawl.reader)
      guard !node.isDamaged else { continue }
      for (index, child) in node.children.enumerated() where child <= map.pageCount {
        guard (overlay.images[child] == nil) != (overlay.images[page] == nil) else { continue }
        let low = index == 0 ? nil : node.keys[index - 1]
        let high = index < node.keys.count ? node.keys[index] : nil
        switch map.look(child) {
        case .tableLeaf, .tableInterior:
          guard map.fieldCount(child) > 0 || map.look(child) == .tableInterior else { continue }
          links.add((map.firstKey(child), map.lastKey(child)), above: low, upTo: high)
        case .indexLeaf, .indexInterior: links.addIndexPage()
        case .missing, .zero, .unknown, .broken, .linked: break
        }
      }
    }
  }

  private mutating func add(_ newer: Span<UInt8>, _ older: Span<UInt8>, _ reader: PageReader) {
    // A damaged page proves no mismatch; log pages are intact.
    guard let other = PageKind(rawValue: older[0]), PageSurvey.isPossible(older, other, 0, reader.usableSize) else {
      return
    }
    guard let kind = PageKind(rawValue: newer[0]), PageSurvey.isPossible(newer, kind, 0, reader.usableSize) else {
      unlikePages += 1
      return
    }
    guard kind.isTable == other.isTable else {
      unlikePages += 1
      return
    }
    guard kind == .tableLeaf, other == .tableLeaf else {
      alikePages += 1
      return
    }
    var known: [Int64: LeafCell] = [:]
    let before = Self.cells(older, reader.geometry)
    for cell in before { known[cell.rowid] = cell }
    let related = relatedRows
    var lengths: (Int?, Int?) = (nil, before.first.map { Self.longValues(older, $0).count })
    for (index, cell) in Self.cells(newer, reader.geometry).prefix(Self.rowLimit).enumerated() {
      if index == 0 { lengths.0 = Self.longValues(newer, cell).count }
      guard let before = known[cell.rowid] else { continue }
      let common = Self.commonValues(newer, cell, older, before)
      if common.equal > 0 { relatedRows += 1 } else if common.different > 1 { unrelatedRows += 1 }
    }
    if let one = lengths.0, let other = lengths.1, one != other, relatedRows == related {
      unlikePages += 1
    } else {
      alikePages += 1
    }
  }

  private static func cells(_ bytes: Span<UInt8>, _ geometry: PayloadGeometry) -> [LeafCell] {
    let count = bytes.uint16(at: 3) ?? 0
    return (0..<count).compactMap { index in
      bytes.uint16(at: PageKind.tableLeaf.headerLength + 2 * index).flatMap { offset in
        LeafCell(bytes, kind: .tableLeaf, at: offset, index: index, geometry: geometry)
      }
    }
  }

  private static func commonValues(
    _ one: Span<UInt8>, _ cell: LeafCell, _ other: Span<UInt8>, _ otherCell: LeafCell
  ) -> (equal: Int, different: Int) {
    var equal = 0
    var different = 0
    let (values, others) = (longValues(one, cell), longValues(other, otherCell))
    guard values.count == others.count else { return (0, 0) }
    for (value, second) in zip(values, others) {
      guard let value, let second else { continue }
      var isEqual = value.count == second.count
      var place = 0
      while isEqual, place < value.count {
        isEqual = one[value.lowerBound + place] == other[second.lowerBound + place]
        place += 1
      }
      if isEqual { equal += 1 } else { different += 1 }
    }
    return (equal, different)
  }

  /// The ranges of values; nil if short or on overflow pages.
  private static func longValues(_ bytes: Span<UInt8>, _ cell: LeafCell) -> [Range<Int>?] {
    let end = cell.payload + cell.local
    var offset = cell.payload
    guard let length = Varint.read(bytes, at: &offset, before: end), length > 0, length <= Int64(cell.local) else {
      return []
    }
    let headerEnd = cell.payload + Int(length)
    var body = headerEnd
    var values: [Range<Int>?] = []
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code)
      else { break }
      let isHere = body <= end && width <= end - body
      values.append(isHere && width >= longLength ? body..<(body + width) : nil)
      body = isHere ? body + width : end + 1
    }
    return values
  }
}
