import Platform
import SQLiteFormat

/// The remaining pages of a database without a header.
///
/// B-tree pages are recognized by header and cells (SQLite file format, "B-tree Pages"): one of four first bytes,
/// counts that fit, cells laid out from the page's end.
struct HeaderlessDatabase {
  let pageSize: Int

  var treePages = 0

  /// The pages examined after the first.
  var pagesSeen = 0

  var isFirstPageReadable = false

  /// Whether a b-tree page does not look random.
  private var hasPlainPage = false

  private static let sampleLength = 1 << 20

  private static let pageSizes = (9...16).map { 1 << $0 }

  /// The bytes sampled across a file without pages at its start.
  private static let searchLength = Int64(256 << 20)

  /// Finds pages at a file's start, then elsewhere.
  ///
  /// One page among random bytes may be chance: it must not look random itself, or be one of two.
  static func anywhere(in file: some ByteSource, header: DatabaseHeader?) throws(FileError) -> HeaderlessDatabase? {
    if let found = try HeaderlessDatabase(file, header: header), found.isBeyondChance { return found }
    let sizes = header.flatMap { $0.hasUsualFractions ? $0.pageSize : nil }.map { [$0] } ?? pageSizes
    var found = sizes.map { HeaderlessDatabase(pageSize: $0) }
    let length = Int64(sampleLength)
    let pieces = max(1, (file.count + length - 1) / length)
    let step = max(1, pieces / (searchLength / length))
    for piece in stride(from: 0, to: pieces, by: Int(step)) {
      let sample = try file.bytes(at: piece * length, length: sampleLength)
      for index in found.indices { found[index].look(at: sample, isBeginning: piece == 0) }
      let best = found.filter(\.isBeyondChance).max { ($0.treePages, $1.pageSize) < ($1.treePages, $0.pageSize) }
      if let best { return best }
    }
    return nil
  }

  /// Finds pages in a file's first 1 MiB.
  ///
  /// - Parameter header: its first 100 bytes; the page size counts if the constant bytes are right.
  init?(_ file: some ByteSource, header: DatabaseHeader?) throws(FileError) {
    let sample = try file.bytes(at: 0, length: Self.sampleLength)
    if let header, header.hasUsualFractions, let size = header.pageSize {
      self.init(sample, pageSize: size)
      guard isFirstPageReadable || treePages > 0 else { return nil }
      return
    }
    var best: (score: Int, database: HeaderlessDatabase)?
    for size in Self.pageSizes {
      let candidate = HeaderlessDatabase(sample, pageSize: size)
      let fits = file.count % Int64(size) == 0 ? 1 : 0
      let score = 4 * candidate.treePages + (candidate.isFirstPageReadable ? 4 : 0) + fits
      // The smaller size wins a tie: double-length pages would hide every other one.
      if score >= 4, score > best?.score ?? 0 { best = (score, candidate) }
    }
    guard let best else { return nil }
    self = best.database
  }

  private init(_ sample: [UInt8], pageSize: Int) {
    self.init(pageSize: pageSize)
    look(at: sample, isBeginning: true)
  }

  private init(pageSize: Int) { self.pageSize = pageSize }

  /// Counts pages from a boundary of any page size.
  private mutating func look(at sample: [UInt8], isBeginning: Bool) {
    let geometry = PayloadGeometry(usableSize: pageSize)
    for start in stride(from: 0, through: sample.count - pageSize, by: pageSize) {
      let isFirst = isBeginning && start == 0
      if !isFirst { pagesSeen += 1 }
      guard PageKind(rawValue: sample[start + (isFirst ? DatabaseHeader.length : 0)]) != nil else { continue }
      let bytes = Array(sample[start..<(start + pageSize)])
      guard Self.isTreePage(bytes, number: isFirst ? 1 : 2, geometry) else { continue }
      if !FileKind.looksRandom(bytes) { hasPlainPage = true }
      if isFirst { isFirstPageReadable = true } else { treePages += 1 }
    }
  }

  var isMostlyPages: Bool { treePages > 1 && 2 * treePages > pagesSeen }

  private var isBeyondChance: Bool { hasPlainPage || treePages + (isFirstPageReadable ? 1 : 0) > 1 }

