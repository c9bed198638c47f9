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
    var segment = first
    var offset: Int64 = 0
    while true {
      segmentCount += 1
      guard let end = try readSegment(segment, at: offset, first: first) else { return }
      offset = (end + Int64(sector) - 1) / Int64(sector) * Int64(sector)
      guard let next = Header(try source.read(at: offset, length: Header.length)) else { return }
      segment = next
    }
  }

  /// Reads one segment's records; returns where it ends, or nil where reading cannot go on behind it.
  private mutating func readSegment(
    _ segment: Header, at start: Int64, first: Header
  ) throws(FormatError) -> Int64? {
    let pageSize = Int(first.storedPageSize)
    let recordLength = pageSize + 8
    let lockBytePage = PageLayout(pageSize: pageSize, usableSize: pageSize).lockBytePage
    var offset = start + Int64(first.sectorSize)
    let room = max(0, source.count - offset) / Int64(recordLength)
    let toEnd = segment.storedRecordCount == .max
    let count = toEnd ? room : Int64(segment.storedRecordCount)
    let recordsPerPiece = max(1, 262_144 / recordLength)
    var piece: [UInt8] = []
    var done: Int64 = 0
    while done < min(count, room) {
      let wanted = Int(min(Int64(recordsPerPiece), min(count, room) - done))
      try source.fill(&piece, at: offset, length: wanted * recordLength)
      let readable = piece.count / recordLength
      for index in 0..<readable {
        let span = piece.span.extracting((index * recordLength)..<((index + 1) * recordLength))
        guard let page = span.uint32(at: 0), page != 0, page != lockBytePage else {
          findings.note(.journalRecordInvalid, found: Int64(recordCount + 1))
          return nil
        }
        guard span.uint32(at: 4 + pageSize) == RollbackJournal.checksum(span, pageSize: pageSize, nonce: segment.nonce)
        else {
          findings.note(.journalRecordChecksumWrong, page: page, found: Int64(recordCount + 1))
          return nil
        }
        if page <= first.originalPageCount {
          pageOffsets[page] = offset + Int64(index * recordLength) + 4
        }
        recordCount += 1
      }
      done += Int64(readable)
      offset += Int64(readable * recordLength)
      if readable < wanted { break }
    }
    guard done == count else {
      findings.note(.journalTruncated, expected: count, found: done)
      return nil
    }
    return toEnd ? nil : offset
  }

  /// The checksum of a record: the nonce and every 200th byte of the page, counted from its end.
  private static func checksum(_ record: Span<UInt8>, pageSize: Int, nonce: UInt32) -> UInt32 {
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
