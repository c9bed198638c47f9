internal import Platform
internal import SQLiteFormat

extension CauseSearch {
  mutating func lookAtFirstPage() throws {
    let layout = reader.layout
    guard layout.header == nil || crawl.map.look(1) != .tableLeaf && crawl.map.look(1) != .tableInterior else { return }
    var bytes = reader.makeBuffer()
    guard try reader.readMain(1, into: &bytes) else { return }
    if let kind = PageKind(rawValue: bytes[0]), PageSurvey.isPossible(bytes.span, kind, 0, reader.usableSize) {
      return add(
        .staleFirstPage, .certain, pages: [1],
        "The first page, with the header and the list of tables, was replaced by another page of a database, as by "
          + "a write that went to the wrong place.")
    }
    let sector = bytes.span.extracting(0..<min(512, bytes.count))
    if PageSurvey.isZero(sector), !PageSurvey.isZero(bytes.span) {
      return add(
        .tornSectors, .likely, pages: [1],
        "The first sector of the file, with the header and part of the list of tables, is zeros: a write that "
          + "reached the disk only in part, as after power loss.")
    }
    if let kind = PageKind(rawValue: bytes[100]), kind.isTable,
      PageSurvey.isPossible(bytes.span, kind, 100, reader.usableSize), layout.header == nil
    {
      let isZero = PageSurvey.isZero(bytes.span.extracting(0..<100))
      return add(
        .headerDestroyed, .certain, pages: [1],
        "The file's header is \(isZero ? "zeros" : "overwritten"), and what follows it is as it should be.")
    }
    let content = PageContent.of(bytes, start: 100, usableSize: reader.usableSize)
    switch content {
    case .zeros:
      add(.zeroedPages, .likely, pages: [1], "The first page, with the header and the list of tables, is zeros.")
    case .random:
      add(
        .randomPages, .likely, pages: [1],
        "The first page, with the header and the list of tables, is bytes without any pattern.")
    case .foreign(let words):
      add(.overwritten, .certain, pages: [1], "The beginning of the file was overwritten: there is \(words).")
    case .torn, .flippedKind, .lostPointers, .tree, .other:
      add(.damagedPages, .possible, pages: [1], "The first page, with the list of tables, is damaged.")
    }
  }

  mutating func lookAtFile() throws {
    let layout = reader.layout
    if layout.base > 0 {
      add(
        .embedded, .certain,
        counted(layout.base, "other byte stands", "other bytes stand")
          + " before the database: it is embedded in another file, or something was written before it.")
    }
    lookAtShifts()
    let main = DatabaseHeader(try evidence.main.bytes(at: layout.base, length: DatabaseHeader.length))
    if let main, main.hasMagic || main.hasUsualFractions, layout.header != nil {
      if !main.hasMagic {
        add(.headerDestroyed, .likely, pages: [1], "The header does not begin as every database does.")
      }
      if let size = main.pageSize, size != layout.pageSize {
        add(
          .headerContradicted, .certain, pages: [1],
          "The header says that pages have \(grouped(size)) bytes, and they have \(grouped(layout.pageSize)).")
      }
      try lookAtEncoding(main)
      try lookAtPageSize()
    }
    lookAtSize()
  }

  private mutating func lookAtShifts() {
    guard let file = evidence.main as? RealignedFile else { return }
    if file.reason == .lineEnds {
      return add(
        .shiftedPages, .certain,
        "A carriage return stands before each line feed: the file was transferred as if it were text.")
    }
    if file.reason == .pages {
      lookAtMissingPages(file)
      return
    }
    let shifts = zip(file.parts, file.parts.dropFirst()).map { before, part in
      (
        page: UInt32(clamping: (part.place - 1 - reader.layout.base) / Int64(reader.pageSize) + 1),
        bytes: (part.offset - part.place) - (before.offset - before.place)
      )
    }
    let pages = Set(shifts.map { max(1, $0.page) }).sorted()
    let missing = shifts.reduce(0) { $0 + max(0, -$1.bytes) }
    let inserted = shifts.reduce(0) { $0 + max(0, $1.bytes) }
    let words = [(missing, "missing"), (inserted, "too many")].filter { $0.0 > 0 }
      .map { counted($0.0, "byte is", "bytes are") + " \($0.1)" }.joined(separator: " and ")
    add(
      .shiftedPages, .certain, pages: pages,
      "Within \(DamageCause.place(pages)) \(words): what follows was not at its place, as where a file was changed by "
        + "an editor or a transfer in text mode. It was read from where it is.")
  }

