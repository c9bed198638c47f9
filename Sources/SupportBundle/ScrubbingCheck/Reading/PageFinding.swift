internal import Platform

/// Finds page images in a store's files.
enum PageFinding {
  private static let sizes = [65536, 32768, 16384, 8192, 4096, 2048, 1024, 512]

  /// The pages sampled without a header.
  private static let sampled = 2048

  /// Returns the page sizes from a header or a sample.
  static func format(
    of main: any ByteSource, log: (any ByteSource)?, _ hint: ResultCheck.PageHint?
  ) throws(FileError) -> PageFormat? {
    if let hint, sizes.contains(hint.pageSize), hint.base >= 0 {
      let header = try main.bytes(at: hint.base, length: 100)
      if let format = PageFormat(header: header.span), format.pageSize == hint.pageSize { return format }
      return PageFormat(pageSize: hint.pageSize, encoding: CheckedEncoding(Bytes.four(header.span, 56)))
    }
    let header = try main.bytes(at: 0, length: 100)
    if header.starts(with: "SQLite format 3\0".utf8), let format = PageFormat(header: header.span) { return format }
    let encoding = PageFormat(header: header.span)?.encoding ?? .utf8
    if let log, log.count >= 32 {
      let head = try log.bytes(at: 0, length: 32)
      if let magic = Bytes.four(head.span, 0), magic & ~1 == 0x377f_0682, let size = Bytes.four(head.span, 8),
        sizes.contains(size)
      {
        return PageFormat(pageSize: size, encoding: encoding)
      }
    }
    var counts: [(size: Int, count: Int)] = []
    for size in sizes {
      var count = 0
      for page in 0..<min(Self.sampled, Int(clamping: main.count / Int64(size))) {
        let bytes = try main.bytes(at: Int64(page) * Int64(size), length: 8)
        if isTree(bytes.span, pageSize: size) { count += 1 }
      }
      counts.append((size, count))
    }
    guard let most = counts.map(\.count).max(), most > 0 else { return nil }
    // Smaller sizes find the same pages; larger ones miss some.
    return counts.first { $0.count * 10 >= most * 9 }.map { PageFormat(pageSize: $0.size, encoding: encoding) }
  }

  /// Whether a header gives the encoding.
  static func hasHeader(_ main: any ByteSource, at base: Int64) throws(FileError) -> Bool {
    let header = try main.bytes(at: base, length: 100)
    return PageFormat(header: header.span) != nil && (1...3).contains(Bytes.four(header.span, 56) ?? 0)
  }

  /// Returns the encoding from another header, or from zeros in texts.
  static func encoding(of parts: [CheckedStore.Part], _ format: PageFormat) throws(FileError) -> CheckedEncoding {
    var page = CheckedPage()
    var votes = [0, 0, 0]
    for part in parts {
      for image in part.images.prefix(sampled) {
        let bytes = try part.source.bytes(at: image.offset, length: format.pageSize)
        if image.page == 1, let number = Bytes.four(bytes.span, 56), (1...3).contains(number),
          PageFormat(header: bytes.span)?.pageSize == format.pageSize
        {
          return CheckedEncoding(number)
        }
        page.read(bytes.span, number: image.page, format, isMarking: false)
        for field in page.fields where field.type >= 13 && field.type & 1 == 1 && field.range.count >= 4 {
          let zeros = field.range.filter { bytes[$0] == 0 }.map { ($0 - field.range.lowerBound) & 1 }
          let place = zeros.count * 4 < field.range.count ? 0 : zeros.count { $0 == 1 } * 2 > zeros.count ? 1 : 2
          votes[place] += 1
        }
      }
    }
    let most = votes.max() ?? 0
    return votes[0] == most ? .utf8 : votes[1] == most ? .utf16LittleEndian : .utf16BigEndian
  }

  /// Returns the encoding of schema rows, as a damaged header may be wrong.
  static func encoding(ofSchemaIn main: any ByteSource, from base: Int64, _ format: PageFormat) throws(FileError)
    -> CheckedEncoding?
  {
    var page = CheckedPage()
    var number = 1
    for _ in 0..<4 {
      let bytes = try main.bytes(at: base + Int64(number - 1) * Int64(format.pageSize), length: format.pageSize)
      guard bytes.count == format.pageSize else { return nil }
      page.read(bytes.span, number: number, format, isMarking: false)
      for record in page.records where record.count == 5 {
        guard let field = record.fields.first.map({ page.fields[$0] }), field.place == 0, field.isWhole else {
          continue
        }
        let kind = bytes[field.range]
        for encoding in [CheckedEncoding.utf8, .utf16LittleEndian, .utf16BigEndian]
        where ["table", "index", "trigger", "view"].contains(encoding.text(kind)) { return encoding }
      }
      guard page.kind == 5, let child = page.children.last, child > 1 else { return nil }
      number = child
    }
    return nil
  }

