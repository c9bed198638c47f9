public import Platform

/// A rollback journal of a possibly interrupted transaction (SQLite file format, "The Rollback Journal").
///
/// It is hot if SQLite would roll it back. Only page offsets stay in memory.
public struct RollbackJournal: Sendable {
  /// The first segment's header.
  public struct Header: Sendable, Hashable {
    /// The length of the header's fields in bytes; the header fills a sector.
    public static let length = 28

    /// The first segment's record count; 0xffffffff for all that the file holds.
    public var storedRecordCount: UInt32

    /// The start value of record checksums.
    public var nonce: UInt32

    /// The database size in pages before the transaction.
    public var originalPageCount: UInt32

    /// The sector size in bytes, which aligns segments.
    public var sectorSize: UInt32

    /// The stored page size in bytes.
    public var storedPageSize: UInt32
  }

  /// The state by the journal's first bytes.
  public enum State: String, Sendable, Hashable {
    case empty

    /// A zeroed header: the transaction is over, the file kept for the next.
    case finished

    case hot, invalid
  }

  /// The first eight bytes of a segment.
  public static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  /// The journal's bytes.
  public let source: any ByteSource

  /// The state by the journal's first bytes.
  public internal(set) var state = State.empty

  /// The first segment's header, if usable.
  public internal(set) var header: Header?

  /// The number of segments read.
  public internal(set) var segmentCount = 0

  /// The records with right checksums in all segments.
  public internal(set) var recordCount = 0

  /// The super-journal's path as bytes, if the transaction spans several databases.
  public internal(set) var superJournal: [UInt8]?

  /// The oddities of the journal.
  public internal(set) var findings = Findings()

  /// Whether records are missing or damaged, so that the rollback is incomplete.
  public var isCutShort: Bool {
    findings.contains(.journalTruncated) || findings.contains(.journalRecordChecksumWrong)
      || findings.contains(.journalRecordInvalid)
  }

  /// Whether the last segment is synced and no header follows it.
  var endsWithoutHeader = false

  var end: Int64 = 0

  var pageOffsets: [UInt32: Int64] = [:]

  /// The page size; nil without a usable header.
  public var pageSize: Int? { header.map { Int($0.storedPageSize) } }

  /// The pages to roll back, in ascending order.
  public var pages: [UInt32] { pageOffsets.keys.sorted() }

  /// Returns the journal offset of a page's old content.
  public func pageOffset(of page: UInt32) -> Int64? { pageOffsets[page] }

  /// Reads headers and checks records.
  ///
  /// - Parameters:
  ///   - databasePageSize: replaces a 0, left by very old SQLite versions.
  ///   - database: the file's header, which reveals a journal cut off between segments.
  ///   - takesUnsynced: whether to read possibly unsynced segments. SQLite skips them, since their
  ///     pages were not yet overwritten.
  public init(
    _ source: any ByteSource, databasePageSize: Int? = nil, database: DatabaseHeader? = nil, takesUnsynced: Bool = false
  ) throws(FileError) {
    self.source = source
    guard source.count > 0 else { return }
    try scan(databasePageSize: databasePageSize, takesUnsynced: takesUnsynced)
    try noteMissingSegments(database)
    superJournal = try readSuperJournal()
    if superJournal != nil { findings.note(.superJournalNamed) }
  }
}

extension RollbackJournal.Header {
  /// Returns nil without the magic bytes.
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
  mutating func scan(databasePageSize: Int?, takesUnsynced: Bool) throws(FileError) {
    let bytes = try source.bytes(at: 0, length: Header.length)
    guard var first = Header(bytes) else {
      // SQLite zeroes a finished header, and writes magic bytes and count after the first records.
      state = bytes.prefix(12).allSatisfy { $0 == 0 } ? .finished : .invalid
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
      let before = recordCount
      let end = try readSegment(header, at: offset, first: first, takes: takesUnsynced || !isUnsynced)
      segment = try nextHeader(behind: end, first)
      // SQLite undoes as many records as a header counts, and reads no header behind a count of all.
      if recordCount - before > header.storedRecordCount || segment != nil && header.storedRecordCount == .max {
        findings.note(.journalSegmentHeaderLost)
      }
      // An unsynced segment's header has neither magic nor count.
      let beginning = try source.bytes(at: aligned(end), length: Header.length)
      isUnsynced = isUnsynced || segment != nil && Header(beginning) == nil
      if segment == nil { segment = try lostHeader(behind: end, first) }
      endsWithoutHeader = segment == nil && header.storedRecordCount > 0 && header.storedRecordCount < .max
      offset = aligned(end)
      self.end = end
    }
  }