  private mutating func lookAtMissingPages(_ file: RealignedFile) {
    guard let last = file.parts.last else { return }
    let size = Int64(reader.pageSize)
    let place = file.uncertain.first ?? file.hole ?? last.place..<(last.place + 1)
    let pages = (place.lowerBound / size + 1...(place.upperBound - 1) / size + 1).map { UInt32(clamping: $0) }
    let count = Int((file.hole.map { $0.upperBound - $0.lowerBound } ?? last.offset - last.place) / size)
    let named = DamageCause.place(pages)
    let words =
      switch (file.hole != nil, file.uncertain.isEmpty) {
      case (true, true): "The file lacks \(named)"
      case (true, false): "The file lacks \(counted(count, "page")) among the \(named)"
      case (false, true): "The file has \(counted(count, "page")) too many before \(named)"
      case (false, false): "The file has \(counted(count, "page")) too many before one of the \(named)"
      }
    add(.shiftedPages, .certain, pages: pages, words + ": the pages after that were read from where they are.")
  }

  /// A far better fitting page size shows that the header is wrong.
  private mutating func lookAtPageSize() throws {
    let layout = reader.layout
    guard !causes.isEmpty, !misfits.isEmpty else { return }
    let search = FileLayoutSearch(main: evidence.main)
    let stated = try search.vote(size: layout.pageSize, base: layout.base)
    // With too large a size most pages seem to end early.
    guard 2 * Self.early(stated) > stated.pages else { return }
    for shift in 9...16 where 1 << shift < layout.pageSize {
      let other = try search.vote(size: 1 << shift, base: layout.base)
      guard other.pages > 4, 4 * Self.early(other) < other.pages else { continue }
      return add(
        .headerContradicted, .likely, pages: [1],
        "The header says that pages have \(grouped(layout.pageSize)) bytes; with \(grouped(1 << shift)) they make more sense."
      )
    }
  }

  private static func early(_ vote: FileLayoutSearch.Vote) -> Int {
    vote.reservedCounts.reduce(0) { $0 + ($1.key > 255 ? $1.value : 0) }
  }

  private mutating func lookAtEncoding(_ header: DatabaseHeader) throws {
    let layout = reader.layout
    guard layout.pageCount > 1 else { return }
    let vote = try FileLayoutSearch(main: evidence.main).vote(size: layout.pageSize, base: layout.base)
    let total = vote.encodings.reduce(0, +)
    guard total >= 8, let stated = header.encoding, stated != vote.encoding else {
      if header.encoding == nil {
        add(.headerContradicted, .certain, pages: [1], "The header names a text encoding that there is not.")
      }
      return
    }
    guard vote.encodings[Int(stated.rawValue) - 1] * 8 < total else { return }
    add(
      .headerContradicted, .certain, pages: [1],
      "The header says that text is \(stated.pragmaName), and it is \(vote.encoding.pragmaName).")
  }

  private mutating func lookAtSize() {
    let layout = reader.layout
    let size = Int64(layout.pageSize)
    let rest = layout.base == 0 ? evidence.main.count % size : 0
    let header = layout.header.flatMap { $0.isPageCountValid ? $0.pageCount : nil }
    let stated = reader.overlay?.pageCount ?? header
    let inFile = reader.wholePageCount
    let elsewhere = UInt32(clamping: reader.overlay?.images.keys.count { $0 > inFile } ?? 0)
    let lacking = stated.map { $0 > inFile && $0 - inFile > elsewhere ? $0 - inFile - elsewhere : 0 } ?? 0
    let missing = lacking > 0 ? Array((inFile + 1)...(inFile + min(lacking, 1 << 20))) : [inFile + 1]
    if evidence.main.count == 0 {
      add(
        .truncated, .certain, pages: lacking > 0 ? missing : [],
        "The main file is missing, or has no byte in it"
          + (lacking > 0
            ? ": of \(counted(stated ?? 0, "page")) \(grouped(elsewhere)) \(elsewhere == 1 ? "is" : "are") in its log or journal."
            : ": its pages are in its log or journal."))
    } else if lacking > 0, !leadsBehindEnd, rest == 0 {
      let are = { (pages: UInt32) in pages == 1 ? "is" : "are" }
      add(
        .headerContradicted, .likely, pages: [1],
        "The header says that there \(are(stated ?? 0)) \(counted(stated ?? 0, "page")); there \(are(inFile)) "
          + "\(grouped(inFile)), and none of the others is missed\(evidence.endsInHole ? ": there is a hole in their place" : "")."
      )
    } else if lacking > 0 || rest > 0 {
      let isLogMode = layout.header?.usesWriteAheadLog == true && evidence.log == nil
      add(
        .truncated, .certain, pages: missing,
        Self.words(lacking: lacking, of: stated, cut: rest > 0 ? size - rest : 0)
          + (evidence.endsInHole
            ? ": there is a hole in their place, without bytes on the disk"
            : ": it was copied or downloaded only in part, or cut off")
          + (isLogMode ? ", or its write-ahead log was left behind." : "."))
    } else {
      lookBehindEnd()
    }
  }

