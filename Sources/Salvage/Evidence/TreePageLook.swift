internal import SQLiteFormat

/// Recognizes b-tree pages by their bytes alone.
enum TreePageLook {
  /// Whether the bytes are a b-tree page with cells; updates the vote.
  static func add(_ bytes: Span<UInt8>, isFirst: Bool, to vote: inout FileLayoutSearch.Vote) -> Bool {
    let start = isFirst ? DatabaseHeader.length : 0
    guard start + 12 < bytes.count, let kind = PageKind(rawValue: bytes[start]),
      let count = bytes.uint16(at: start + 3),
      let content = bytes.uint16(at: start + 5)
    else { return false }
    guard count > 0 else {
      addEmpty(bytes, kind, start: start, content: content, to: &vote)
      return false
    }
    let pointers = start + kind.headerLength
    let contentStart = content == 0 ? 65536 : content
    guard pointers + 2 * count <= contentStart, contentStart < bytes.count else { return false }
    let geometry = PayloadGeometry(usableSize: bytes.count - vote.assumedReserved)
    var end = 0
    for index in 0..<count {
      guard let offset = bytes.uint16(at: pointers + 2 * index), offset >= contentStart,
        let cell = Cell(bytes, kind: kind, at: offset, geometry: geometry)
      else { return false }
      end = max(end, cell.offset + cell.length)
      if kind == .tableLeaf { addSchemaWord(bytes, cell.localPayload, to: &vote) }
      if kind != .tableInterior, cell.overflowPage == nil { addTexts(bytes, cell.localPayload, to: &vote) }
    }
    end = max(end, endOfFreeBlocks(bytes, start: start))
    vote.pages += 1
    if bytes.count - end <= 255 { vote.filled += 1 }
    // A rest no longer than the fragments may be one of them.
    let rest = bytes.count - end
    vote.reservedCounts[rest <= Int(bytes[start + 7]) ? 0 : rest, default: 0] += 1
    return true
  }

  /// Whether every byte belongs to a cell or is free.
  static func isWhole(_ bytes: Span<UInt8>, start: Int, usableSize: Int) -> Bool {
    guard start + 12 < bytes.count, let kind = PageKind(rawValue: bytes[start]),
      PageSurvey.isPossible(bytes, kind, start, usableSize), let count = bytes.uint16(at: start + 3)
    else { return false }
    let geometry = PayloadGeometry(usableSize: usableSize)
    let pointers = start + kind.headerLength
    let free = LeafCellScan.freeBytes(bytes, start, pointers + 2 * count, geometry)
    guard free >= 0 else { return false }
    var used = free
    for index in 0..<count {
      guard used < usableSize, let offset = bytes.uint16(at: pointers + 2 * index), offset >= pointers + 2 * count,
        let cell = Cell(bytes, kind: kind, at: offset, geometry: geometry)
      else { return false }
      used += cell.length
    }
    return used == usableSize
  }

  /// Adds an empty leaf, which states its content start, the end of the page.
  private static func addEmpty(
    _ bytes: Span<UInt8>, _ kind: PageKind, start: Int, content: Int, to vote: inout FileLayoutSearch.Vote
  ) {
    let end = content == 0 ? 65536 : content
    guard kind.isLeaf, end >= 512, bytes.uint16(at: start + 1) == 0, bytes[start + 7] == 0 else { return }
    vote.emptyPages += 1
    guard bytes.count >= end, bytes.count - end <= 255 else { return }
    vote.filled += 1
    vote.reservedCounts[bytes.count - end, default: 0] += 1
  }

  private static func endOfFreeBlocks(_ bytes: Span<UInt8>, start: Int) -> Int {
    var block = bytes.uint16(at: start + 1) ?? 0
    var end = 0
    while block >= end, block > 0, let next = bytes.uint16(at: block), let size = bytes.uint16(at: block + 2),
      size >= 4, size <= bytes.count - block
    {
      end = block + size
      block = next
    }
    return end
  }

  private static let schemaWords = ["table", "index", "view", "trigger"].map { Array($0.utf8) }

  private static func addSchemaWord(_ bytes: Span<UInt8>, _ payload: Range<Int>, to vote: inout FileLayoutSearch.Vote) {
    var offset = payload.lowerBound
    guard let length = Varint.read(bytes, at: &offset, before: payload.upperBound), length >= 6,
      length <= Int64(payload.count),
      let code = Varint.read(bytes, at: &offset, before: payload.upperBound), code & 1 == 1, code >= 21, code <= 41,
      let width = SerialType.length(of: code)
    else { return }
    let start = payload.lowerBound + Int(length)
    guard start + width <= payload.upperBound else { return }
    for word in schemaWords {
      for encoding in 0...2 {
        let unit = encoding == 0 ? 1 : 2
        guard width == word.count * unit else { continue }
        var isSame = true
        for (index, letter) in word.enumerated() {
          let place = start + index * unit
          switch encoding {
          case 0: isSame = isSame && bytes[place] == letter
          case 1: isSame = isSame && bytes[place] == letter && bytes[place + 1] == 0
          default: isSame = isSame && bytes[place] == 0 && bytes[place + 1] == letter
          }
        }
        if isSame { vote.schemaWords[encoding] += 1 }
      }
    }
  }

  /// Whether a record has a text like UTF-16.
  static func hasWideText(_ record: Span<UInt8>) -> Bool {
    var vote = FileLayoutSearch.Vote(size: 0, base: 0)
    addTexts(record, 0..<record.count, to: &vote)
    return vote.encodings[1] + vote.encodings[2] > 0
  }

  private static func addTexts(_ bytes: Span<UInt8>, _ payload: Range<Int>, to vote: inout FileLayoutSearch.Vote) {
    var offset = payload.lowerBound
    guard let length = Varint.read(bytes, at: &offset, before: payload.upperBound), length > 0,
      length <= Int64(payload.count)
    else { return }
    let headerEnd = payload.lowerBound + Int(length)
    var body = headerEnd
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= payload.upperBound - body
      else { return }
      if code >= 13, code & 1 == 1, width >= 4 {
        if !width.isMultiple(of: 2) { vote.oddTexts += 1 }
        var zeros = [0, 0]
        for index in 0..<min(width, 64) where bytes[body + index] == 0 { zeros[index & 1] += 1 }
        if zeros[1] > zeros[0], width % 2 == 0 {
          vote.encodings[1] += 1
        } else if zeros[0] > zeros[1], width % 2 == 0 {
          vote.encodings[2] += 1
        } else if zeros[0] == 0 {
          vote.encodings[0] += 1
        }
      }
      body += width
    }
  }
}
