internal import SQLiteFormat

/// Finds rows in the parts of a page that no cell uses: what was deleted and is not overwritten yet.
///
/// SQLite writes the place of the next free block and its own size over the first four bytes of a freed cell. Those bytes
/// held the payload's length, the rowid and sometimes the beginning of the record's header; the rest tells what the first
/// and last were, the rowid is lost where it was not longer.
struct FreeSpaceScan {
  /// A deleted record that was found.
  struct DeletedRecord {
    /// The record, its header made whole.
    var record: [UInt8]

    /// The bytes of the whole record; more than `record` has where there is overflow.
    var length: Int

    /// The rowid; nil where it is lost.
    var rowid: Int64?

    /// Whether its beginning is there too.
    var isWhole = false

    /// The first overflow page, or 0.
    var overflow: UInt32

    /// Where on the page it is.
    var range: Range<Int>
  }

  let shape: RecordShape
  let geometry: PayloadGeometry
  let encoding: TextEncoding

  /// Whether the first field is an alias of the rowid, and so always NULL.
  let hasAlias: Bool

  /// The rows in the free space of a leaf.
  func deletedRecords(_ bytes: Span<UInt8>, start: Int) -> [DeletedRecord] {
    guard let count = bytes.uint16(at: start + 3), let content = bytes.uint16(at: start + 5) else { return [] }
    var deletedRecords: [DeletedRecord] = []
    let pointersEnd = start + 8 + 2 * count
    let contentStart = min(content == 0 ? 65536 : content, geometry.usableSize)
    if pointersEnd < contentStart { search(bytes, in: pointersEnd..<contentStart, into: &deletedRecords) }
    var block = bytes.uint16(at: start + 1) ?? 0
    var lowest = pointersEnd
    while block >= lowest, block <= geometry.usableSize - 4, let next = bytes.uint16(at: block),
      let size = bytes.uint16(at: block + 2), size >= 4, size <= geometry.usableSize - block
    {
      tile(bytes, block..<(block + size), into: &deletedRecords)
      lowest = block + size
      block = next
    }
    return deletedRecords
  }

  /// The rows anywhere in a range: whole cells, and freed ones that still begin with a free block's header.
  func search(_ bytes: Span<UInt8>, in range: Range<Int>, into deletedRecords: inout [DeletedRecord]) {
    var offset = range.lowerBound
    // Bytes of any other kind have what could be a free block's header at many places.
    var attempts = Self.leastAttempts + range.count / Self.bytesPerAttempt
    while offset < range.upperBound - 4 {
      if let size = bytes.uint16(at: offset + 2), size >= 5, offset + size <= geometry.usableSize,
        let tiling = tiling(bytes, offset..<(offset + size), &attempts), tiling.isExact
      {
        deletedRecords += tiling.deletedRecords
        offset += size
        continue
      }
      if bytes[offset] != 0, let deleted = wholeCell(bytes, at: offset, before: range.upperBound) {
        deletedRecords.append(deleted.0)
        offset = deleted.0.range.upperBound
        continue
      }
      offset += 1
    }
  }

  /// The rows of a free block, which may be several freed cells side by side.
  private func tile(_ bytes: Span<UInt8>, _ block: Range<Int>, into deletedRecords: inout [DeletedRecord]) {
    var end = block.lowerBound
    var attempts = Self.mostAttempts
    if let tiling = tiling(bytes, block, &attempts) {
      deletedRecords += tiling.deletedRecords
      if tiling.isExact { return }
      end = tiling.deletedRecords.last?.range.upperBound ?? end
    }
    if end < block.upperBound {
      search(bytes, in: max(end, block.lowerBound + 1)..<block.upperBound, into: &deletedRecords)
    }
  }

  /// Cells side by side from the beginning of a range.
  private struct Tiling {
    var deletedRecords: [DeletedRecord] = []
    var usual = 0

    /// How many of them would have lost their beginning without a free block's header in its place.
    var unexplained = 0

    /// The bytes behind the last one; nil where they are too many to be a fragment.
    var rest: Int?

    /// Whether they fill the range, but for a fragment.
    var isExact: Bool { rest != nil }
  }

  /// At how many places of a block a cell is looked for at most.
  private static let mostAttempts = 512

  /// The same for a stretch in which no block is known.
  private static let leastAttempts = 64
  private static let bytesPerAttempt = 8

  /// The best way to see a range as freed cells side by side: one that fills it, else the one that covers most.
  ///
  /// - Parameter left: at how many places a cell may still be looked for.
  private func tiling(_ bytes: Span<UInt8>, _ block: Range<Int>, _ left: inout Int) -> Tiling? {
    guard left > 0 else { return nil }
    var known: [Int: Tiling] = [:]
    var attempts = max(0, Self.mostAttempts - left)
    let before = attempts
    let best = tiling(bytes, from: block.lowerBound, before: block.upperBound, &known, &attempts, depth: 0)
    left -= attempts - before
    return best.deletedRecords.isEmpty ? nil : best
  }