  /// - Parameters:
  ///   - pages: the missing whole pages.
  ///   - bytes: the missing bytes of a partial page.
  private static func words(lacking pages: UInt32, of stated: UInt32?, cut bytes: Int64) -> String {
    let (cut, be) = (counted(bytes, "byte"), bytes == 1 ? "is" : "are")
    let whole = bytes > 0 ? max(1, pages) - 1 : pages
    guard whole > 0 else { return "The file ends within a page, of which \(cut) \(be) missing" }
    return
      "\(grouped(whole)) of \(counted(stated ?? 0, "page")) \(whole == 1 ? "is" : "are") missing from the end of the file"
      + (bytes > 0 ? ", and \(cut) of the page before \(whole == 1 ? "it" : "them")" : "")
  }

  /// Reports pages that trees lead to beyond the end of the file, if the header states no loss.
  private mutating func lookBehindEnd() {
    let lacked = crawl.pagesLackedBehindEnd()
    guard !lacked.isEmpty else { return }
    let isOne = lacked.count == 1
    add(
      .truncated, .likely, pages: Array(lacked.prefix(1 << 20)),
      "\(counted(lacked.count, "page")) that the store's tables and indexes lead to \(isOne ? "is" : "are") behind "
        + "the end of the file: it was copied or downloaded only in part, or cut off.")
  }

  // MARK: Log and journal

  mutating func lookAtLog() throws {
    guard let source = evidence.log else { return }
    if found.isLogForeign {
      return add(
        .foreignLog, .likely, part: .wal,
        "The write-ahead log beside the store does not fit it, as where it is another database's. It was left out.")
    }
    let log = try WriteAheadLog(source)
    guard let header = log.header, header.isChecksumRight, log.frameLength != nil else {
      return add(
        .logHeaderDestroyed, .certain, part: .wal,
        "The header of the write-ahead log is destroyed, so that SQLite would have read nothing of it.")
    }
    if log.commitsBehindBreak > 0 {
      add(
        .logFrameDamaged, .certain, part: .wal,
        "A frame of the write-ahead log is damaged; \(log.commitsBehindBreak) complete "
          + "transaction\(log.commitsBehindBreak == 1 ? "" : "s") behind it would have been lost to SQLite.")
    }
    if log.findings.contains(.logUnknownBytes) {
      add(
        .logFrameDamaged, .certain, part: .wal,
        "Bytes of the write-ahead log are no frames of it: it was changed or overwritten there.")
    } else if log.findings.contains(.logPartialFrame) {
      add(
        .logCutOff, .certain, part: .wal,
        "The write-ahead log ends within a frame: it was copied only in part, or cut off. What was in the rest "
          + "of it is lost.")
    } else if log.findings.contains(.logUncommittedFrames) {
      add(
        .interruptedTransaction, .possible, part: .wal,
        "The write-ahead log ends with a transaction that has no end: an app was ended while it saved, or the log was "
          + "cut off.")
    }
    if let overlay = reader.overlay, overlay.source == .log, overlay.isContradicted {
      add(
        .staleLog, .likely, part: .wal,
        "The write-ahead log is older than the database: it was left from an earlier state, or put beside a newer "
          + "copy. Only pages that the file lacks were taken from it.")
    } else if reader.overlay?.source == .log, reader.isOverlayContradicted {
      add(
        .foreignLog, .possible, part: .wal,
        "No row of the write-ahead log has anything in common with the file's: it may be another store's. Its "
          + "records are marked.")
    } else if let image = reader.overlay?.images[1], reader.overlay?.source == .log,
      let newest = DatabaseHeader(try source.bytes(at: image.offset, length: DatabaseHeader.length)),
      let main = DatabaseHeader(try evidence.main.bytes(at: reader.layout.base, length: DatabaseHeader.length)),
      main.hasMagic, newest.hasMagic, Int32(bitPattern: newest.changeCounter &- main.changeCounter) < 0
    {
      add(
        .staleLog, .likely, part: .wal,
        "The write-ahead log is older than the database: it was left from an earlier state, or put beside a newer "
          + "copy.")
    }
  }

  mutating func lookAtJournal() {
    if found.isJournalForeign {
      return add(
        .foreignJournal, .likely, part: .journal,
        "The rollback journal beside the store does not fit it, as where it is another database's, or of an "
          + "earlier transaction. It was left out.")
    }
    guard let overlay = reader.overlay, overlay.source == .journal else { return }
    if reader.isOverlayContradicted {
      add(
        .foreignJournal, .possible, part: .journal,
        "The rollback journal has nothing in common with the file: it may be another store's. It was undone, and "
          + "its records are marked.")
    } else if overlay.isCutOff {
      add(
        .interruptedTransaction, .certain, part: .journal,
        "A transaction was cut off, and records of its rollback journal are gone or damaged: it was undone as far as the "
          + "others go.")
    } else if overlay.doubtfulCount > 0 {
      add(
        .journalHeaderDestroyed, .likely, part: .journal,
        "A transaction was cut off, and the header of its rollback journal is destroyed. The journal was undone "
          + "all the same.")
    } else {
      add(
        .interruptedTransaction, .certain, part: .journal,
        "A transaction was cut off, as where an app is ended while it saves. It was undone by its rollback journal.")
    }
  }
}
