internal import StoreFiles

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
  mutating func scan(databasePageSize: Int?) throws(FormatError) {
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
    while let header = segment {
      segmentCount += 1
      let end = try readSegment(header, at: offset, first: first)
      segment = try nextHeader(behind: end, first)
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
  ///
  /// Until a segment is on the disk its header has neither the magic bytes nor a count.
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
    _ segment: Header, at start: Int64, first: Header
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
        if page <= first.originalPageCount { pageOffsets[page] = offset + 4 }
        recordCount += 1
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
