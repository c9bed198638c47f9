internal import Platform
internal import SQLiteFormat
internal import Salvage

extension ScrubRun {
  private struct Cell {
    var start: Int
    var payload: Int
    var local: Int
    var length: Int
    var overflow: UInt32
    var end: Int
    var rowid: Int64
    var rowidRange: Range<Int>
  }

  func treePage(_ image: PageImage, _ bytes: [UInt8], present: Int, kind: PageKind, start: Int) throws(FileError) {
    mask.clear()
    var page: [UInt8] = []
    swap(&page, &output)
    page.withReplacedContent(bytes)
    let number = contentPage(of: image)
    let tree = reachedTree(image) ?? survey.owner(of: bytes.span, page: number, kind: kind, start: start)
    if start > 0 {
      // SQLite's twenty reserved bytes can hold any data.
      mask.mark(0..<min(72, start), PageMask.kept)
      mask.mark(min(92, start)..<start, PageMask.kept)
    }
    let standing = standing(of: image, tree: tree)
    let count = markStructure(bytes.span, kind: kind, start: start)
    let pointers = start + kind.headerLength
    var covered: [Range<Int>] = [0..<min(usableSize, pointers + 2 * count)]
    covered.reserveCapacity(count + 1)
    if kind == .tableInterior {
      covered += innerCells(bytes, &page, at: pointers, count: count, tree: tree, standing)
    } else {
      for cell in cells(bytes.span, at: pointers, count: count, kind: kind) {
        if kind == .tableLeaf {
          rowid(cell.rowid, cell.rowidRange, &page, tree: tree, standing)
          if standing == .reached, !isReplacing, number == images.page(of: image), let tree {
            pseudonyms.domains.noteRow(rules.rowids[tree].domain)
          }
        }
        if try cellContent(image, bytes, &page, cell, tree: tree, kind: kind, standing, isRoot: start > 0) {
          covered.append(cell.start..<cell.end)
        }
      }
    }
    if kind.isTable || tree.map({ !survey.trees[$0].isIndex }) == true {
      // A former leaf still has old rows, and page 1 those of the schema.
      covered.sort { $0.lowerBound < $1.lowerBound }
      remains(bytes, &page, covered, tree: tree, start: start, standing)
    }
    if isReplacing { tally.pages.rewritten += 1 }
    var isSure = tree != nil
    if case .main = image { isSure = survey.standing(of: number) == .live }
    try writeImage(image, &page, present: present, isSure: isSure)
    output = page
  }

  /// Marks the structure of all cells first, since cells can overlap.
  private func cells(_ bytes: Span<UInt8>, at pointers: Int, count: Int, kind: PageKind) -> [Cell] {
    var found: [(head: Range<Int>, cell: Cell?)] = []
    found.reserveCapacity(count)
    for index in 0..<count {
      // SQLite masks the offset likewise.
      guard let offset = bytes.uint16(at: pointers + 2 * index).map({ $0 & (pageSize - 1) }),
        let cell = cell(bytes, at: offset, before: pointers + 2 * count, kind: kind)
      else { continue }
      found.append(cell)
    }
    let isOdd = survey.isDamaged || found.contains { $0.cell == nil || $0.head.count > Self.longestHead }
    let strays = isOdd ? strays(found, bytes) : []
    var cells: [Cell] = []
    cells.reserveCapacity(found.count)
    for (index, one) in found.enumerated() where !strays.contains(index) {
      mask.mark(one.head, PageMask.kept)
      guard let cell = one.cell else { continue }
      if cell.local < cell.length {
        mask.mark((cell.payload + cell.local)..<(cell.payload + cell.local + 4), PageMask.kept)
      }
      cells.append(cell)
    }
    return cells
  }

  /// Returns malformed cells whose leading bytes may be a value: inside another record, or overlong.
  private func strays(_ found: [(head: Range<Int>, cell: Cell?)], _ bytes: Span<UInt8>) -> Set<Int> {
    let order = found.indices.sorted { found[$0].head.lowerBound < found[$1].head.lowerBound }
    var strays: Set<Int> = []
    var whole: Range<Int>?
    for index in order {
      let (head, cell) = found[index]
      if let cell, isRecord(cell, bytes) {
        if cell.end > whole?.upperBound ?? 0 { whole = cell.payload..<cell.end }
      } else if whole?.contains(head.lowerBound) == true || head.count > Self.longestHead {
        strays.insert(index)
      }
    }
    return strays
  }

