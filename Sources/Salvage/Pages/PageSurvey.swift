internal import SQLiteFormat

/// Determines each page's apparent kind and range of rowids.
enum PageSurvey {
  /// The most links to nonconsecutive pages remembered.
  private static let maximumLinks = 1 << 16

  static func run(_ reader: PageReader, progress: (UInt32) throws -> Void) throws -> PageMap {
    var map = PageMap(pageCount: reader.pageCount)
    guard reader.pageCount > 0 else { return map }
    var buffer = reader.makeBuffer()
    var links: [UInt32: UInt32] = [:]
    var followers = 0
    var claims = OverflowClaims()
    for page in 1...reader.pageCount {
      if page & 1023 == 0 { try progress(page) }
      guard try reader.readPlace(page, into: &buffer) else { continue }
      look(at: buffer.span, page: page, reader, &map)
      if map.look(page) == .linked, let next = buffer.span.uint32(at: 0), next > 2 {
        if next == page &+ 1 { followers += 1 } else if links.count < Self.maximumLinks { links[page] = next }
      }
      if page > 1 { addClaims(buffer.span, page: page, reader, map, to: &claims) }
    }
    if let twin = try PageTwins.twinOfFirst(map, reader) {
      // Page 1 belongs to no table, so it is the void copy.
      map.twinOfFirst = twin
      map.claim(1, .damaged)
    } else if try reader.readPlace(1, into: &buffer) {
      addClaims(buffer.span, page: 1, reader, map, to: &claims)
    }
    map.contested = claims.contested
    // Chain pages are mostly consecutive, so each link identifies its page. If many aren't, pages were reused in any
    // order, and links cross by chance.
    map.hasCrossedLinks =
      links.count <= followers && links.contains { page, next in next - 1 != page && links[next - 1] == page + 1 }
    if try PointerMaps(reader).isThere {
      for page in 1...reader.pageCount where reader.layout.layout.isPointerMap(page) { map.claim(page, .special) }
    }
    let lock = reader.layout.layout.lockBytePage
    if lock <= reader.pageCount { map.claim(lock, .special) }
    return map
  }

  private static func addClaims(
    _ bytes: Span<UInt8>, page: UInt32, _ reader: PageReader, _ map: PageMap, to claims: inout OverflowClaims
  ) {
    switch map.look(page) {
    case .linked:
      if let next = bytes.uint32(at: 0), next >= 2, next <= reader.pageCount { claims.add(next) }
    case .tableLeaf, .indexLeaf, .indexInterior:
      let isCopy = page == 1 && bytes[DatabaseHeader.length] != 13 && bytes[DatabaseHeader.length] != 5
      let start = page == 1 && !isCopy ? DatabaseHeader.length : 0
      if let kind = PageKind(rawValue: bytes[start]) { claims.addCells(bytes, kind, start: start, reader) }
    case .missing, .zero, .unknown, .tableInterior, .broken: break
    }
  }

  private static func look(at bytes: Span<UInt8>, page: UInt32, _ reader: PageReader, _ map: inout PageMap) {
    let start = page == 1 ? DatabaseHeader.length : 0
    // Page 1 without its header may be a copy of another page.
    if page == 1, bytes[start] != 5, bytes[start] != 13, PageKind(rawValue: bytes[0]) != nil {
      if let kind = PageKind(rawValue: bytes[0]), isPossible(bytes, kind, 0, reader.usableSize) {
        map.isFirstPageMisplaced = true
        map.setLook(page, look(of: kind))
        setKeys(bytes, page: page, kind, 0, reader, &map)
        return
      }
    }
    if let kind = PageKind(rawValue: bytes[start]) {
      guard isPossible(bytes, kind, start, reader.usableSize), leadsToRecords(bytes, kind, start, reader) else {
        map.setLook(page, .broken)
        return
      }
      map.setLook(page, look(of: kind))
      setKeys(bytes, page: page, kind, start, reader, &map)
      return
    }
    if isZero(bytes) {
      map.setLook(page, .zero)
    } else if let next = bytes.uint32(at: 0), next <= reader.pageCount {
      map.setLook(page, .linked)
    } else {
      map.setLook(page, .unknown)
    }
  }

  private static func look(of kind: PageKind) -> PageMap.Look {
    switch kind {
    case .tableLeaf: .tableLeaf
    case .tableInterior: .tableInterior
    case .indexLeaf: .indexLeaf
    case .indexInterior: .indexInterior
    }
  }

  /// Whether a b-tree page's header is possible.
  ///
  /// The schema root may have one child and no cell if the content doesn't fit beside the file header.
  static func isPossible(_ bytes: Span<UInt8>, _ kind: PageKind, _ start: Int, _ usableSize: Int) -> Bool {
    guard let count = bytes.uint16(at: start + 3), let content = bytes.uint16(at: start + 5),
      let freeblock = bytes.uint16(at: start + 1)
    else { return false }
    let contentStart = content == 0 ? 65536 : content
    let isFull = count > 0 || kind.isLeaf || kind.isTable && start == DatabaseHeader.length
    return start + kind.headerLength + 2 * count <= contentStart && contentStart <= usableSize
      && freeblock <= usableSize - 4 && isFull && bytes[start + 7] <= 60 + 195
  }

  private static let pointerSample = 16

  /// Whether at least a quarter of a leaf's sampled pointers lead to records; otherwise its header counts as lost.
  private static func leadsToRecords(_ bytes: Span<UInt8>, _ kind: PageKind, _ start: Int, _ reader: PageReader) -> Bool
  {
    guard kind.isLeaf, let count = bytes.uint16(at: start + 3), count > 0 else { return true }
    var tried = 0
    var good = 0
    for index in stride(from: 0, to: count, by: max(1, count / pointerSample)) {
      tried += 1
      if record(bytes, kind, pointer: start + kind.headerLength + 2 * index, reader) != nil {
        good += 1
        if good >= 4 { return true }
      }
    }
    return good * 4 >= tried
  }