  /// Whether only zeros and a super-journal name follow the records; true if not hot.
  public var isReadToItsEnd: Bool {
    get throws(FileError) {
      guard state == .hot else { return true }
      let last = superJournal.map { source.count - 16 - Int64($0.count) } ?? source.count
      var offset = end
      while offset < last {
        let bytes = try source.bytes(at: offset, length: Int(min(1 << 16, last - offset)))
        if bytes.isEmpty { return true }
        if bytes.contains(where: { $0 != 0 }) { return false }
        offset += Int64(bytes.count)
      }
      return true
    }
  }

  /// Notes missing final segments.
  ///
  /// SQLite writes the next header after syncing a segment, except at the transaction's end, when it first writes page
  /// 1 with the next counter.
  mutating func noteMissingSegments(_ database: DatabaseHeader?) throws(FileError) {
    guard endsWithoutHeader, !isCutShort, let database else { return }
    var isEnding = false
    if let offset = pageOffsets[1] {
      guard let old = DatabaseHeader(try source.bytes(at: offset, length: DatabaseHeader.length)) else { return }
      isEnding = database.changeCounter != old.changeCounter
    }
    if !isEnding { findings.note(.journalTruncated, found: Int64(recordCount)) }
  }

  /// Reconstructs a zeroed segment header from its records' shared nonce.
  private mutating func lostHeader(behind offset: Int64, _ first: Header) throws(FileError) -> Header? {
    let (start, pageSize) = (aligned(offset), Int(first.storedPageSize))
    let own = try source.bytes(at: start, length: Header.length)
    guard own.allSatisfy({ $0 == 0 }) else { return nil }
    var nonces: [UInt32] = []
    for place in [0, 1] {
      let record = try source.bytes(
        at: start + Int64(first.sectorSize) + Int64(place * (pageSize + 8)), length: pageSize + 8)
      guard record.count == pageSize + 8, let page = record.span.uint32(at: 0), page > 0,
        page <= first.originalPageCount, let checksum = record.span.uint32(at: 4 + pageSize)
      else { return nil }
      nonces.append(checksum &- Self.checksum(record.span, pageSize: pageSize, nonce: 0))
    }
    guard nonces[0] == nonces[1] else { return nil }
    var header = first
    (header.nonce, header.storedRecordCount) = (nonces[0], 0)
    return header
  }

  private func aligned(_ offset: Int64) -> Int64 {
    let sector = Int64(header?.sectorSize ?? 512)
    return (offset + sector - 1) / sector * sector
  }

  private func nextHeader(behind offset: Int64, _ first: Header) throws(FileError) -> Header? {
    let bytes = try source.bytes(at: aligned(offset), length: Header.length)
    if let header = Header(bytes) { return header }
    guard bytes.count == Header.length, bytes.prefix(12).allSatisfy({ $0 == 0 }),
      let header = Header(Self.magic + [0, 0, 0, 0] + bytes[12...]), header.sectorSize == first.sectorSize,
      header.storedPageSize == first.storedPageSize
    else { return nil }
    return header
  }

