package import Platform

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
  package init?(_ source: any ByteSource, pageSize: Int) throws(FormatError) {
    self.source = source
    self.pageSize = pageSize
    for sector in Self.sectors where pageOffsets.isEmpty { try read(from: sector, sector) }
    // The header's sector may be missing.
    for sector in Self.sectors where pageOffsets.isEmpty { try read(from: 0, sector) }
    guard !pageOffsets.isEmpty else { return nil }
    if let offset = pageOffsets[1] {
      first = DatabaseHeader(try source.read(at: offset, length: DatabaseHeader.length))
      if first == nil { return nil }
    }
  }

  /// Whether pages differ and the file lacks the next change counter.
  ///
  /// - Parameter base: the offset of page 1.
  package func mayBeUnfinished(
    _ main: any ByteSource, at base: Int64 = 0, header: DatabaseHeader?
  ) throws(FormatError) -> Bool {
    if let first, header?.changeCounter != first.changeCounter { return false }
    for (page, offset) in pageOffsets {
      let present = try main.read(at: base + Int64(page - 1) * Int64(pageSize), length: pageSize)
      if try present != source.read(at: offset, length: pageSize) { return true }
    }
    return false
  }

  /// Reads records while they share a nonce, then later segments.
  private mutating func read(from start: Int64, _ sector: Int64) throws(FormatError) {
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
          let next = try source.read(at: offset + Int64(length), length: length)
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
      let header = try source.read(at: offset, length: RollbackJournal.Header.length)
      nonce = header.span.uint32(at: 12)
      offset += sector
    }
  }

  private func base(of record: Span<UInt8>) -> UInt32 {
    (record.uint32(at: 4 + pageSize) ?? 0) &- RollbackJournal.checksum(record, pageSize: pageSize, nonce: 0)
  }

  private func aligned(_ offset: Int64, _ sector: Int64) -> Int64 { (offset + sector - 1) / sector * sector }

  private func isHeader(at offset: Int64) throws(FormatError) -> Bool {
    try source.read(at: offset, length: RollbackJournal.magic.count) == RollbackJournal.magic
  }
}
