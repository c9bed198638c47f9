internal import SQLiteFormat

/// Finds deleted rows, not yet overwritten, in a page's unused space.
///
/// SQLite overwrites the first four bytes of a freed cell with the offset of the next free block and its own size. They
/// held the payload length, the rowid, and sometimes the start of the record header. Length and header can be inferred;
/// a short rowid is lost.
struct FreeSpaceScan {
  struct DeletedRecord {
    /// The record with its header restored.
    var record: [UInt8]

    /// The full length, including overflow.
    var length: Int

    var rowid: Int64?

    /// Whether the cell's beginning is intact.
    var isWhole = false

    /// The first overflow page, or 0.
    var overflow: UInt32

    var range: Range<Int>
  }

  let shape: RecordShape
  let geometry: PayloadGeometry
  let encoding: TextEncoding

  /// Whether the first field aliases the rowid, and so is NULL.
  let hasAlias: Bool

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

  /// Finds whole cells, and freed cells with a free block header.
  func search(_ bytes: Span<UInt8>, in range: Range<Int>, into deletedRecords: inout [DeletedRecord]) {
    var offset = range.lowerBound
    // Arbitrary bytes often resemble a free block header.
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

  /// Finds a free block's rows, which may be several freed cells.
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

  /// Contiguous cells from the start of a range.
  private struct Tiling {
    var deletedRecords: [DeletedRecord] = []
    var usual = 0

    /// Cells with an unexplained loss of their beginning.
    var unexplained = 0

    /// The bytes after the last cell; nil if too many for a fragment.
    var rest: Int?

    var isExact: Bool { rest != nil }
  }

  private static let mostAttempts = 512

  /// The fewest attempts without a known block.
  private static let leastAttempts = 64
  private static let bytesPerAttempt = 8

  /// Finds the best division of a range into freed cells: an exact one, else the one that covers most.
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
    // Up to three bytes may be a fragment of the last cell.
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

  /// Whether a cell is whole, or a free block header of at least its size replaced its beginning.
  private func isExplained(_ deleted: DeletedRecord, _ bytes: Span<UInt8>, before end: Int) -> Bool {
    guard !deleted.isWhole else { return true }
    guard let size = bytes.uint16(at: deleted.range.lowerBound + 2) else { return false }
    return size >= deleted.range.count && deleted.range.lowerBound + size <= end
  }

  private func options(_ bytes: Span<UInt8>, in range: Range<Int>) -> [(DeletedRecord, Int)] {
    var options: [(DeletedRecord, Int)] = []
    // A block's first cell has lost its beginning; later ones may be whole.
    if let whole = wholeCell(bytes, at: range.lowerBound, before: range.upperBound) { options.append(whole) }
    // Payload length and rowid take two to twelve bytes.
    for prefix in 2...12 where range.lowerBound + max(4, prefix) < range.upperBound {
      for types in lostTypes(bytes, in: range, prefix: prefix) {
        if let option = freedCell(bytes, in: range, prefix: prefix, lostTypes: types) { options.append(option) }
      }
    }
    return options
  }

  /// Possible serial types of an overwritten first field.
  private func lostTypes(_ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int) -> [[UInt8]] {
    guard prefix == 2 else { return [[]] }
    if hasAlias { return [[0]] }
    guard let first = shape.fields.first else { return [] }
    // The first of equally good ones wins: keys mostly need more than one byte.
    var types: [[UInt8]] = []
    if first.usual.contains(.integer) { types += [[2], [3], [4], [1], [5], [6], [8], [9]] }
    if first.usual.contains(.real) { types.append([7]) }
    if first.usual.contains(.null) { types.append([0]) }
    if !first.usual.isDisjoint(with: [.text, .blob]) {
      // The header gives the other fields' lengths; the rest is the first field.
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

  /// The end of the range, and the starts of earlier free blocks that reach it.
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

  /// Reads a cell with its first four bytes overwritten.
  ///
  /// - Parameters:
  ///   - prefix: the former bytes of payload length and rowid.
  ///   - lostTypes: the overwritten serial types.
  private func freedCell(
    _ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int, lostTypes: [UInt8]
  ) -> (DeletedRecord, Int)? {
    let start = range.lowerBound
    if prefix >= 4 {
      // The rest of the rowid must be the end of a varint.
      if prefix > 4 {
        guard bytes[start + prefix - 1] < 0x80 else { return nil }
        for index in 4..<max(4, prefix - 1) where bytes[start + index] < 0x80 { return nil }
      }
      guard let fit = shape.fit(bytes, at: start + prefix, before: range.upperBound, length: nil) else { return nil }
      return deletedRecord(bytes, in: range, prefix: prefix, fit: fit) { local in
        Array(copying: bytes.extracting((start + prefix)..<(start + prefix + local)))
      }
    }
    // The header length is lost, and after a two-byte prefix the first serial type.
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

  /// Whether a fit is too good for chance.
  private func isTelling(_ fit: RecordShape.Fit) -> Bool {
    fit.unusual == 0 && (fit.usual >= 2 || fit.usual >= 1 && shape.fields.count <= 2) && fit.length >= 6
  }
}