  /// Returns whether bytes are a b-tree page: possible numbers, readable cells, the last byte in use.
  static func isTreePage(_ bytes: [UInt8], number: UInt32, _ geometry: PayloadGeometry) -> Bool {
    guard let page = BTreePage(bytes, number: number, geometry: geometry), page.isHeaderPlausible else { return false }
    if page.storedCellCount == 0 { return page.kind.isLeaf && page.contentStart == geometry.usableSize }
    var end = 0
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index) else { return false }
      end = max(end, cell.offset + cell.length)
    }
    // The cell at the end may be deleted, leaving a freeblock.
    return end == geometry.usableSize || page.firstFreeblock != 0
  }
}

/// A database that starts after other bytes of its file.
struct EmbeddedDatabase: ByteSource {
  private let file: any ByteSource

  let offset: Int64
  let count: Int64

  private static let searchLength = Int64(256 << 20)

  func read(at place: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    try file.read(at: offset + place, length: max(0, min(length, Int(clamping: count - place))), into: &buffer)
  }
}

extension EmbeddedDatabase {
  /// Finds a file's largest database past its start, unless it is of another format.
  init?(in file: any ByteSource) throws(FileError) {
    let head = try file.bytes(at: 0, length: FileKind.sampleLength)
    let kind = FileKind(firstBytes: head)
    guard kind != .database, !kind.isForeign, kind != .writeAheadLog, kind != .rollbackJournal,
      DatabaseHeader(head)?.hasUsualFractions != true
    else { return nil }
    var best: (offset: Int64, pages: UInt32, size: Int)?
    var end: Int64 = 0
    for start in stride(from: Int64(0), to: min(file.count, Self.searchLength), by: 1 << 20) {
      let bytes = try file.bytes(at: start, length: 1 << 20 + DatabaseHeader.length)
      for place in Self.headers(in: bytes) {
        let offset = start + Int64(place)
        // A header inside a found database is one of its values.
        guard offset >= end, let header = DatabaseHeader(Array(bytes[place...].prefix(DatabaseHeader.length))),
          header.hasUsualFractions, let size = header.pageSize
        else { continue }
        end = offset + Int64(header.pageCount) * Int64(size)
        if header.pageCount > best?.pages ?? 0 { best = (offset, header.pageCount, size) }
      }
    }
    guard let best, best.offset > 0 else { return nil }
    let before = EmbeddedDatabase(file: file, offset: 0, count: best.offset)
    // At a page boundary after pages of the same size, it is a value of a database without a header.
    if best.offset % Int64(best.size) == 0, try HeaderlessDatabase(before, header: nil)?.pageSize == best.size {
      return nil
    }
    self.init(file: file, offset: best.offset, count: file.count - best.offset)
  }

  private static func headers(in bytes: [UInt8]) -> [Int] {
    let magic = DatabaseHeader.magic
    var places: [Int] = []
    var index = 0
    while index + DatabaseHeader.length <= bytes.count {
      if bytes[index] == magic[0], bytes[index...].starts(with: magic) { places.append(index) }
      index += 1
    }
    return places
  }
}

extension Examiner {
  func openHeaderless(
    _ bytes: StoreBytes, _ kind: FileKind, _ header: DatabaseHeader?, _ examination: inout Examination
  ) throws -> Database? {
    // Another format may embed a database; only a file full of pages is one.
    let remains =
      kind.hasSignature
      ? try HeaderlessDatabase(bytes.main, header: nil).flatMap { $0.isMostlyPages ? $0 : nil }
      : try HeaderlessDatabase.anywhere(in: bytes.main, header: header)
    if remains == nil, try markForeign(bytes, kind, &examination) { return nil }
    if let header { examination.health.add(header.findings) }
    if kind == .database, let header {
      examination.markDamaged(.wrongPageSize(header.storedPageSize))
    } else if kind == .database {
      examination.markDamaged(.cutInHeader(bytes: bytes.main.count))
    } else if let remains {
      examination.markDamaged(remains.isFirstPageReadable ? .headerDamaged(remains) : .firstPageLost(remains, kind))
    } else if kind == .empty || kind == .zeros {
      examination.markDamaged(.blank(kind, hasPagesElsewhere: false))
    } else {
      examination.markDamaged(.notSQLite(kind))
    }
    guard let remains else { return nil }
    return try bytes.database(pageSize: remains.pageSize)
  }

  /// Sets the verdict for an encrypted or foreign file and returns whether it did; its header is meaningless.
  private func markForeign(_ bytes: StoreBytes, _ kind: FileKind, _ examination: inout Examination) throws -> Bool {
    if kind.isForeign, try !bytes.hasPagesElsewhere() {
      examination.health.note("not-sqlite", .damage, "the file is no SQLite database: it is \(kind.words)")
      examination.markDamaged(.foreign(kind))
      return true
    }
    guard kind == .encrypted, try RandomContent.fills(bytes.main, from: 0), try !bytes.hasPagesElsewhere(readable: true)
    else { return false }
    examination.give(.unavailable, .encryptedOrRandom)
    return true
  }

