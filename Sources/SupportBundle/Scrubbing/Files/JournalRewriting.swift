internal import Platform
internal import SQLiteFormat

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
