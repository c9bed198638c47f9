internal import Platform
internal import SQLiteFormat
internal import Salvage

/// The places and order of all page images in a store's files.
struct PageImages {
  struct Place {
    var page: UInt32

    var offset: Int64

    /// The last frame of the transaction.
    var lastOfTransaction: Int
  }

  let main: any ByteSource
  let log: (any ByteSource)?
  let journal: (any ByteSource)?
  let pageSize: Int
  let base: Int64
  let pageCount: UInt32

  /// The pages of the main file.
  var pages: some Sequence<UInt32> { (0..<pageCount).lazy.map { $0 + 1 } }

  /// The WAL's frames; empty if its page size differs.
  private(set) var frames: [Place] = []

  private(set) var records: [Place] = []

  private(set) var sectorSize = 512

  /// The table found by content, or none, by searched image; the second pass has those of the first.
  var carvedTables: [PageImage: Range<Int>] = [:]

  private var framesByPage: [UInt32: [Int]] = [:]
  private var recordsByPage: [UInt32: Int] = [:]

  init(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, survey: StoreSurvey
  ) throws(FileError) {
    self.main = main
    self.log = log
    self.journal = journal
    pageSize = survey.pageSize
    base = survey.base
    pageCount = survey.pageCount
    if let log { try readLog(log) }
    if let journal { try readJournal(journal) }
  }

  private mutating func readLog(_ log: any ByteSource) throws(FileError) {
    let head = try log.bytes(at: 0, length: WriteAheadLog.Header.length)
    if let header = WriteAheadLog.Header(head), header.isChecksumRight, let size = header.pageSize, size != pageSize {
      return
    }
    let length = Int64(pageSize + WriteAheadLog.frameHeaderLength)
    let count = Int(clamping: max(0, log.count - Int64(WriteAheadLog.Header.length)) / length)
    var open = 0
    for index in 0..<count {
      let offset = Int64(WriteAheadLog.Header.length) + Int64(index) * length
      let header = try log.bytes(at: offset, length: 8)
      guard header.count == 8, let page = header.span.uint32(at: 0), let size = header.span.uint32(at: 4) else { break }
      let content = offset + Int64(WriteAheadLog.frameHeaderLength)
      frames.append(Place(page: page, offset: content, lastOfTransaction: count - 1))
      framesByPage[page, default: []].append(index)
      if size != 0 {
        for earlier in open...index { frames[earlier].lastOfTransaction = index }
        open = index + 1
      }
    }
  }

  private mutating func readJournal(_ journal: any ByteSource) throws(FileError) {
    let head = try journal.bytes(at: 0, length: RollbackJournal.Header.length)
    let isWhole = head.starts(with: RollbackJournal.magic)
    var sizes = [512, 4096, 1024, 2048, 8192, 16384, 32768, 65536]
    if isWhole, let sector = head.span.uint32(at: 20), let page = head.span.uint32(at: 24) {
      if page != 0, Int(page) != pageSize { return }
      if sector >= 32, sector <= 65536 { sizes = [Int(sector)] }
    }
    for size in sizes {
      let found = try journalRecords(journal, sector: size)
      if sizes.count == 1 || found.count > records.count {
        records = found
        sectorSize = size
      }
      if isWhole { break }
    }
    for (index, record) in records.enumerated() where recordsByPage[record.page] == nil {
      recordsByPage[record.page] = index
    }
  }

  /// Returns records with plausible page numbers.
  private func journalRecords(_ journal: any ByteSource, sector: Int) throws(FileError) -> [Place] {
    var places: [Place] = []
    let length = Int64(pageSize + 8)
    let highest = Int64(pageCount) + journal.count / length + 65536
    var offset = Int64(sector)
    while offset + length <= journal.count {
      let head = try journal.bytes(at: offset, length: 28)
      if head.starts(with: RollbackJournal.magic) {
        offset += Int64(sector)
        continue
      }
      if let page = head.span.uint32(at: 0), page > 0, Int64(page) <= highest {
        places.append(Place(page: page, offset: offset + 4, lastOfTransaction: places.count))
        offset += length
        continue
      }
      let next = (offset + Int64(sector)) / Int64(sector) * Int64(sector)
      guard try journal.bytes(at: next, length: 8).starts(with: RollbackJournal.magic) else { break }
      offset = next
    }
    return places
  }

  func page(of image: PageImage) -> UInt32 {
    switch image {
    case .main(let page): page
    case .log(let index): frames[index].page
    case .journal(let index): records[index].page
    }
  }

  /// Reads an image, padded with zeros, and returns the length read.
  func read(_ image: PageImage, into buffer: inout [UInt8]) throws(FileError) -> Int {
    let source: (any ByteSource)? =
      switch image {
      case .main: main
      case .log: log
      case .journal: journal
      }
    guard let source else { return 0 }
    let got = try source.read(at: offset(of: image), length: pageSize, into: &buffer)
    for index in got..<max(got, pageSize) { buffer[index] = 0 }
    return got
  }

  func offset(of image: PageImage) -> Int64 {
    switch image {
    case .main(let page): base + Int64(page - 1) * Int64(pageSize)
    case .log(let index): frames[index].offset
    case .journal(let index): records[index].offset
    }
  }

  /// Returns the image that another one refers to, of the same time if known.
  func image(of page: UInt32, from image: PageImage) -> PageImage? {
    switch image {
    case .main: break
    case .log(let index):
      let last = frames[index].lastOfTransaction
      if let found = framesByPage[page]?.last(where: { $0 <= last }) { return .log(found) }
    case .journal: if let found = recordsByPage[page] { return .journal(found) }
    }
    return page >= 1 && page <= pageCount ? .main(page) : nil
  }
}