  /// Returns the pages' valid size if the header differs.
  func contradictingPageSize(_ database: Database, _ bytes: StoreBytes) throws(FileError) -> Int? {
    guard let header = database.header, header.hasMagic, header.pageSize == database.pageSize, !database.isLogApplied,
      !database.isJournalApplied, let found = try HeaderlessDatabase(bytes.main, header: nil),
      found.pageSize != database.pageSize, found.isFirstPageReadable, found.treePages > 0
    else { return nil }
    let stated = try HeaderlessDatabase(bytes.main, header: header)
    return found.treePages > stated?.treePages ?? 0 ? found.pageSize : nil
  }
}

extension StoreBytes {
  private static let pageLimit = 64

  /// After so many zeros the rest is assumed zero.
  private static let blankLimit = Int64(1 << 30)

  func isMainBlank() throws(FileError) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var offset: Int64 = 0
    while offset < min(main.count, Self.blankLimit) {
      let got = try main.read(at: offset, length: buffer.count, into: &buffer)
      guard got > 0 else { break }
      guard buffer[..<got].allSatisfy({ $0 == 0 }) else { return false }
      offset += Int64(got)
    }
    return true
  }

  /// Returns whether log or journal have store pages.
  ///
  /// - Parameter readable: whether to skip random-looking pages, as of an encrypted store.
  func hasPagesElsewhere(readable: Bool = false) throws(FileError) -> Bool {
    if let log, log.count > 0 {
      let log = try WriteAheadLog(log)
      let frames = log.validFrameCount
      if frames > 0 {
        if !readable { return true }
        for frame in stride(from: 1, through: frames, by: max(1, frames / Self.pageLimit)) {
          if try isPlain(log.source, at: log.pageOffset(ofFrame: frame), log.header?.pageSize) { return true }
        }
      }
    }
    guard let journal, journal.count > 0 else { return false }
    let undone = try RollbackJournal(journal)
    guard !undone.pages.isEmpty else { return false }
    if !readable { return true }
    for page in undone.pages.prefix(Self.pageLimit) {
      if try isPlain(undone.source, at: undone.pageOffset(of: page), undone.pageSize) { return true }
    }
    return false
  }

  private func isPlain(_ source: any ByteSource, at offset: Int64?, _ size: Int?) throws(FileError) -> Bool {
    guard let offset, let size else { return false }
    return try !FileKind.looksRandom(source.bytes(at: offset, length: size))
  }

  /// Returns the log's committed database, if it has page 1.
  func databaseOfLogAlone() throws(FileError) -> Database? {
    guard let log, log.count > 0 else { return nil }
    return try StoreBytes(main: MemoryBytes([]), log: log, superJournalExists: superJournalExists)
      .databaseWithFirstPageElsewhere()
  }

  /// Returns the database if its log or hot journal has page 1: SQLite then never needs the file's own.
  func databaseWithFirstPageElsewhere() throws(FileError) -> Database? {
    guard (log?.count ?? 0) > 0 || (journal?.count ?? 0) > 0 else { return nil }
    do throws(FileError) {
      let database = try database()
      guard database.isLogApplied || database.isJournalApplied, let header = database.header, header.hasMagic,
        header.pageSize == database.pageSize
      else { return nil }
      return database
    } catch  where error.kind == .notADatabase {
      return nil
    }
  }
}

/// Detection of bytes without a pattern, as encryption produces.
enum RandomContent {
  /// Enough for byte statistics.
  private static let pieceLength = 4096

  private static let pieceLimit: Int64 = 64

  /// Returns whether evenly spread pieces all look random.
  ///
  /// One patterned piece, such as zeros, or fewer than 1024 bytes give false.
  static func fills(_ file: some ByteSource, from start: Int64) throws(FileError) -> Bool {
    let last = max(start, file.count - Int64(pieceLength))
    let count = min(pieceLimit, (file.count - start + Int64(pieceLength) - 1) / Int64(pieceLength))
    guard count > 0 else { return false }
    for index in 0..<count {
      let offset = count == 1 ? start : start + (last - start) / (count - 1) * index
      guard FileKind.looksRandom(try file.bytes(at: offset, length: pieceLength)) else { return false }
    }
    return true
  }
}