  private func tiling(
    _ bytes: Span<UInt8>, from offset: Int, before end: Int, _ known: inout [Int: Tiling], _ attempts: inout Int,
    depth: Int
  ) -> Tiling {
    // Up to three bytes can be a fragment that came with the last cell.
    if end - offset < 4 { return Tiling(rest: end - offset) }
    if let tiling = known[offset] { return tiling }
    attempts += 1
    guard attempts < Self.mostAttempts, depth < 128 else { return Tiling() }
    var best = Tiling()
    for (deleted, usual) in options(bytes, in: offset..<end) {
      let rest = tiling(bytes, from: deleted.range.upperBound, before: end, &known, &attempts, depth: depth + 1)
      let unexplained = isExplained(deleted, bytes, before: end) ? 0 : 1
      let isBetter: Bool
      if rest.rest != best.rest {
        isBetter = (rest.rest ?? 4) < (best.rest ?? 4)
      } else {
        let ours = rest.deletedRecords.last?.range.upperBound ?? deleted.range.upperBound
        let theirs = best.deletedRecords.last?.range.upperBound ?? 0
        if ours != theirs {
          isBetter = ours > theirs
        } else {
          isBetter = (unexplained + rest.unexplained, best.usual) < (best.unexplained, usual + rest.usual)
        }
      }
      if isBetter || best.deletedRecords.isEmpty {
        best = Tiling(
          deletedRecords: [deleted] + rest.deletedRecords, usual: usual + rest.usual,
          unexplained: unexplained + rest.unexplained,
          rest: rest.rest)
      }
    }
    known[offset] = best
    return best
  }

  /// Whether nothing of a cell is lost, or a free block's header stands where its beginning was: one that reaches to its end,
  /// or as far as the cells that were freed before it.
  private func isExplained(_ deleted: DeletedRecord, _ bytes: Span<UInt8>, before end: Int) -> Bool {
    guard !deleted.isWhole else { return true }
    guard let size = bytes.uint16(at: deleted.range.lowerBound + 2) else { return false }
    return size >= deleted.range.count && deleted.range.lowerBound + size <= end
  }

  /// Every way to see a cell at the beginning of a range.
  private func options(_ bytes: Span<UInt8>, in range: Range<Int>) -> [(DeletedRecord, Int)] {
    var options: [(DeletedRecord, Int)] = []
    // The first cell of a block has always lost its beginning; those behind it may be whole.
    if let whole = wholeCell(bytes, at: range.lowerBound, before: range.upperBound) { options.append(whole) }
    // The payload's length and the rowid take two to twelve bytes.
    for prefix in 2...12 where range.lowerBound + max(4, prefix) < range.upperBound {
      for types in lostTypes(bytes, in: range, prefix: prefix) {
        if let option = freedCell(bytes, in: range, prefix: prefix, lostTypes: types) { options.append(option) }
      }
    }
    return options
  }

  /// The serial types that may have stood where only one byte of them, or none, is left.
  private func lostTypes(_ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int) -> [[UInt8]] {
    guard prefix == 2 else { return [[]] }
    if hasAlias { return [[0]] }
    guard let first = shape.fields.first else { return [] }
    // Of equally good ways the first one is taken: keys mostly need more than one byte.
    var types: [[UInt8]] = []
    if first.usual.contains(.integer) { types += [[2], [3], [4], [1], [5], [6], [8], [9]] }
    if first.usual.contains(.real) { types.append([7]) }
    if first.usual.contains(.null) { types.append([0]) }
    if !first.usual.isDisjoint(with: [.text, .blob]) {
      // The rest of the header tells how long the other fields are; what is left of the cell is the first one's.
      var offset = range.lowerBound + 4
      var others = 0
      for _ in 1..<max(1, shape.fields.count) {
        guard let code = Varint.read(bytes, at: &offset, before: range.upperBound),
          let width = SerialType.length(of: code), width <= range.count - others
        else { return types }
        others += width
      }
      for end in possibleEnds(bytes, in: range) {
        let rest = end - offset - others
        for slack in 0...3 where rest - slack >= 0 && rest - slack < 58 {
          if first.usual.contains(.text) { types.append([UInt8(13 + 2 * (rest - slack))]) }
          if first.usual.contains(.blob) { types.append([UInt8(12 + 2 * (rest - slack))]) }
        }
      }
    }
    return types
  }