  private static func isTree(_ bytes: Span<UInt8>, pageSize: Int) -> Bool {
    guard bytes.count == 8, [2, 5, 10, 13].contains(bytes[0]), let cells = Bytes.two(bytes, 3),
      let content = Bytes.two(bytes, 5), let free = Bytes.two(bytes, 1)
    else { return false }
    return cells <= pageSize / 6 && content <= pageSize && free < pageSize && (content > 8 + 2 * cells || content == 0)
  }

  /// Returns a part's page images.
  static func images(
    of part: CheckedStore.Part, _ format: PageFormat, from base: Int64
  ) throws(FileError) -> [CheckedStore.Image] {
    switch part.part {
    case .main: images(ofMain: part.source, format, from: base)
    case .wal: try images(ofLog: part.source, format)
    case .journal: try images(ofJournal: part.source, format)
    case .sharedMemory, .externalData: []
    }
  }

  static func images(ofMain main: any ByteSource, _ format: PageFormat, from base: Int64) -> [CheckedStore.Image] {
    let count = Int(clamping: max(0, main.count - base + Int64(format.pageSize) - 1) / Int64(format.pageSize))
    return (0..<count).map { CheckedStore.Image(page: $0 + 1, offset: base + Int64($0) * Int64(format.pageSize)) }
  }

  static func images(ofLog log: any ByteSource, _ format: PageFormat) throws(FileError) -> [CheckedStore.Image] {
    let length = 24 + format.pageSize
    var images: [CheckedStore.Image] = []
    for offset in stride(from: 32, through: log.count - Int64(length), by: length) {
      let head = try log.bytes(at: offset, length: 4)
      images.append(CheckedStore.Image(page: Bytes.four(head.span, 0) ?? 0, offset: offset + 24))
    }
    return images
  }

  static func images(ofJournal journal: any ByteSource, _ format: PageFormat) throws(FileError) -> [CheckedStore.Image]
  {
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    let head = try journal.bytes(at: 0, length: 28)
    var sector = Int64(Bytes.four(head.span, 20) ?? 512)
    if sector < 32 || sector > 65536 || sector & (sector - 1) != 0 { sector = 512 }
    var images: [CheckedStore.Image] = []
    var offset = sector
    while offset + Int64(format.pageSize) + 8 <= journal.count {
      let head = try journal.bytes(at: offset, length: 8)
      if head.starts(with: magic) {
        offset += sector
      } else if let page = Bytes.four(head.span, 0), page > 0, Int64(page) <= 1 << 31 {
        images.append(CheckedStore.Image(page: page, offset: offset + 4))
        offset += Int64(format.pageSize) + 8
      } else {
        // The next transaction starts at a sector.
        let next = (offset + sector) / sector * sector
        guard try journal.bytes(at: next, length: 8).starts(with: magic) else { break }
        offset = next
      }
    }
    return images
  }
}

struct PageFormat {
  let pageSize: Int

  let usableSize: Int

  let encoding: CheckedEncoding

  /// Fails if implausible.
  init?(header: Span<UInt8>) {
    guard let stored = Bytes.two(header, 16), header.count >= 100 else { return nil }
    let size = stored == 1 ? 65536 : stored
    guard size >= 512, size <= 65536, size & (size - 1) == 0, header[18] <= 2, header[19] <= 2, header[21] == 64,
      size - Int(header[20]) >= 480
    else { return nil }
    self.init(pageSize: size, reserved: Int(header[20]), encoding: CheckedEncoding(Bytes.four(header, 56)))
  }

  init(pageSize: Int, reserved: Int = 0, encoding: CheckedEncoding = .utf8) {
    self.pageSize = pageSize
    usableSize = pageSize - reserved
    self.encoding = encoding
  }

  /// Returns the local part of a payload.
  func localLength(of payload: Int, isTableLeaf: Bool) -> Int {
    let most = isTableLeaf ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
    if payload <= most { return payload }
    let least = (usableSize - 12) * 32 / 255 - 23
    let rest = least + (payload - least) % (usableSize - 4)
    return rest <= most ? rest : least
  }
}

enum CheckedEncoding {
  case utf8
  case utf16LittleEndian
  case utf16BigEndian

  init(_ number: Int?) {
    switch number {
    case 2: self = .utf16LittleEndian
    case 3: self = .utf16BigEndian
    default: self = .utf8
    }
  }

  /// Decodes text with U+FFFD for invalid parts.
  func text(_ bytes: some Collection<UInt8>) -> String {
    guard self != .utf8 else { return String(decoding: bytes, as: UTF8.self) }
    var units: [UInt16] = []
    var first: UInt8?
    for byte in bytes {
      guard let before = first else {
        first = byte
        continue
      }
      let (high, low) = self == .utf16BigEndian ? (before, byte) : (byte, before)
      units.append(UInt16(high) << 8 | UInt16(low))
      first = nil
    }
    return String(decoding: units, as: UTF16.self)
  }
}
