public import Platform

/// A rollback journal: the pages as they were before a transaction that may have been cut off (SQLite file format, "The
/// Rollback Journal").
///
/// It is hot where SQLite would roll it back at the next opening. Pages are not kept in memory, only where they are.
public struct RollbackJournal: Sendable {
  /// The header of the journal's first segment.
  public struct Header: Sendable, Hashable {
    /// The number of bytes of the header's fields; the header itself fills a sector.
    public static let length = 28

    /// The number of records of the first segment; 0xffffffff for as many as the file holds.
    public var storedRecordCount: UInt32

    /// The number that the records' checksums start from.
    public var nonce: UInt32

    /// The size of the database in pages before the transaction.
    public var originalPageCount: UInt32

    /// The sector size in bytes; segments begin at its multiples.
    public var sectorSize: UInt32

    /// The page size in bytes as stored.
    public var storedPageSize: UInt32
  }

  /// What the journal's beginning says about it.
  public enum State: String, Sendable, Hashable {
    /// No byte, or too few for a header.
    case empty

    /// Zeros where the header was: the transaction is over, and the file is kept for the next one.
    case finished

    /// A header, and so a transaction to roll back.
    case hot

    case invalid
  }

  /// The eight bytes that a journal's segments begin with.
  public static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  /// The journal's bytes.
  public let source: any ByteSource

  /// What the journal's beginning says about it.
  public internal(set) var state = State.empty

  /// The first segment's header, where there is a usable one.
  public internal(set) var header: Header?

  /// The number of segments that were read.
  public internal(set) var segmentCount = 0

  /// The number of records whose checksum is right, in all segments.
  public internal(set) var recordCount = 0

  /// The name of the super-journal at the end, as bytes of a path, where the transaction spans several databases.
  public internal(set) var superJournal: [UInt8]?

  /// What is odd about the journal.
  public internal(set) var findings = Findings()

  /// Whether records of it are gone or damaged, so that not all of its transaction can be undone.
  public var isCutShort: Bool {
    findings.contains(.journalTruncated) || findings.contains(.journalRecordChecksumWrong)
      || findings.contains(.journalRecordInvalid)
  }

  /// Whether the last segment is on the disk and no other header is behind it.
  var endsWithoutHeader = false

  /// Where its last record ends.
  var end: Int64 = 0

  /// Where in the journal each page's content is.
  var pageOffsets: [UInt32: Int64] = [:]

  /// The page size; nil where there is no usable header.
  public var pageSize: Int? { header.map { Int($0.storedPageSize) } }

  /// The pages that are rolled back, in ascending order.
  public var pages: [UInt32] { pageOffsets.keys.sorted() }

  /// Where in the journal the old content of a page begins.
  public func pageOffset(of page: UInt32) -> Int64? { pageOffsets[page] }

  /// Reads a journal's headers and checks its records, in pieces.
  ///
  /// - Parameters:
  ///   - databasePageSize: used where the journal's own field is 0, as very old versions of SQLite left it.
  ///   - database: the header of the database file; without it a journal that was cut off between two segments is not seen.
  ///   - takesUnsynced: whether records of a segment that was not on the disk for certain are taken too. SQLite leaves
  ///     them out: the pages that they are of were not written before.
  public init(
    _ source: any ByteSource, databasePageSize: Int? = nil, database: DatabaseHeader? = nil,
    takesUnsynced: Bool = false
  ) throws(FormatError) {
    self.source = source
    guard source.count > 0 else { return }
    try scan(databasePageSize: databasePageSize, takesUnsynced: takesUnsynced)
    try noteMissingSegments(database)
    superJournal = try readSuperJournal()
    if superJournal != nil { findings.note(.superJournalNamed) }
  }
}

extension RollbackJournal.Header {
  /// Reads a header's fields; nil where they do not begin with the magic bytes.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= RollbackJournal.Header.length, bytes.starts(with: RollbackJournal.magic) else { return nil }
    func word(_ offset: Int) -> UInt32 { bytes.span.uint32(at: offset) ?? 0 }
    storedRecordCount = word(8)
    nonce = word(12)
    originalPageCount = word(16)
    sectorSize = word(20)
    storedPageSize = word(24)
  }
}