  /// The most bytes kept before a malformed record.
  private static let longestHead = 6

  private func isRecord(_ cell: Cell, _ bytes: Span<UInt8>) -> Bool {
    fields.read(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length) && fields.isWellFormed
  }

  /// Processes an interior table page, and returns the cells' ranges.
  private func innerCells(
    _ bytes: [UInt8], _ page: inout [UInt8], at pointers: Int, count: Int, tree: Int?, _ standing: RowStanding
  ) -> [Range<Int>] {
    var places: [Range<Int>] = []
    for index in 0..<count {
      guard let offset = bytes.span.uint16(at: pointers + 2 * index).map({ $0 & (pageSize - 1) }), offset >= pointers,
        offset + 4 < usableSize
      else { continue }
      var end = offset + 4
      guard let key = Varint.read(bytes.span, at: &end, before: usableSize) else { continue }
      mask.mark(offset..<end, PageMask.kept)
      rowid(key, (offset + 4)..<end, &page, tree: tree, standing)
      places.append(offset..<end)
    }
    return places
  }

  /// Marks header, cell pointers and freeblocks, and returns the possible cells.
  private func markStructure(_ bytes: Span<UInt8>, kind: PageKind, start: Int) -> Int {
    let pointers = start + kind.headerLength
    mask.mark(start..<pointers, PageMask.kept)
    let stored = bytes.uint16(at: start + 3) ?? 0
    guard stored <= (usableSize - 8) / 6 else { return 0 }
    let count = min(stored, max(0, (usableSize - pointers) / 2))
    if isText(bytes, pointers: pointers, count: count) { return 0 }
    mask.mark(pointers..<(pointers + 2 * count), PageMask.kept)
    var block = bytes.uint16(at: start + 1) ?? 0
    var steps = 0
    while block >= pointers, block <= usableSize - 4, steps < usableSize / 4 {
      mask.mark(block..<(block + 4), PageMask.kept)
      let next = bytes.uint16(at: block) ?? 0
      guard next > block else { break }
      block = next
      steps += 1
    }
    return count
  }

  /// Whether the cell pointers are text: few valid, mostly printable.
  private func isText(_ bytes: Span<UInt8>, pointers: Int, count: Int) -> Bool {
    guard count >= 2 else { return false }
    let end = pointers + 2 * count
    let inRange = (0..<count).count { place in
      let pointer = bytes.uint16(at: pointers + 2 * place) ?? 0
      return pointer >= end && pointer <= usableSize - 4
    }
    let characters = (pointers..<end).count { bytes[$0] >= 0x20 && bytes[$0] < 0x7f }
    return inRange * 2 < count && characters * 10 >= 2 * count * 7
  }

  /// Reads a cell and the range before its record.
  private func cell(
    _ bytes: Span<UInt8>, at start: Int, before pointersEnd: Int, kind: PageKind
  ) -> (head: Range<Int>, cell: Cell?)? {
    guard start >= pointersEnd, start <= usableSize - 4 else { return nil }
    var offset = start
    if !kind.isLeaf { offset += 4 }
    guard let size = Varint.read(bytes, at: &offset, before: usableSize) else { return nil }
    let rowidStart = offset
    guard let rowid = kind.isTable ? Varint.read(bytes, at: &offset, before: usableSize) : 0 else { return nil }
    let head = start..<offset
    guard size > 0, size <= Int64(SQLiteFormat.Cell.maximumPayloadLength) else { return (head, nil) }
    let length = Int(size)
    let local = geometry.localLength(of: length, onTableLeaf: kind == .tableLeaf)
    guard local <= usableSize - offset else { return (head, nil) }
    var end = offset + local
    var overflow: UInt32 = 0
    if local < length {
      guard end + 4 <= usableSize, let page = bytes.uint32(at: end) else { return (head, nil) }
      overflow = page
      end += 4
    }
    return (
      head,
      Cell(
        start: start, payload: offset, local: local, length: length, overflow: overflow, end: max(end, start + 4),
        rowid: rowid, rowidRange: rowidStart..<offset)
    )
  }

