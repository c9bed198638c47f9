internal import SQLiteFormat
internal import StoreFiles

/// Where the pages are in a file, and how they are to be read.
struct FileLayout {
  /// The page size in bytes.
  var pageSize: Int

  /// The usable bytes of a page.
  var usableSize: Int

  /// The offset of page 1 in the file.
  var base: Int64

  /// The header; nil where it is destroyed.
  var header: DatabaseHeader?

  /// The encoding of text.
  var encoding: TextEncoding

  /// The pages of which any byte is in the file.
  var pageCount: UInt32

  /// The offsets of other databases in the file, which are left alone.
  var otherDatabases: [Int64] = []

  /// Whether the pages were found by their looks, because there is no header.
  var isGuessed: Bool { header == nil }

  /// How payloads are divided between pages.
  var geometry: PayloadGeometry { PayloadGeometry(usableSize: usableSize) }

  /// Where pages with special numbers are.
  var layout: PageLayout { PageLayout(pageSize: pageSize, usableSize: usableSize) }
}

/// Finds the layout of a file by its header, wherever that is, or by the looks of its pages.
struct FileLayoutSearch {
  let main: any ByteSource

  /// Page sizes that a log or journal tells of, the likeliest first.
  var sizesElsewhere: [Int] = []

  private static let pageSizes = (9...16).map { 1 << $0 }

  /// The layout of the database in the file; nil where no page is found.
  ///
  /// Of several databases the one at the beginning is taken; where none begins there, the first that Core Data wrote, else
  /// the largest.
  func find() throws(SalvageError) -> FileLayout? {
    guard var layout = try single() else { return nil }
    guard let header = layout.header, header.hasMagic, header.isPageCountValid else { return layout }
    let end = layout.base + Int64(header.pageCount) * Int64(layout.pageSize)
    var others: [Int64] = []
    if layout.base > 0 {
      others = try embeddedHeaders(from: 0, before: layout.base).filter { $0.end <= layout.base }.map(\.offset)
    }
    if end < main.count {
      let behind = try embeddedHeaders(from: end, before: main.count)
      if let first = behind.first {
        layout.pageCount = min(
          layout.pageCount, UInt32(clamping: (first.offset - layout.base) / Int64(layout.pageSize)))
      }
      others += behind.map(\.offset)
    }
    layout.otherDatabases = others
    return layout
  }

  private func single() throws(SalvageError) -> FileLayout? {
    if let header = try header(at: 0), let size = header.pageSize {
      // One flipped bit in a header must not hide everything.
      let stated = try vote(size: size, base: 0)
      let isConfirmed = header.isPageCountValid && Int64(header.pageCount) * Int64(size) == main.count
      if stated.pages > 0, isConfirmed { return layout(header: header, size: size, base: 0, vote: stated) }
      let best = try bestVote(residue: 0)
      // Half of the pages look right at twice their size, so the stated size is only given up for one with many more.
      if stated.pages > 0, best.map({ $0.pages * 2 <= stated.pages * 3 }) ?? true {
        return layout(header: header, size: size, base: 0, vote: stated)
      }
      if let best, best.pages > 1 { return layout(header: header, size: best.size, base: 0, vote: best) }
      return layout(header: header, size: size, base: 0, vote: stated)
    }
    let here = try bestVote(residue: 0)
    if let (offset, header) = try embeddedHeader(), let size = header.pageSize {
      // A database inside of a value of this one does not count.
      let isInside = offset % Int64(size) == 0 && here.map { $0.size == size && $0.firstPage < offset } == true
      if !isInside {
        return layout(header: header, size: size, base: offset, vote: try vote(size: size, base: offset))
      }
    }
    if let here { return layout(header: nil, size: here.size, base: 0, vote: here) }
    guard let odd = try unalignedVote() else { return nil }
    return layout(header: nil, size: odd.size, base: odd.base, vote: odd)
  }

  private func layout(header: DatabaseHeader?, size: Int, base: Int64, vote: Vote) -> FileLayout {
    var reserved = vote.reserved
    if let header, header.hasUsualFractions, size - Int(header.reservedBytes) >= 480 {
      reserved = Int(header.reservedBytes)
    }
    let bytes = max(0, main.count - base)
    return FileLayout(
      pageSize: size, usableSize: size - reserved, base: base, header: header,
      encoding: encoding(header, vote), pageCount: UInt32(clamping: (bytes + Int64(size) - 1) / Int64(size)))
  }