  /// Mixes words of all parts of a page, so that different pages hardly ever give the same.
  private static func sample(_ bytes: Span<UInt8>) -> UInt32 {
    let step = max(4, bytes.count / 32)
    return stride(from: step, through: bytes.count, by: step).reduce(0) { sample, end in
      (sample << 5 | sample >> 27) ^ (bytes.uint32(at: end - 4) ?? 0)
    }
  }

  /// Sets the first and last rowid, the first record's field count and the sample.
  private static func setKeys(
    _ bytes: Span<UInt8>, page: UInt32, _ kind: PageKind, _ start: Int, _ reader: PageReader, _ map: inout PageMap
  ) {
    let count = bytes.uint16(at: start + 3) ?? 0
    guard count > 0 else { return }
    map.setCellCount(page, count)
    map.setSample(page, sample(bytes))
    let pointers = start + kind.headerLength
    if kind != .tableInterior {
      // If the first cell is damaged, the next good one counts, as any bytes may resemble a record header.
      var fields = 0
      for index in 0..<count {
        let pointer = pointers + 2 * index
        let found = fieldCount(bytes, kind, pointer: pointer, reader.usableSize)
        if fields == 0 { fields = found }
        guard found > 0, !kind.isLeaf || record(bytes, kind, pointer: pointer, reader) != nil else { continue }
        fields = found
        break
      }
      if fields > 0 { map.setFieldCount(page, fields) }
    }
    guard kind.isTable else { return }
    var low: Int64?
    var high: Int64?
    for index in 0..<count {
      low = key(bytes, kind, pointer: pointers + 2 * index, reader)
      if low != nil { break }
    }
    for index in 0..<count {
      high = key(bytes, kind, pointer: pointers + 2 * (count - 1 - index), reader)
      if high != nil { break }
    }
    map.setKeys(page, first: low ?? high ?? 0, last: high ?? low ?? 0)
  }

  private static func fieldCount(_ bytes: Span<UInt8>, _ kind: PageKind, pointer: Int, _ usableSize: Int) -> Int {
    guard var offset = bytes.uint16(at: pointer), offset >= 8, offset < usableSize else { return 0 }
    if !kind.isLeaf { offset += 4 }
    guard let length = Varint.read(bytes, at: &offset, before: usableSize), length > 0 else { return 0 }
    if kind.isTable, Varint.read(bytes, at: &offset, before: usableSize) == nil { return 0 }
    let start = offset
    guard let header = Varint.read(bytes, at: &offset, before: usableSize), header > 0, header <= length,
      Int64(start) + header <= Int64(usableSize)
    else { return 0 }
    let end = start + Int(header)
    var count = 0
    while offset < end {
      guard let code = Varint.read(bytes, at: &offset, before: end), SerialType.length(of: code) != nil else {
        return 0
      }
      count += 1
    }
    return count
  }

  private static func isLongHeader(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Bool {
    var offset = cell.payload
    let length = Varint.read(bytes, at: &offset, before: cell.payload + cell.local) ?? 0
    return cell.overflow != 0 && length > Int64(cell.local) && length <= Int64(cell.length)
  }

  private static func record(_ bytes: Span<UInt8>, _ kind: PageKind, pointer: Int, _ reader: PageReader) -> LeafCell? {
    guard let offset = bytes.uint16(at: pointer), offset > pointer,
      let cell = LeafCell(bytes, kind: kind, at: offset, index: 0, geometry: reader.geometry),
      RecordText.length(bytes, at: cell.payload, before: cell.payload + cell.local) == cell.length
        || isLongHeader(bytes, cell)
    else { return nil }
    return cell
  }

  private static func key(_ bytes: Span<UInt8>, _ kind: PageKind, pointer: Int, _ reader: PageReader) -> Int64? {
    guard kind == .tableInterior else { return record(bytes, kind, pointer: pointer, reader)?.rowid }
    guard var offset = bytes.uint16(at: pointer), offset >= 8, offset < reader.usableSize else { return nil }
    offset += 4
    return Varint.read(bytes, at: &offset, before: reader.usableSize)
  }

  static func isZero(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where bytes[index] != 0 { return false }
    return true
  }
}

/// Collects overflow pages with several links to them.
///
/// Unused pages have links too, so two claims only call for a closer look.
struct OverflowClaims {
  private var claimed = PageSet()

  private(set) var contested = PageSet()

  func isClaimed(_ page: UInt32) -> Bool { claimed.contains(page) }

  mutating func add(_ page: UInt32) {
    if !claimed.insert(page) { _ = contested.insert(page) }
  }

  mutating func addCells(_ bytes: Span<UInt8>, _ kind: PageKind, start: Int, _ reader: PageReader) {
    guard kind != .tableInterior, let count = bytes.uint16(at: start + 3) else { return }
    let pointers = start + kind.headerLength
    let longest = kind.isTable ? reader.geometry.maximumTableLocal : reader.geometry.maximumIndexLocal
    var index = 0
    while index < count {
      let pointer = pointers &+ 2 &* index
      index &+= 1
      guard var offset = bytes.uint16(at: pointer), offset < reader.usableSize &- 8 else { continue }
      let cellStart = offset
      if !kind.isLeaf { offset &+= 4 }
      guard let length = Varint.read(bytes, at: &offset, before: reader.usableSize), length > longest,
        let cell = LeafCell(bytes, kind: kind, at: cellStart, index: index, geometry: reader.geometry),
        cell.overflow >= 2, cell.overflow <= reader.pageCount
      else { continue }
      add(cell.overflow)
    }
  }
}