  /// Processes a cell's record; false if malformed.
  private func cellContent(
    _ image: PageImage, _ bytes: [UInt8], _ page: inout [UInt8], _ cell: Cell, tree: Int?, kind: PageKind,
    _ standing: RowStanding, isRoot: Bool
  ) throws(FileError) -> Bool {
    let localEnd = cell.payload + cell.local
    guard fields.read(bytes.span, at: cell.payload, before: localEnd, length: cell.length) else { return false }
    let expected = tree.map { rules.rules[$0].count } ?? 0
    guard fields.isWellFormed || fields.codes.count == expected else { return false }
    payload.removeAll(keepingCapacity: true)
    payload.append(contentsOf: bytes[cell.payload..<localEnd])
    var pieces: [Piece] = []
    var leadsOn = false
    if cell.overflow != 0 { (pieces, leadsOn) = try follow(cell.overflow, of: image, length: cell.length) }
    var isApart = false
    // Rows that certainly own their overflow pages go first.
    if !pieces.isEmpty, isDeferring, case .main(let number) = image,
      leadsOn || survey.isApart(page: number, payload: cell.payload)
    {
      isApart = true
      if deferred.last != image { deferred.append(image) }
    }
    // Offsets are now relative to the record.
    _ = fields.read(payload.span, at: 0, before: payload.count, length: cell.length)
    let end = min(payload.count, cell.length)
    let rowTree = rowTree(tree, standing, isRoot: isRoot)
    treatFields(before: end, localEnd: cell.local, tree: rowTree, rowTree == 0 ? .reached : standing)
    if isReplacing { copyValues(to: &page, 0..<cell.local, at: cell.payload) }
    mask.mark(from: payloadMask, 0..<cell.local, at: cell.payload)
    guard !isApart else { return true }
    if isReplacing { try write(pieces) } else { for piece in pieces { setDone(piece.image) } }
    return true
  }

  /// Notes or replaces the fields in `payload`, and marks their bytes.
  ///
  /// - Parameter localEnd: the end of the local bytes; later signatures are not kept.
  func treatFields(before end: Int, localEnd: Int = .max, tree: Int?, _ standing: RowStanding) {
    // Avoids an exclusivity check per field.
    var (content, mask) = (payload, payloadMask)
    (payload, payloadMask) = ([], PageMask(count: 0))
    defer { (payload, payloadMask) = (content, mask) }
    let (pseudonyms, fields, isReplacing) = (pseudonyms, fields, isReplacing)
    let isSequence = tree != nil && tree == rules.sequence
    let sequence = isSequence ? sequenceRule(content) : nil
    mask.clear(count: content.count)
    mask.mark(0..<min(fields.headerEnd, content.count), PageMask.kept)
    for field in fields.codes.indices {
      let code = fields.codes[field]
      // A record of the sequence without a table is from a misplaced page.
      var rule = FieldRule()
      if let sequence, field == 1 {
        rule = sequence
      } else if let tree, !isSequence || sequence != nil, field < rules.rules[tree].count {
        rule = rules.rules[tree][field].rule(for: standing)
      }
      guard let range = fields.range(field, before: end) else {
        let start = fields.starts[field]
        if start < end {
          for index in start..<end where isReplacing { content[index] = content[index] == 0 ? 0 : 0xff }
          mask.mark(start..<end, PageMask.value)
        }
        continue
      }
      guard isReplacing else {
        pseudonyms.note(code, content.span, range, rule)
        continue
      }
      if code == 9, rule.kind == .drop, !rule.isOrdered, fields.heads[field] < end {
        // 0 and 1 are stored only as serial types.
        content[fields.heads[field]] = 8
        mask[fields.heads[field]] = PageMask.number
        if isDeferring { tally.count(.dropped, tree, field) }
        continue
      }
      let outcome = pseudonyms.replace(
        code, &content, range, rule, keepsSignature: range.lowerBound < localEnd - BlobForm.longestPrefix)
      if !range.isEmpty, isDeferring { tally.count(outcome, tree, field) }
      mark(&mask, range, code, outcome)
    }
  }

  private func mark(_ mask: inout PageMask, _ range: Range<Int>, _ code: Int64, _ outcome: Pseudonyms.Outcome) {
    let isText = code >= 13 && code & 1 == 1
    switch outcome {
    case .nothing: break
    case .kept: mask.mark(range, code >= 12 ? PageMask.stays : PageMask.kept)
    case .partly(let places):
      for place in places { mask.mark(place, PageMask.value) }
      mask.mark(range, PageMask.stays)
    case .replaced where isText && encoding != .utf8: mask.markWide(range, isBigEndian: encoding == .utf16BigEndian)
    case .replaced: mask.mark(range, isText ? PageMask.text : PageMask.value)
    case .ordered, .shifted, .dropped: mask.mark(range, code >= 12 ? PageMask.fixed : PageMask.number)
    }
  }

