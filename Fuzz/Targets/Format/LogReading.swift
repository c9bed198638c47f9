internal import Platform
internal import SQLiteFormat

/// Reads bytes as a log and as a journal, also with the checksums put right, which a fuzzer cannot guess.
enum LogReading {
  static func run(log bytes: [UInt8]) throws(FuzzFailure) {
    for bytes in [bytes, sealed(log: bytes)] {
      let log: WriteAheadLog
      do throws(FileError) {
        log = try WriteAheadLog(MemoryBytes(bytes))
      } catch {
        continue
      }
      _ = log.findings.items.map(\.description)
      try expect(
        log.committedFrameCount <= log.validFrameCount && log.validFrameCount <= log.frameCount,
        "more frames are valid than there are")
      // A frame that lost bytes is overlapped by the next one.
      try expect(
        log.validFrameCount + log.framesBehindBreak + log.staleFrameCount <= log.frameCount + 1,
        "more frames are counted than there are")
      try expect(log.uncommittedFrameCount >= 0, "fewer than no frames")
      for page in log.pages {
        guard let frame = log.frame(of: page), let offset = log.pageOffset(ofFrame: frame), let length = log.frameLength
        else { throw FuzzFailure("page \(page) has no place in the log") }
        try expect(offset >= 32 && offset + Int64(length - 24) <= Int64(bytes.count), "page \(page) leaves the log")
      }
    }
  }

  static func run(journal bytes: [UInt8]) throws(FuzzFailure) {
    for bytes in [bytes, sealed(journal: bytes)] {
      for pageSize in [nil, 1024] as [Int?] {
        let journal: RollbackJournal
        do throws(FileError) {
          journal = try RollbackJournal(MemoryBytes(bytes), databasePageSize: pageSize)
        } catch {
          continue
        }
        _ = journal.findings.items.map(\.description)
        try expect((journal.superJournal?.count ?? 0) <= bytes.count, "a name that is longer than the journal")
        for page in journal.pages {
          guard let offset = journal.pageOffset(of: page), let size = journal.pageSize else {
            throw FuzzFailure("page \(page) has no place in the journal")
          }
          try expect(offset >= 28 && offset + Int64(size) <= Int64(bytes.count), "page \(page) leaves the journal")
        }
      }
    }
  }

  /// The log with the checksums of its header and frames put right, and the salts of frames where they are close.
  private static func sealed(log original: [UInt8]) -> [UInt8] {
    guard let header = WriteAheadLog.Header(original), let pageSize = header.pageSize else { return original }
    var bytes = original
    var checksum = LogChecksum()
    checksum.add(bytes.span.extracting(0..<24), bigEndian: header.isBigEndian)
    write(checksum, to: &bytes, at: 24)
    var start = 32
    while start + 24 + pageSize <= bytes.count {
      // A frame of another round ends what is sealed: a fuzzer changes salts on purpose.
      guard bytes[(start + 8)..<(start + 16)] == bytes[16..<24] else { break }
      checksum.add(bytes.span.extracting(start..<(start + 8)), bigEndian: header.isBigEndian)
      checksum.add(bytes.span.extracting((start + 24)..<(start + 24 + pageSize)), bigEndian: header.isBigEndian)
      write(checksum, to: &bytes, at: start + 16)
      start += 24 + pageSize
    }
    return bytes
  }

  private static func write(_ checksum: LogChecksum, to bytes: inout [UInt8], at offset: Int) {
    write(checksum.first, to: &bytes, at: offset)
    write(checksum.second, to: &bytes, at: offset + 4)
  }

  private static func write(_ word: UInt32, to bytes: inout [UInt8], at offset: Int) {
    for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * index)) }
  }

  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The journal with the checksums of the first segment's records put right.
  private static func sealed(journal original: [UInt8]) -> [UInt8] {
    var bytes = original
    guard bytes.count >= 28, bytes.starts(with: RollbackJournal.magic) else { return original }
    let (nonce, sector, pageSize) = (word(bytes, 12), Int(word(bytes, 20)), Int(word(bytes, 24)))
    guard pageSize >= 512, pageSize <= 65_536, sector >= 32, sector <= 65_536 else { return original }
    var start = sector
    while start + pageSize + 8 <= bytes.count {
      var sum = nonce
      var index = pageSize - 200
      while index > 0 {
        sum &+= UInt32(bytes[start + 4 + index])
        index -= 200
      }
      write(sum, to: &bytes, at: start + 4 + pageSize)
      start += pageSize + 8
    }
    return bytes
  }
}