extension RollbackJournal {
  mutating func scan(databasePageSize: Int?, takesUnsynced: Bool) throws(FormatError) {
    let bytes = try source.read(at: 0, length: Header.length)
    guard var first = Header(bytes) else {
      // SQLite goes by the first byte alone: a zero there means that the journal is not hot.
      state = bytes.first == 0 ? .finished : .invalid
      findings.note(state == .finished ? .journalFinished : .journalHeaderInvalid)
      return
    }
    if first.storedPageSize == 0, let databasePageSize { first.storedPageSize = UInt32(databasePageSize) }
    let sector = first.sectorSize
    guard DatabaseHeader.isPageSize(Int(first.storedPageSize)), sector >= 32, sector <= 65536,
      sector & (sector - 1) == 0
    else {
      state = .invalid
      findings.note(.journalHeaderInvalid)
      return
    }
    header = first
    state = .hot
    findings.note(.journalHot, found: Int64(first.originalPageCount))
    var segment: Header? = first
    var offset: Int64 = 0
    var isUnsynced = false
    while let header = segment {
      segmentCount += 1
      let end = try readSegment(header, at: offset, first: first, takes: takesUnsynced || !isUnsynced)
      segment = try nextHeader(behind: end, first)
      // Until a segment is on the disk its header has neither the magic bytes nor a count.
      let beginning = try source.read(at: aligned(end), length: Header.length)
      isUnsynced = isUnsynced || segment != nil && Header(beginning) == nil
      if segment == nil { segment = try lostHeader(behind: end, first) }
      endsWithoutHeader = segment == nil && header.storedRecordCount > 0 && header.storedRecordCount < .max
      offset = aligned(end)
      self.end = end
    }
  }

  /// Whether nothing but zeros and the name of a super-journal is behind the last record; true for a journal that is not hot.
  public var isReadToItsEnd: Bool {
    get throws(FormatError) {
      guard state == .hot else { return true }
      let last = superJournal.map { source.count - 16 - Int64($0.count) } ?? source.count
      var offset = end
      while offset < last {
        let bytes = try source.read(at: offset, length: Int(min(1 << 16, last - offset)))
        if bytes.isEmpty { return true }
        if bytes.contains(where: { $0 != 0 }) { return false }
        offset += Int64(bytes.count)
      }
      return true
    }
  }

  /// Notes that segments are missing behind the last one.
  ///
  /// Once a segment is on the disk SQLite writes the next header at once, but at the end of the transaction; the file's first
  /// page is the first to be written then, with the next counter of transactions.
  mutating func noteMissingSegments(_ database: DatabaseHeader?) throws(FormatError) {
    guard endsWithoutHeader, !isCutShort, let database else { return }
    var isEnding = false
    if let offset = pageOffsets[1] {
      guard let old = DatabaseHeader(try source.read(at: offset, length: DatabaseHeader.length)) else { return }
      isEnding = database.changeCounter != old.changeCounter
    }
    if !isEnding { findings.note(.journalTruncated, found: Int64(recordCount)) }
  }

  /// A header for a segment that lost its own to zeros: the checksums of its records share one nonce.
  private mutating func lostHeader(behind offset: Int64, _ first: Header) throws(FormatError) -> Header? {
    let (start, pageSize) = (aligned(offset), Int(first.storedPageSize))
    let own = try source.read(at: start, length: Header.length)
    guard own.allSatisfy({ $0 == 0 }) else { return nil }
    var nonces: [UInt32] = []
    for place in [0, 1] {
      let record = try source.read(
        at: start + Int64(first.sectorSize) + Int64(place * (pageSize + 8)), length: pageSize + 8)
      guard record.count == pageSize + 8, let page = record.span.uint32(at: 0), page > 0,
        page <= first.originalPageCount, let checksum = record.span.uint32(at: 4 + pageSize)
      else { return nil }
      nonces.append(checksum &- Self.checksum(record.span, pageSize: pageSize, nonce: 0))
    }
    guard nonces[0] == nonces[1] else { return nil }
    var header = first
    (header.nonce, header.storedRecordCount) = (nonces[0], 0)
    findings.note(.journalSegmentHeaderLost)
    return header
  }

  private func aligned(_ offset: Int64) -> Int64 {
    let sector = Int64(header?.sectorSize ?? 512)
    return (offset + sector - 1) / sector * sector
  }

  /// The header of the segment behind an offset; nil where there is none.
  private func nextHeader(behind offset: Int64, _ first: Header) throws(FormatError) -> Header? {
    let bytes = try source.read(at: aligned(offset), length: Header.length)
    if let header = Header(bytes) { return header }
    guard bytes.count == Header.length, bytes.prefix(12).allSatisfy({ $0 == 0 }),
      let header = Header(Self.magic + [0, 0, 0, 0] + bytes[12...]), header.sectorSize == first.sectorSize,
      header.storedPageSize == first.storedPageSize
    else { return nil }
    return header
  }

