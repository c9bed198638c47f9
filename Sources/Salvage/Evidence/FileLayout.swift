internal import Platform
internal import SQLiteFormat

struct FileLayout {
  var pageSize: Int

  var usableSize: Int

  /// The offset of page 1 in the file.
  var base: Int64

  /// The header; nil if destroyed.
  var header: DatabaseHeader?

  var encoding: TextEncoding

  /// The number of pages, including a partial last one.
  var pageCount: UInt32

  /// Sampled pages of no known kind.
  var strangePages = 0

  /// The offsets of other, ignored databases.
  var otherDatabases: [Int64] = []

  /// Whether the pages alone gave the layout.
  var isGuessed: Bool { header == nil }

  var geometry: PayloadGeometry { PayloadGeometry(usableSize: usableSize) }

  var layout: PageLayout { PageLayout(pageSize: pageSize, usableSize: usableSize) }
}

/// Finds a file's layout by its header, at any offset, or by its pages.
struct FileLayoutSearch {
  let main: any ByteSource

  /// Page sizes by log or journal, likeliest first.
  var sizesElsewhere: [Int] = []

  /// The requested database's offset, if any.
  var offset: Int64?

  /// The encoding of the given schema or backup, if known.
  var encodingElsewhere: TextEncoding?

  static let pageSizes = (9...16).map { 1 << $0 }

  /// Finds the database's layout; nil without any page, or if no database begins at the requested offset.
  ///
  /// Offset 0 comes first, then Core Data's first database, then the largest.
  func find() throws -> FileLayout? {
    guard var layout = try offset == nil ? single() : chosen() else { return nil }
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

  private func chosen() throws -> FileLayout? {
    guard let offset, offset >= 0, offset < main.count, let header = try header(at: offset), let size = header.pageSize
    else { return nil }
    return try layout(header: header, size: size, base: offset, vote: try vote(size: size, base: offset))
  }

  func stated() throws -> FileLayout? {
    guard let header = try header(at: 0), let size = header.pageSize else { return nil }
    return try layout(header: header, size: size, base: 0, vote: try vote(size: size, base: 0))
  }

  private func single() throws -> FileLayout? {
    if let header = try header(at: 0), let size = header.pageSize {
      // One flipped bit must not hide everything, and a false header must not be believed.
      let stated = try vote(size: size, base: 0)
      if stated.isConvincing { return try layout(header: header, size: size, base: 0, vote: stated) }
      if let best = try bestVote(residue: 0), best.size != size,
        best.worth(header, length: main.count) > stated.worth(header, length: main.count)
      {
        return try layout(header: header, size: best.size, base: 0, vote: best)
      }
      return try layout(header: header, size: size, base: 0, vote: stated)
    }
    let here = try bestVote(residue: 0)
    if let (offset, header) = try embeddedHeader(), let size = header.pageSize {
      // Ignores a database stored in a value of this one.
      let isInside = offset % Int64(size) == 0 && here.map { $0.size == size && $0.firstPage < offset } == true
      if !isInside {
        return try layout(header: header, size: size, base: offset, vote: try vote(size: size, base: offset))
      }
    }
    if let here { return try layout(header: nil, size: here.size, base: 0, vote: here) }
    guard let odd = try unalignedVote() else { return nil }
    return try layout(header: nil, size: odd.size, base: odd.base, vote: odd)
  }

  private func layout(
    header: DatabaseHeader?, size: Int, base: Int64, vote: Vote
  ) throws -> FileLayout {
    let reserved = try reserved(header, vote)
    let encoding = encoding(header, vote)
    var header = header
    // Corrects the header for all later readers.
    if header?.pageSize != size { header?.storedPageSize = size == 65536 ? 1 : size }
    header?.reservedBytes = UInt8(reserved)
    if header?.encoding != encoding { header?.storedEncoding = encoding.rawValue }
    let bytes = max(0, main.count - base)
    return FileLayout(
      pageSize: size, usableSize: size - reserved, base: base, header: header,
      encoding: encoding, pageCount: UInt32(clamping: (bytes + Int64(size) - 1) / Int64(size)),
      strangePages: vote.strangePages)
  }

  /// A header with magic bytes and page size, or with all constant fields.
  private func header(at offset: Int64) throws -> DatabaseHeader? {
    guard let header = DatabaseHeader(try main.bytes(at: offset, length: DatabaseHeader.length)),
      header.pageSize != nil, header.hasMagic || header.hasUsualFractions,
      header.hasUsualFractions || header.schemaFormat <= 4
    else { return nil }
    return header
  }

  private struct Embedded {
    var offset: Int64
    var header: DatabaseHeader

    var end: Int64 { offset + Int64(header.pageCount) * Int64(header.pageSize ?? 0) }
  }

  /// The embedded header to use: Core Data's first database, else the largest.
  private func embeddedHeader() throws -> (Int64, DatabaseHeader)? {
    let found = try embeddedHeaders(from: 1, before: main.count)
    if found.count > 1 {
      for one in found where try isCoreData(one) { return (one.offset, one.header) }
    }
    var best: Embedded?
    for one in found where one.header.pageCount > best?.header.pageCount ?? 0 { best = one }
    return (best ?? found.first).map { ($0.offset, $0.header) }
  }

  private func isCoreData(_ database: Embedded) throws -> Bool {
    let length = min(256 << 10, max(4096, database.end - database.offset))
    let schema = try main.bytes(at: database.offset, length: Int(length))
    return !Self.places(of: Array("Z_PRIMARYKEY".utf8), in: schema.span).isEmpty
      || !Self.places(of: Array("Z\0_\0P\0R\0I\0M\0A\0R\0Y\0K\0E\0Y".utf8), in: schema.span).isEmpty
  }

  /// The headers in a range, except those within a preceding database.
  private func embeddedHeaders(from start: Int64, before end: Int64) throws -> [Embedded] {
    let length = 1 << 20
    let magic = DatabaseHeader.magic
    var found: [Embedded] = []
    var offset = start
    var buffer = [UInt8](repeating: 0, count: length + 16)
    while offset < end {
      let got = try main.read(at: offset, length: buffer.count, into: &buffer)
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
