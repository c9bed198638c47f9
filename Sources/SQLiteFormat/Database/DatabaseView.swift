package import Platform

/// The choices at opening: page size, overlay and page count.
struct DatabaseView {
  let mainCount: Int64
  var pageSize: Int?
  var isLogApplied = false
  var isJournalApplied = false
  var pageCount: UInt32 = 0
  var highestPage: UInt32 = 0
  var findings = Findings()

  mutating func choosePageSize(given: Int?, inFile: Int?, log: WriteAheadLog?, journal: RollbackJournal?) {
    if let given, DatabaseHeader.isPageSize(given) {
      pageSize = given
      return
    }
    let inLog = log.flatMap { $0.hasCommittedFrames ? $0.header?.pageSize : nil }
    // An interrupted transaction may change the page size; the journal has the old one.
    let inJournal = journal.flatMap { $0.state == .hot && mainCount > 0 ? $0.pageSize : nil }
    pageSize = inJournal ?? inFile ?? inLog
  }

  mutating func chooseOverlays(
    log: WriteAheadLog?, journal: RollbackJournal?, superJournalExists: (([UInt8]) -> Bool)?
  ) {
    if let journal {
      findings.append(contentsOf: journal.findings)
      if journal.state == .hot {
        if let name = journal.superJournal, let superJournalExists, !superJournalExists(name) {
          findings.note(.superJournalGone)
        } else if journal.pageSize != pageSize {
          findings.note(
            .journalPageSizeDiffers, expected: pageSize.map(Int64.init), found: journal.pageSize.map(Int64.init))
        } else {
          // SQLite deletes a journal beside an empty file unread.
          isJournalApplied = mainCount > 0
        }
      }
    }
    guard let log else { return }
    findings.append(contentsOf: log.findings)
    guard log.hasCommittedFrames else { return }
    guard log.header?.pageSize == pageSize else {
      findings.note(
        .logPageSizeDiffers, expected: pageSize.map(Int64.init), found: log.header?.pageSize.map(Int64.init))
      return
    }
    isLogApplied = true
    if mainCount == 0 { findings.note(.logBesideEmptyDatabase, found: Int64(log.committedFrameCount)) }
  }

  mutating func countPages(
    header: DatabaseHeader?, mainHeader: DatabaseHeader?, log: WriteAheadLog?, journal: RollbackJournal?
  ) {
    guard let pageSize else { return }
    let size = Int64(pageSize)
    let whole = UInt32(clamping: mainCount / size)
    let begun = UInt32(clamping: (mainCount + size - 1) / size)
    if begun != whole { findings.note(.partialPage, page: begun, found: mainCount % size) }
    if let header {
      findings.append(contentsOf: header.findings)
    } else if mainCount > 0 {
      findings.note(.headerTruncated, found: mainCount)
    }
    highestPage = begun
    if let log, isLogApplied {
      pageCount = log.pageCount
      highestPage = max(highestPage, log.frames.keys.max() ?? 0)
      let needed = max(0, Int64(pageCount) - Int64(begun))
      let given = log.frames.keys.count { $0 > begun && $0 <= pageCount }
      if Int64(given) < needed { findings.note(.logMissingPages, expected: needed, found: Int64(given)) }
      if let mainHeader, mainHeader.hasMagic, let header, log.frames[1] != nil {
        // The change counter may wrap, so the difference is signed.
        let lead = Int32(bitPattern: header.changeCounter &- mainHeader.changeCounter)
        if lead < 0 {
          findings.note(
            .logBehindDatabase, expected: Int64(mainHeader.changeCounter), found: Int64(header.changeCounter))
        }
      }
      return
    }
    if let journal, isJournalApplied, let original = journal.header?.originalPageCount {
      pageCount = original
      highestPage = max(highestPage, journal.pageOffsets.keys.max() ?? 0)
      return
    }
    // SQLite would believe an overwritten header's page count.
    guard let header, header.isPageCountValid, header.hasUsualFractions,
      header.isConsistent || header.pageCount <= whole
    else {
      if let header, header.hasMagic { findings.note(.pageCountStale, page: 1, found: Int64(header.pageCount)) }
      pageCount = begun
      return
    }
    pageCount = header.pageCount
    if header.pageCount > whole {
      findings.note(.fileTooShort, expected: Int64(header.pageCount), found: Int64(whole))
    } else if header.pageCount < begun {
      findings.note(.fileTooLong, expected: Int64(header.pageCount), found: Int64(begun))
    }
  }

  static func readPage(
    _ number: UInt32, size: Int, main: any ByteSource, log: WriteAheadLog?, journal: RollbackJournal?
  ) throws(FileError) -> Page? {
    guard number > 0 else { return nil }
    var bytes: [UInt8] = []
    let origin: Page.Origin
    if let log, let frame = log.frames[number], let offset = log.pageOffset(ofFrame: Int(frame)) {
      try log.source.fill(&bytes, at: offset, length: size)
      origin = .writeAheadLog(frame: Int(frame), offset: offset)
    } else if let journal, let offset = journal.pageOffsets[number] {
      try journal.source.fill(&bytes, at: offset, length: size)
      origin = .rollbackJournal(offset: offset)
    } else {
      let offset = Int64(number - 1) * Int64(size)
      guard offset < main.count else { return nil }
      try main.fill(&bytes, at: offset, length: size)
      origin = .main(offset: offset)
    }
    guard !bytes.isEmpty else { return nil }
    let present = bytes.count
    if present < size { bytes.append(contentsOf: repeatElement(0, count: size - present)) }
    return Page(number: number, bytes: bytes, presentCount: present, origin: origin)
  }
}

/// A cache of recent pages, about 1 MiB in all.
struct PageCache {
  private var slots: [Page?]

  init(pageSize: Int) {
    let count = max(16, min(256, (1 << 20) / max(512, pageSize)))
    slots = [Page?](repeating: nil, count: count)
  }

  func page(_ number: UInt32) -> Page? {
    guard let page = slots[Int(number) & (slots.count - 1)], page.number == number else { return nil }
    return page
  }

  mutating func insert(_ page: Page) { slots[Int(page.number) & (slots.count - 1)] = page }
}

/// A page as a reader sees it, with its origin.
public struct Page: Sendable {
  /// The origin of a page's bytes.
  public enum Origin: Sendable, Hashable {
    case main(offset: Int64)

    /// A frame, from 1, and its page's byte offset.
    case writeAheadLog(frame: Int, offset: Int64)

    case rollbackJournal(offset: Int64)
  }

  /// The page number, from 1.
  public let number: UInt32

  /// The whole page; zeros replace bytes missing in the file.
  public let bytes: [UInt8]

  /// The bytes actually present; less than a page only at a file's end.
  public let presentCount: Int

  /// The origin of the bytes.
  public let origin: Origin
}

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
