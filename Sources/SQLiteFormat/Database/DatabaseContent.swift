package import Platform

/// A database as one file, with WAL frames applied or a hot journal undone.
package struct DatabaseContent: ByteSource {
  private let main: any ByteSource
  private let log: WriteAheadLog?
  private let journal: RollbackJournal?

  package let pageSize: Int

  package let pageCount: UInt32

  /// The highest page with any byte, whatever the header's count.
  let highestPage: UInt32

  package var count: Int64 { Int64(pageSize) * Int64(pageCount) }

  package init(_ database: Database) {
    main = database.main
    log = database.isLogApplied ? database.writeAheadLog : nil
    journal = database.isJournalApplied ? database.rollbackJournal : nil
    pageSize = database.pageSize
    pageCount = database.pageCount
    highestPage = database.highestPage
  }

  package func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    let got = try main.read(at: offset, length: wanted, into: &buffer)
    // A page in the log may lie past the file's end.
    if got < wanted { for index in got..<wanted { buffer[index] = 0 } }
    guard log != nil || journal != nil else { return wanted }
    let size = Int64(pageSize)
    var page = offset / size
    while page * size < offset + Int64(wanted) {
      if let place = overlay(UInt32(page + 1)) {
        let bytes = try place.source.bytes(at: place.offset, length: pageSize)
        let start = max(offset, page * size)
        let end = min(offset + Int64(wanted), page * size + Int64(bytes.count))
        if start < end {
          buffer.replaceSubrange(
            Int(start - offset)..<Int(end - offset), with: bytes[Int(start - page * size)..<Int(end - page * size)])
        }
      }
      page += 1
    }
    return wanted
  }

  private func overlay(_ page: UInt32) -> (source: any ByteSource, offset: Int64)? {
    if let log, let frame = log.frame(of: page), let offset = log.pageOffset(ofFrame: frame) {
      return (log.source, offset)
    }
    if let journal, let offset = journal.pageOffset(of: page) { return (journal.source, offset) }
    return nil
  }
}