  /// Takes a segment's records as far as whole ones with right checksums go, whatever their count says; returns where it ends.
  ///
  /// A record proves itself, so one that is damaged ends nothing; behind those that are counted the first one does.
  private mutating func readSegment(
    _ segment: Header, at start: Int64, first: Header, takes: Bool
  ) throws(FormatError) -> Int64 {
    let pageSize = Int(first.storedPageSize)
    let length = pageSize + 8
    let lockBytePage = PageLayout(pageSize: pageSize, usableSize: pageSize).lockBytePage
    let toEnd = segment.storedRecordCount == .max
    let count = Int64(segment.storedRecordCount)
    var offset = start + Int64(first.sectorSize)
    var record: [UInt8] = []
    var done: Int64 = 0
    while offset + Int64(length) <= source.count {
      if done == count, try nextHeader(behind: offset, first) != nil { return offset }
      try source.fill(&record, at: offset, length: length)
      guard let page = record.span.uint32(at: 0), let checksum = record.span.uint32(at: 4 + pageSize) else { break }
      let isPossible = page != 0 && page != lockBytePage
      if isPossible, checksum == RollbackJournal.checksum(record.span, pageSize: pageSize, nonce: segment.nonce) {
        if page <= first.originalPageCount, takes { pageOffsets[page] = offset + 4 }
        if takes { recordCount += 1 }
      } else if done >= count {
        return offset
      } else if done < count, try Header(source.read(at: aligned(offset), length: Header.length)) != nil {
        break
      } else if isPossible {
        findings.note(.journalRecordChecksumWrong, page: page, found: Int64(recordCount + 1))
      } else {
        findings.note(.journalRecordInvalid, found: Int64(recordCount + 1))
      }
      done += 1
      offset += Int64(length)
    }
    if done < count, !toEnd { findings.note(.journalTruncated, expected: count, found: done) }
    return offset
  }

  /// The checksum of a record: the nonce and every 200th byte of the page, counted from its end.
  static func checksum(_ record: Span<UInt8>, pageSize: Int, nonce: UInt32) -> UInt32 {
    var sum = nonce
    var index = pageSize - 200
    while index > 0 {
      sum &+= UInt32(record[4 + index])
      index -= 200
    }
    return sum
  }

  /// The super-journal's name, which stands before its length, its checksum and the magic bytes at the journal's end.
  func readSuperJournal() throws(FormatError) -> [UInt8]? {
    guard state == .hot, source.count >= 16 else { return nil }
    let tail = try source.read(at: source.count - 16, length: 16)
    guard tail.count == 16, tail[8...].elementsEqual(RollbackJournal.magic), let length = tail.span.uint32(at: 0),
      let checksum = tail.span.uint32(at: 4), length > 0, length <= 4096, Int64(length) <= source.count - 16
    else { return nil }
    let name = try source.read(at: source.count - 16 - Int64(length), length: Int(length))
    // The writer adds C characters, which have a sign on most machines and none on others.
    var sum: UInt32 = 0
    var unsignedSum: UInt32 = 0
    for byte in name {
      sum &+= UInt32(bitPattern: Int32(Int8(bitPattern: byte)))
      unsignedSum &+= UInt32(byte)
    }
    return sum == checksum || unsignedSum == checksum ? name : nil
  }
}

/// The places of a database's pages whose number alone says what they are: pointer maps and the lock-byte page.
public struct PageLayout: Sendable, Hashable {
  /// The page size in bytes.
  public let pageSize: Int

  /// The usable bytes of a page.
  public let usableSize: Int

  /// A layout for pages of the given size.
  public init(pageSize: Int, usableSize: Int) {
    self.pageSize = max(512, pageSize)
    self.usableSize = max(480, usableSize)
  }

  /// The page that holds the lock bytes at 1 GiB, and nothing else.
  public var lockBytePage: UInt32 { UInt32((1 << 30) / pageSize) + 1 }

  /// How many pages one pointer-map page tells of.
  public var pointerMapEntries: Int { usableSize / 5 }

  /// The pointer-map page that tells of a page, in an auto-vacuum database; nil for page 1.
  public func pointerMapPage(for page: UInt32) -> UInt32? {
    guard page >= 2 else { return nil }
    let group = UInt32(pointerMapEntries) + 1
    let map = (page - 2) / group * group + 2
    return map == lockBytePage ? map + 1 : map
  }

  /// Whether a page is a pointer-map page, in an auto-vacuum database.
  public func isPointerMap(_ page: UInt32) -> Bool { pointerMapPage(for: page) == page }
}