  /// The encoding that the header states, unless the texts contradict it: UTF-16 has no odd number of bytes, and no other
  /// encoding a zero in every second byte.
  private func encoding(_ header: DatabaseHeader?, _ vote: Vote) -> TextEncoding {
    guard let stated = header?.encoding else { return vote.encoding }
    switch stated {
    case .utf8:
      let wide = max(vote.encodings[1], vote.encodings[2])
      return wide > 8 && wide > 4 * vote.encodings[0] ? vote.encoding : stated
    case .utf16LittleEndian, .utf16BigEndian:
      if vote.oddTexts > 4, vote.oddTexts * 10 > vote.encodings.reduce(0, +) { return .utf8 }
      let (own, other) =
        stated == .utf16BigEndian
        ? (vote.encodings[2], vote.encodings[1]) : (vote.encodings[1], vote.encodings[2])
      return other > 8 && other > 4 * own ? (stated == .utf16BigEndian ? .utf16LittleEndian : .utf16BigEndian) : stated
    }
  }

  /// A header that can be believed: the magic bytes and a page size, or all that never changes.
  private func header(at offset: Int64) throws(SalvageError) -> DatabaseHeader? {
    guard let header = DatabaseHeader(try main.piece(at: offset, length: DatabaseHeader.length)),
      header.pageSize != nil, header.hasMagic || header.hasUsualFractions,
      header.hasUsualFractions || header.schemaFormat <= 4
    else { return nil }
    return header
  }

  /// A database within the file.
  private struct Embedded {
    var offset: Int64
    var header: DatabaseHeader

    /// Where it ends by its header.
    var end: Int64 { offset + Int64(header.pageCount) * Int64(header.pageSize ?? 0) }
  }

  /// The header behind the file's beginning that is to be taken: the first of a database of Core Data's, else that of the
  /// largest.
  private func embeddedHeader() throws(SalvageError) -> (Int64, DatabaseHeader)? {
    let found = try embeddedHeaders(from: 1, before: main.count)
    if found.count > 1 {
      for one in found where try isCoreData(one) { return (one.offset, one.header) }
    }
    // Of equally large ones the first.
    var best: Embedded?
    for one in found where one.header.pageCount > best?.header.pageCount ?? 0 { best = one }
    return (best ?? found.first).map { ($0.offset, $0.header) }
  }

  private func isCoreData(_ database: Embedded) throws(SalvageError) -> Bool {
    let length = min(256 << 10, max(4096, database.end - database.offset))
    let schema = try main.piece(at: database.offset, length: Int(length))
    return !Self.places(of: Array("Z_PRIMARYKEY".utf8), in: schema.span).isEmpty
      || !Self.places(of: Array("Z\0_\0P\0R\0I\0M\0A\0R\0Y\0K\0E\0Y".utf8), in: schema.span).isEmpty
  }

  /// The headers in a part of the file, but none within a database whose header comes before it.
  private func embeddedHeaders(from start: Int64, before end: Int64) throws(SalvageError) -> [Embedded] {
    let length = 1 << 20
    let magic = DatabaseHeader.magic
    var found: [Embedded] = []
    var offset = start
    var buffer = [UInt8](repeating: 0, count: length + 16)
    while offset < end {
      let got = try main.piece(at: offset, length: buffer.count, into: &buffer)
      guard got >= 16 else { break }
      for place in Self.places(of: magic, in: buffer.span.extracting(0..<got)) where place < length {
        let position = offset + Int64(place)
        guard position < end, found.count < 64, position >= found.last?.end ?? 0,
          let header = try header(at: position), header.hasUsualFractions
        else { continue }
        found.append(Embedded(offset: position, header: header))
      }
      offset += Int64(length)
    }
    return found
  }

  private static func places(of pattern: [UInt8], in bytes: Span<UInt8>) -> [Int] {
    var places: [Int] = []
    let first = pattern[0]
    var index = 0
    let end = bytes.count - pattern.count
    while index <= end {
      if bytes[index] == first {
        var length = 1
        while length < pattern.count, bytes[index &+ length] == pattern[length] { length &+= 1 }
        if length == pattern.count, places.count < 16 { places.append(index) }
      }
      index &+= 1
    }
    return places
  }
}

extension FileLayoutSearch {
  /// What the pages of one size and place look like.
  struct Vote {
    var size: Int
    var base: Int64

    /// Pages of b-trees among those looked at.
    var pages = 0

    /// The offset of the first of them.
    var firstPage = Int64.max

    /// The bytes that those pages leave at their ends.
    var reservedCounts: [Int: Int] = [:]