  /// Where a cell at the beginning of a range may end: at the end of the range, or where a cell begins that was freed before
  /// it, as the header of a free block tells that reaches from there to the end of the range.
  private func possibleEnds(_ bytes: Span<UInt8>, in range: Range<Int>) -> [Int] {
    var ends = [range.upperBound]
    guard range.count > 9 else { return ends }
    for place in (range.lowerBound + 5)...(range.upperBound - 4)
    where bytes.uint16(at: place + 2) == range.upperBound - place {
      ends.append(place)
      if ends.count == 8 { break }
    }
    return ends
  }

  private func wholeCell(_ bytes: Span<UInt8>, at offset: Int, before end: Int) -> (DeletedRecord, Int)? {
    guard let cell = LeafCell(bytes, kind: .tableLeaf, at: offset, index: -1, geometry: geometry), cell.end <= end,
      let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length),
      isTelling(fit),
      RecordText.isValid(bytes, at: cell.payload, before: cell.payload + cell.local, encoding: encoding)
    else { return nil }
    let record = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    let deleted = DeletedRecord(
      record: record, length: cell.length, rowid: cell.rowid, isWhole: true, overflow: cell.overflow,
      range: offset..<cell.end)
    return (deleted, fit.usual)
  }

  /// The cell whose first four bytes were overwritten, at the beginning of a range.
  ///
  /// - Parameters:
  ///   - prefix: how many bytes the payload's length and the rowid had.
  ///   - lostTypes: the serial types that were overwritten too.
  private func freedCell(
    _ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int, lostTypes: [UInt8]
  ) -> (DeletedRecord, Int)? {
    let start = range.lowerBound
    if prefix >= 4 {
      // What is left of the rowid must be the end of a varint.
      if prefix > 4 {
        guard bytes[start + prefix - 1] < 0x80 else { return nil }
        for index in 4..<max(4, prefix - 1) where bytes[start + index] < 0x80 { return nil }
      }
      guard let fit = shape.fit(bytes, at: start + prefix, before: range.upperBound, length: nil) else { return nil }
      return deletedRecord(bytes, in: range, prefix: prefix, fit: fit) { local in
        Array(copying: bytes.extracting((start + prefix)..<(start + prefix + local)))
      }
    }
    // The header's length is lost, and with two bytes before it the first serial type too.
    var offset = start + 4
    var length = lostTypes.reduce(0) { $0 + (SerialType.length(of: Int64($1)) ?? 0) }
    for _ in 0..<(shape.fields.count - lostTypes.count) {
      guard let code = Varint.read(bytes, at: &offset, before: range.upperBound),
        let width = SerialType.length(of: code),
        width <= SQLiteFormat.Cell.maximumPayloadLength
      else { return nil }
      length += width
    }
    let headerLength = 1 + lostTypes.count + (offset - start - 4)
    // Before anything is copied: all of it that lies on the page has to have room.
    guard headerLength < 128, length <= SQLiteFormat.Cell.maximumPayloadLength,
      start + prefix + geometry.localLength(of: headerLength + length, onTableLeaf: true) <= range.upperBound
    else { return nil }
    let head = [UInt8(headerLength)] + lostTypes
    let record = head + Array(copying: bytes.extracting((start + 4)..<range.upperBound))
    guard let fit = shape.fit(record.span, at: 0, before: record.count, length: nil), fit.length >= head.count else {
      return nil
    }
    return deletedRecord(bytes, in: range, prefix: prefix, fit: fit) { local in
      head + Array(copying: bytes.extracting((start + 4)..<(start + 4 + max(0, local - head.count))))
    }
  }

  private func deletedRecord(
    _ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int, fit: RecordShape.Fit, record: (Int) -> [UInt8]
  ) -> (DeletedRecord, Int)? {
    guard isTelling(fit), fit.fields == shape.fields.count || fit.fields >= 4 else { return nil }
    let lengthSize = Varint.length(of: Int64(fit.length))
    guard prefix - lengthSize >= 1, prefix - lengthSize <= 9 else { return nil }
    let local = geometry.localLength(of: fit.length, onTableLeaf: true)
    var end = range.lowerBound + prefix + local
    var overflow: UInt32 = 0
    if local < fit.length {
      guard end <= range.upperBound - 4, let page = bytes.uint32(at: end) else { return nil }
      overflow = page == 0 ? .max : page
      end += 4
    }
    guard end <= range.upperBound else { return nil }
    end = max(end, range.lowerBound + 4)
    let content = record(local)
    guard RecordText.isValid(content.span, at: 0, before: content.count, encoding: encoding) else { return nil }
    let deleted = DeletedRecord(
      record: content, length: fit.length, rowid: nil, overflow: overflow, range: range.lowerBound..<end)
    return (deleted, fit.usual)
  }

  /// Whether a fit can hardly be chance: several fields that hold what they should.
  private func isTelling(_ fit: RecordShape.Fit) -> Bool {
    fit.unusual == 0 && (fit.usual >= 2 || fit.usual >= 1 && shape.fields.count <= 2) && fit.length >= 6
  }
}
