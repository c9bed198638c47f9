internal import Platform
internal import SQLiteFormat

/// Gives frames of a scrubbed WAL valid checksums where the original's were valid.
///
/// Checksums are cumulative: each frame is judged by the previous one's stored checksum, as in salvage.
struct LogRewriting {
  let original: any ByteSource
  let frameLength: Int

  func run(_ set: ScrubbedSet) throws(FileError) {
    let head = try original.bytes(at: 0, length: WriteAheadLog.Header.length)
    let scrubbed = try set.open(.wal)
    let count = Int(clamping: max(0, original.count - Int64(WriteAheadLog.Header.length)) / Int64(frameLength))
    guard count > 0, frameLength > WriteAheadLog.frameHeaderLength else { return }
    let header = WriteAheadLog.Header(head)
    let isBigEndian: Bool
    if let header { isBigEndian = header.isBigEndian } else { isBigEndian = try guessedOrder(count) }
    var before: LogChecksum?
    if let header, header.isChecksumRight {
      var checksum = LogChecksum()
      checksum.add(head.span.extracting(0..<24), bigEndian: header.isBigEndian)
      before = checksum
    }
    var beforeNew = before
    var old = [UInt8](repeating: 0, count: frameLength)
    var new = [UInt8](repeating: 0, count: frameLength)
    for index in 0..<count {
      let offset = Int64(WriteAheadLog.Header.length) + Int64(index) * Int64(frameLength)
      guard try original.read(at: offset, length: frameLength, into: &old) == frameLength,
        try scrubbed.read(at: offset, length: frameLength, into: &new) == frameLength
      else { return }
      let stored = Self.stored(old.span)
      var result = stored
      if let known = before, let knownNew = beforeNew,
        Self.checksum(known, adding: old.span, isBigEndian) == stored
      {
        result = Self.checksum(knownNew, adding: new.span, isBigEndian)
        var words: [UInt8] = []
        for word in [result.first, result.second] {
          for shift in [24, 16, 8, 0] { words.append(UInt8(truncatingIfNeeded: word >> UInt32(shift))) }
        }
        try set.write(.wal, words, at: offset + 16)
      }
      before = stored
      beforeNew = result
    }
  }

  /// Returns the byte order that validates most of the first frames.
  private func guessedOrder(_ count: Int) throws(FileError) -> Bool {
    var votes = [0, 0]
    for index in 0..<min(64, max(0, count - 1)) {
      let offset = Int64(WriteAheadLog.Header.length) + Int64(index) * Int64(frameLength)
      let pair = try original.bytes(at: offset, length: 2 * frameLength)
      guard pair.count == 2 * frameLength else { break }
      let first = Self.stored(pair.span.extracting(0..<frameLength))
      let second = pair.span.extracting(frameLength..<(2 * frameLength))
      for (place, order) in [false, true].enumerated()
      where Self.checksum(first, adding: second, order) == Self.stored(second) {
        votes[place] += 1
      }
    }
    return votes[1] > votes[0]
  }

  private static func stored(_ frame: Span<UInt8>) -> LogChecksum {
    var checksum = LogChecksum()
    checksum.first = frame.uint32(at: 16) ?? 0
    checksum.second = frame.uint32(at: 20) ?? 0
    return checksum
  }

  private static func checksum(_ before: LogChecksum, adding frame: Span<UInt8>, _ bigEndian: Bool) -> LogChecksum {
    var checksum = before
    checksum.add(frame.extracting(0..<8), bigEndian: bigEndian)
    checksum.add(frame.extracting(WriteAheadLog.frameHeaderLength..<frame.count), bigEndian: bigEndian)
    return checksum
  }
}

/// Gives records of a scrubbed journal a valid checksum where the original was valid.
///
/// A checksum sums page bytes, so it changes by their difference, whatever its initial value.
struct JournalRewriting {
  let images: PageImages

  func run(_ set: ScrubbedSet) throws(FileError) {
    guard let journal = images.journal else { return }
    let scrubbed = try set.open(.journal)
    var end: Int64 = 0
    for record in images.records {
      try copyBetween(journal, end..<(record.offset - 4), set)
      end = record.offset + Int64(images.pageSize) + 4
      let number = try journal.bytes(at: record.offset - 4, length: 4)
      try set.write(.journal, number, at: record.offset - 4)
      let stored = try journal.bytes(at: end - 4, length: 4)
      guard let old = stored.span.uint32(at: 0) else { continue }
      let sum =
        old &- Self.sum(try journal.bytes(at: record.offset, length: images.pageSize))
        &+ Self.sum(try scrubbed.bytes(at: record.offset, length: images.pageSize))
      try set.write(
        .journal, [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> UInt32($0)) }, at: end - 4)
    }
    try copyBetween(journal, end..<journal.count, set)
  }

  private func copyBetween(_ journal: any ByteSource, _ range: Range<Int64>, _ set: ScrubbedSet) throws(FileError) {
    var offset = range.lowerBound
    let sector = Int64(images.sectorSize)
    while offset < range.upperBound {
      let next = min(range.upperBound, (offset / sector + 1) * sector)
      var bytes = try journal.bytes(at: offset, length: Int(next - offset))
      let kept = kept(bytes.span)
      for index in bytes.indices where index >= kept && bytes[index] != 0 { bytes[index] = 0xff }
      try set.write(.journal, bytes, at: offset)
      offset = next
    }
  }

  /// Returns the header length of a sector; an unsynced one has zero magic and count.
  private func kept(_ bytes: Span<UInt8>) -> Int {
    guard bytes.count >= RollbackJournal.Header.length else { return 0 }
    let hasMagic = RollbackJournal.magic.indices.allSatisfy { bytes[$0] == RollbackJournal.magic[$0] }
    let isBlank = (0..<12).allSatisfy { bytes[$0] == 0 }
    let isOwn =
      bytes.uint32(at: 20) == UInt32(images.sectorSize) && bytes.uint32(at: 24) == UInt32(images.pageSize)
    if isOwn, hasMagic || isBlank { return RollbackJournal.Header.length }
    return hasMagic ? RollbackJournal.magic.count : 0
  }

  private static func sum(_ page: [UInt8]) -> UInt32 {
    var sum: UInt32 = 0
    var index = page.count - 200
    while index > 0 {
      sum &+= UInt32(page[index])
      index -= 200
    }
    return sum
  }
}
