internal import SQLiteFormat

/// Finds rows in the parts of a page that no cell uses: what was deleted and is not overwritten yet.
///
/// SQLite writes the place of the next free block and its own size over the first four bytes of a freed cell. Those bytes
/// held the payload's length, the rowid and sometimes the beginning of the record's header; the rest tells what the first
/// and last were, the rowid is lost where it was not longer.
struct FreeSpaceScan {
  /// A row that was found.
  struct Ghost {
    /// The record, its header made whole.
    var record: [UInt8]

    /// The bytes of the whole record; more than `record` has where there is overflow.
    var length: Int

    /// The rowid; nil where it is lost.
    var rowid: Int64?

    /// The first overflow page, or 0.
    var overflow: UInt32

    /// Where on the page it is.
    var range: Range<Int>
  }

  let shape: RecordShape
  let geometry: PayloadGeometry

  /// Whether the first field is an alias of the rowid, and so always NULL.
  let hasAlias: Bool

  /// The rows in the free space of a leaf.
  func ghosts(_ bytes: Span<UInt8>, start: Int) -> [Ghost] {
    guard let count = bytes.uint16(at: start + 3), let content = bytes.uint16(at: start + 5) else { return [] }
    var ghosts: [Ghost] = []
    let pointersEnd = start + 8 + 2 * count
    let contentStart = min(content == 0 ? 65536 : content, geometry.usableSize)
    if pointersEnd < contentStart { search(bytes, in: pointersEnd..<contentStart, into: &ghosts) }
    var block = bytes.uint16(at: start + 1) ?? 0
    var lowest = pointersEnd
    while block >= lowest, block <= geometry.usableSize - 4, let next = bytes.uint16(at: block),
      let size = bytes.uint16(at: block + 2), size >= 4, size <= geometry.usableSize - block
    {
      tile(bytes, block..<(block + size), into: &ghosts)
      lowest = block + size
      block = next
    }
    return ghosts
  }

  /// The rows anywhere in a range: whole cells, and cells that begin with a free block's header.
  func search(_ bytes: Span<UInt8>, in range: Range<Int>, into ghosts: inout [Ghost]) {
    var offset = range.lowerBound
    while offset < range.upperBound - 4 {
      if bytes[offset] != 0, let ghost = wholeCell(bytes, at: offset, before: range.upperBound) {
        ghosts.append(ghost)
        offset = ghost.range.upperBound
        continue
      }
      if let size = bytes.uint16(at: offset + 2), size >= 4, offset + size <= geometry.usableSize,
        let ghost = freedCell(bytes, in: offset..<min(offset + size, range.upperBound), isExact: true)
      {
        ghosts.append(ghost)
        offset = ghost.range.upperBound
        continue
      }
      offset += 1
    }
  }

  /// The rows of a free block, which may be several freed cells side by side.
  private func tile(_ bytes: Span<UInt8>, _ block: Range<Int>, into ghosts: inout [Ghost]) {
    var offset = block.lowerBound
    while offset <= block.upperBound - 5 {
      if let ghost = freedCell(bytes, in: offset..<block.upperBound, isExact: false) {
        ghosts.append(ghost)
        offset = ghost.range.upperBound
      } else if offset > block.lowerBound, let ghost = wholeCell(bytes, at: offset, before: block.upperBound) {
        ghosts.append(ghost)
        offset = ghost.range.upperBound
      } else {
        offset += 1
      }
    }
  }

  private func wholeCell(_ bytes: Span<UInt8>, at offset: Int, before end: Int) -> Ghost? {
    guard let cell = LeafCell(bytes, kind: .tableLeaf, at: offset, index: -1, geometry: geometry), cell.end <= end,
      let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length),
      isTelling(fit)
    else { return nil }
    let record = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    return Ghost(
      record: record, length: cell.length, rowid: cell.rowid, overflow: cell.overflow, range: offset..<cell.end)
  }

  /// The cell whose first four bytes were overwritten, at the beginning of a range.
  ///
  /// - Parameter isExact: whether it must end where the range does.
  private func freedCell(_ bytes: Span<UInt8>, in range: Range<Int>, isExact: Bool) -> Ghost? {
    var best: (ghost: Ghost, usual: Int)?
    // The payload's length and the rowid take two to twelve bytes.
    for prefix in 2...12 where range.lowerBound + max(4, prefix) < range.upperBound {
      guard let (ghost, usual) = freedCell(bytes, in: range, prefix: prefix) else { continue }
      if ghost.range.upperBound == range.upperBound { return ghost }
      if !isExact, usual > best?.usual ?? -1 { best = (ghost, usual) }
    }
    return best?.ghost
  }

  private func freedCell(_ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int) -> (Ghost, Int)? {
    let start = range.lowerBound
    var record: [UInt8]
    var bodyStart: Int
    if prefix >= 4 {
      // What is left of the rowid must be the end of a varint.
      if prefix > 4 {
        guard bytes[start + prefix - 1] < 0x80 else { return nil }
        for index in 4..<max(4, prefix - 1) where bytes[start + index] < 0x80 { return nil }
      }
      guard let fit = shape.fit(bytes, at: start + prefix, before: range.upperBound, length: nil) else { return nil }
      return ghost(bytes, in: range, prefix: prefix, fit: fit) { local in
        Array(copying: bytes.extracting((start + prefix)..<(start + prefix + local)))
      }
    }
    // The header's length is lost, and with two bytes before it the first serial type too.
    guard prefix == 3 || hasAlias else { return nil }
    let lostTypes = prefix == 3 ? 0 : 1
    var offset = start + 4
    for _ in 0..<(shape.fields.count - lostTypes) {
      guard let code = Varint.read(bytes, at: &offset, before: range.upperBound), code >= 0 else { return nil }
    }
    bodyStart = offset
    let headerLength = 1 + lostTypes + (bodyStart - start - 4)
    guard headerLength < 128 else { return nil }
    record = [UInt8(headerLength)]
    if lostTypes == 1 { record.append(0) }
    let head = record
    record += Array(copying: bytes.extracting((start + 4)..<range.upperBound))
    guard let fit = shape.fit(record.span, at: 0, before: record.count, length: nil) else { return nil }
    return ghost(bytes, in: range, prefix: prefix, fit: fit) { local in
      head + Array(copying: bytes.extracting((start + 4)..<(start + 4 + local - head.count)))
    }
  }

  private func ghost(
    _ bytes: Span<UInt8>, in range: Range<Int>, prefix: Int, fit: RecordShape.Fit, record: (Int) -> [UInt8]
  ) -> (Ghost, Int)? {
    guard isTelling(fit), fit.fields == shape.fields.count || fit.fields >= 4 else { return nil }
    let lengthSize = Varint.length(of: Int64(fit.length))
    guard prefix - lengthSize >= 1, prefix - lengthSize <= 9 else { return nil }
    let local = geometry.localLength(of: fit.length, onTableLeaf: true)
    var end = range.lowerBound + prefix + local
    var overflow: UInt32 = 0
    if local < fit.length {
      guard let page = bytes.uint32(at: end) else { return nil }
      overflow = page
      end += 4
    }
    guard end <= range.upperBound else { return nil }
    let ghost = Ghost(
      record: record(local), length: fit.length, rowid: nil, overflow: overflow, range: range.lowerBound..<end)
    return (ghost, fit.usual)
  }

  /// Whether a fit can hardly be chance: several fields that hold what they should.
  private func isTelling(_ fit: RecordShape.Fit) -> Bool {
    fit.unusual == 0 && (fit.usual >= 2 || fit.usual >= 1 && shape.fields.count <= 2) && fit.length >= 6
  }
}