  /// Reads a segment's valid records, even beyond its count; returns their end.
  ///
  /// A record proves itself, so damage ends the segment only beyond the count.
  private mutating func readSegment(
    _ segment: Header, at start: Int64, first: Header, takes: Bool
  ) throws(FileError) -> Int64 {
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
      } else if done < count, try Header(source.bytes(at: aligned(offset), length: Header.length)) != nil {
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

  /// The nonce plus every 200th byte of the page, from its end.
  static func checksum(_ record: Span<UInt8>, pageSize: Int, nonce: UInt32) -> UInt32 {
    var sum = nonce
    var index = pageSize - 200
    while index > 0 {
      sum &+= UInt32(record[4 + index])
      index -= 200
    }
    return sum
  }

  /// Returns the super-journal's name, stored before its length, checksum and magic.
  func readSuperJournal() throws(FileError) -> [UInt8]? {
    guard state == .hot, source.count >= 16 else { return nil }
    let tail = try source.bytes(at: source.count - 16, length: 16)
    guard tail.count == 16, tail[8...].elementsEqual(RollbackJournal.magic), let length = tail.span.uint32(at: 0),
      let checksum = tail.span.uint32(at: 4), length > 0, length <= 4096, Int64(length) <= source.count - 16
    else { return nil }
    let name = try source.bytes(at: source.count - 16 - Int64(length), length: Int(length))
    // The writer sums C characters, which are signed on most machines.
    var sum: UInt32 = 0
    var unsignedSum: UInt32 = 0
    for byte in name {
      sum &+= UInt32(bitPattern: Int32(Int8(bitPattern: byte)))
      unsignedSum &+= UInt32(byte)
    }
    return sum == checksum || unsignedSum == checksum ? name : nil
  }
}

/// Records of a rollback journal without its header, found by their shared checksum nonce.
///
/// SQLite zeroes a kept journal's header when a transaction ends, so a missing header proves little. But the end mostly
/// changes page 1's counter, after journaling page 1: if the journal lacks page 1 or has the file's counter, the
/// transaction may be unfinished.
package struct HeaderlessJournal: Sendable {
  /// The offset of each page's first image.
  package private(set) var pageOffsets: [UInt32: Int64] = [:]

  package private(set) var first: DatabaseHeader?

  private let source: any ByteSource
  private let pageSize: Int

  /// The journal sector sizes, likeliest first.
  private static let sectors: [Int64] = [512, 4096, 1024, 2048, 8192, 16384, 32768, 65536]

  /// Reads records; nil if none has that page size.
  package init?(_ source: any ByteSource, pageSize: Int) throws(FileError) {
    self.source = source
    self.pageSize = pageSize
    for sector in Self.sectors where pageOffsets.isEmpty { try read(from: sector, sector) }
    // The header's sector may be missing.
    for sector in Self.sectors where pageOffsets.isEmpty { try read(from: 0, sector) }
    guard !pageOffsets.isEmpty else { return nil }
    if let offset = pageOffsets[1] {
      first = DatabaseHeader(try source.bytes(at: offset, length: DatabaseHeader.length))
      if first == nil { return nil }
    }
  }

  /// Whether pages differ and the file lacks the next change counter.
  ///
  /// - Parameter base: the offset of page 1.
  package func mayBeUnfinished(
    _ main: any ByteSource, at base: Int64 = 0, header: DatabaseHeader?
  ) throws(FileError) -> Bool {
    if let first, header?.changeCounter != first.changeCounter { return false }
    for (page, offset) in pageOffsets {
      let present = try main.bytes(at: base + Int64(page - 1) * Int64(pageSize), length: pageSize)
      if try present != source.bytes(at: offset, length: pageSize) { return true }
    }
    return false
  }

  /// Reads records while they share a nonce, then later segments.
  private mutating func read(from start: Int64, _ sector: Int64) throws(FileError) {
    let length = pageSize + 8
    var record: [UInt8] = []
    var offset = start
    var nonce: UInt32?
    while true {
      try source.fill(&record, at: offset, length: length)
      guard record.count == length else { return }
      let page = record.span.uint32(at: 0) ?? 0
      let found = base(of: record.span)
      if page > 0, page < 1 << 30, nonce == nil || found == nonce {
        if pageOffsets.isEmpty {
          // The first record needs confirmation by the next.
          let next = try source.bytes(at: offset + Int64(length), length: length)
          if next.count == length, base(of: next.span) != found,
            try !isHeader(at: aligned(offset + Int64(length), sector))
          {
            return
          }
        }
        nonce = found
        if pageOffsets[page] == nil { pageOffsets[page] = offset + 4 }
        offset += Int64(length)
        continue
      }
      offset = aligned(offset, sector)
      guard try isHeader(at: offset) else { return }
      let header = try source.bytes(at: offset, length: RollbackJournal.Header.length)
      nonce = header.span.uint32(at: 12)
      offset += sector
    }
  }

  private func base(of record: Span<UInt8>) -> UInt32 {
    (record.uint32(at: 4 + pageSize) ?? 0) &- RollbackJournal.checksum(record, pageSize: pageSize, nonce: 0)
  }

  private func aligned(_ offset: Int64, _ sector: Int64) -> Int64 { (offset + sector - 1) / sector * sector }

  private func isHeader(at offset: Int64) throws(FileError) -> Bool {
    try source.bytes(at: offset, length: RollbackJournal.magic.count) == RollbackJournal.magic
  }
}