    /// Texts that look like UTF-8, UTF-16 little-endian and UTF-16 big-endian.
    var encodings = [0, 0, 0]

    /// Texts whose number of bytes is odd.
    var oddTexts = 0

    var reserved: Int {
      guard let best = reservedCounts.max(by: { $0.value < $1.value }), best.key <= 255, 2 * best.value > pages else {
        return 0
      }
      return best.key
    }

    var encoding: TextEncoding {
      if encodings[1] > encodings[0], encodings[1] >= encodings[2] { return .utf16LittleEndian }
      if encodings[2] > encodings[0] { return .utf16BigEndian }
      return .utf8
    }
  }

  private func bestVote(residue: Int64) throws(SalvageError) -> Vote? {
    var best: Vote?
    for size in sizesElsewhere + Self.pageSizes {
      let vote = try vote(size: size, base: residue)
      if vote.pages > best?.pages ?? 0 { best = vote }
    }
    return best
  }

  /// Looks at up to 256 runs of pages, evenly spread over the file.
  func vote(size: Int, base: Int64) throws(SalvageError) -> Vote {
    var vote = Vote(size: size, base: base)
    let count = (main.count - base) / Int64(size)
    guard count > 0 else { return vote }
    let run = max(1, 65536 / size)
    let step = max(Int64(run), count / 64)
    var buffer = [UInt8](repeating: 0, count: run * size)
    var page: Int64 = 0
    while page < count {
      let offset = base + page * Int64(size)
      let got = try main.piece(at: offset, length: buffer.count, into: &buffer)
      for index in 0..<(got / size) {
        let bytes = buffer.span.extracting((index * size)..<((index + 1) * size))
        if TreePageLook.add(bytes, isFirst: page == 0 && index == 0, to: &vote) {
          vote.firstPage = min(vote.firstPage, offset + Int64(index * size))
        }
      }
      page += step
    }
    return vote
  }

  /// Tries every offset of samples of the file: for files that begin with other bytes and whose header is gone too.
  private func unalignedVote() throws(SalvageError) -> Vote? {
    var counts: [Int: [Int: Int]] = [:]
    for part in 0..<4 {
      let start = main.count / 4 * Int64(part)
      let sample = try main.piece(at: start, length: 256 << 10)
      for size in Self.pageSizes where size >= 1024 {
        var offset = 0
        while offset + size <= sample.count {
          if [2, 5, 10, 13].contains(sample[offset]) {
            var vote = Vote(size: size, base: 0)
            if TreePageLook.add(
              sample.span.extracting(offset..<(offset + size)), isFirst: false, to: &vote)
            {
              counts[size, default: [:]][Int((start + Int64(offset)) % Int64(size)), default: 0] += 1
              offset += size - 1
            }
          }
          offset += 1
        }
      }
    }
    var best: (size: Int, residue: Int, count: Int)?
    for (size, residues) in counts {
      for (residue, count) in residues where count > (best?.count ?? 1) { best = (size, residue, count) }
    }
    guard let best else { return nil }
    let vote = try vote(size: best.size, base: Int64(best.residue))
    return vote.pages > 0 ? vote : nil
  }
}

/// Tells pages of b-trees by their looks alone.
enum TreePageLook {
  /// Whether the bytes are a page of a b-tree with at least one cell; adds what it shows to a vote.
  static func add(_ bytes: Span<UInt8>, isFirst: Bool, to vote: inout FileLayoutSearch.Vote) -> Bool {
    let start = isFirst ? DatabaseHeader.length : 0
    guard start + 12 < bytes.count, let kind = PageKind(rawValue: bytes[start]),
      let count = bytes.uint16(at: start + 3),
      let content = bytes.uint16(at: start + 5), count > 0
    else { return false }
    let pointers = start + kind.headerLength
    let contentStart = content == 0 ? 65536 : content
    guard pointers + 2 * count <= contentStart, contentStart < bytes.count else { return false }
    let geometry = PayloadGeometry(usableSize: bytes.count)
    var end = 0
    for index in 0..<count {
      guard let offset = bytes.uint16(at: pointers + 2 * index), offset >= contentStart,
        let cell = Cell(bytes, kind: kind, at: offset, geometry: geometry)
      else { return false }
      end = max(end, cell.offset + cell.length)
      if kind == .tableLeaf, cell.overflowPage == nil { addTexts(bytes, cell.localPayload, to: &vote) }
    }
    vote.pages += 1
    vote.reservedCounts[bytes.count - end, default: 0] += 1
    return true
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