  /// Processes unreferenced rows.
  private func remains(
    _ bytes: [UInt8], _ page: inout [UInt8], _ covered: [Range<Int>], tree: Int?, start: Int, _ standing: RowStanding
  ) {
    var taken = covered
    let gaps = Self.gaps(bytes.span, between: covered, before: usableSize)
    guard !gaps.isEmpty,
      let tree = tree ?? survey.remains(bytes.span, in: min(start + 8, usableSize)..<usableSize, page: 0)?.tree
    else { return }
    func take(_ remain: StoreSurvey.Remain) {
      // It owns only the unclaimed bytes.
      guard !taken.contains(where: { $0.contains(remain.range.lowerBound) }) else { return }
      treat(remain, bytes, &page, tree: tree, isOfSchema: standing != .left, isRoot: start > 0)
      taken.append(remain.range)
    }
    for remain in survey.remains(bytes.span, start: start, tree: tree) { take(remain) }
    taken.sort { $0.lowerBound < $1.lowerBound }
    for gap in Self.gaps(bytes.span, between: taken, before: usableSize) {
      for remain in survey.remains(bytes.span, in: gap, tree: tree) { take(remain) }
    }
  }

  /// Returns nonzero gaps between ranges.
  static func gaps(_ bytes: Span<UInt8>, between covered: [Range<Int>], before end: Int) -> [Range<Int>] {
    var gaps: [Range<Int>] = []
    var offset = 0
    func add(_ range: Range<Int>) {
      guard range.count > 4 else { return }
      var index = range.lowerBound
      while index < range.upperBound, bytes[index] == 0 { index &+= 1 }
      if index < range.upperBound { gaps.append(max(range.lowerBound, index &- 8)..<range.upperBound) }
    }
    for range in covered {
      if range.lowerBound > offset { add(offset..<min(end, range.lowerBound)) }
      offset = max(offset, range.upperBound)
    }
    if offset < end { add(offset..<end) }
    return gaps
  }

  /// - Parameters:
  ///   - isOfSchema: whether it is on a schema page.
  ///   - isRoot: whether that is page 1.
  func treat(
    _ remain: StoreSurvey.Remain, _ bytes: [UInt8], _ page: inout [UInt8], tree: Int, isOfSchema: Bool = false,
    isRoot: Bool = false
  ) {
    payload.removeAll(keepingCapacity: true)
    payload.append(contentsOf: remain.record)
    guard fields.read(payload.span, at: 0, before: payload.count, length: remain.length) else { return }
    remainingRowid(remain, &page, tree: tree)
    let tree = rowTree(tree, isOfSchema && tree == 0 ? .numbered : .left, isRoot: isRoot)
    let before = mask
    treatFields(before: payload.count, tree: tree, tree == 0 ? .reached : .left)
    mask.mark(from: payloadMask, 0..<payload.count, at: remain.payload)
    let end = remain.payload + payload.count
    mask.mark(remainingStructure(remain, bytes.span), PageMask.kept)
    mask.mark(end..<max(end, remain.range.upperBound), PageMask.kept)
    guard isReplacing else { return }
    let low = max(remain.payload, remain.range.lowerBound)
    for index in low..<max(low, end) where index < page.count && before[index] == PageMask.free {
      let own = index - remain.payload
      // Only dropped flags change in the header.
      if own >= fields.headerEnd || payloadMask[own] == PageMask.number { page[index] = payload[own] }
    }
  }

  /// Copies values to unclaimed bytes only.
  ///
  /// Damaged cells can overlap, and overlong ones contain others' original values.
  private func copyValues(to page: inout [UInt8], _ range: Range<Int>, at place: Int) {
    // Avoids an exclusivity check per byte.
    let (marks, own, content) = (mask.marks, payloadMask.marks, payload)
    for index in range where marks[place &+ index] == PageMask.free && own[index] >= PageMask.value {
      page[place &+ index] = content[index]
    }
  }
}

extension [UInt8] {
  /// Replaces the content without allocating.
  mutating func withReplacedContent(_ bytes: [UInt8]) {
    removeAll(keepingCapacity: true)
    append(contentsOf: bytes)
  }
}
