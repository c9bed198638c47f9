internal import Platform
internal import SQLiteFormat

/// Finds the most likely causes of a store's damage.
///
/// Sound pages are not read again, others once.
struct CauseSearch {
  let outcome: RowOutcome
  let found: FoundTrees
  let evidence: Evidence

  private(set) var causes: [DamageCause] = []

  private var pages: [DamageCause.Code: [UInt32]] = [:]

  /// The pages that their tree cannot use.
  private(set) var misfits: Set<UInt32> = []

  private(set) var leadsBehindEnd = false

  /// The most pages examined of each kind.
  private static let limit = 1 << 17

  var crawl: Crawl { outcome.crawl }
  var reader: PageReader { outcome.reader }

  init(_ outcome: RowOutcome, _ found: FoundTrees, evidence: Evidence) {
    self.outcome = outcome
    self.found = found
    self.evidence = evidence
    for tree in outcome.crawl.trees where tree.isListed {
      for gap in tree.gaps where misfits.count < Self.limit {
        // An invalid child number leaves a gap without a page.
        if gap.page == 0 || gap.page > outcome.crawl.map.pageCount {
          leadsBehindEnd = true
        } else {
          misfits.insert(gap.page)
        }
      }
    }
  }

  mutating func run(hasLosses: Bool) throws -> [DamageCause] {
    try lookAtPages()
    try lookAtFirstPage()
    try lookAtFile()
    try lookAtLog()
    lookAtJournal()
    try lookAtPointerMaps()
    lookAtFreelist()
    lookAtIndexes()
    if causes.isEmpty, hasLosses, outcome.tallies.contains(where: { $0.lost > 0 }) {
      add(.unknown, .possible, "Something is lost, and nothing about the pages tells why.")
    }
    return causes.enumerated().ordered { left, right in
      let (one, other) = (Self.rank(left.element), Self.rank(right.element))
      return one == other ? left.offset < right.offset : one < other
    }.map(\.element)
  }

  /// Orders by confidence, then files before pages, then extent.
  private static func rank(_ cause: DamageCause) -> Double {
    if cause.code == .indexesOnly { return 9 }
    let confidence = Double(DamageCause.Confidence.allCases.firstIndex(of: cause.confidence) ?? 0)
    return cause.pageCount == 0 ? confidence : confidence + 0.9 / Double(cause.pageCount)
  }

  mutating func add(
    _ code: DamageCause.Code, _ confidence: DamageCause.Confidence, part: StoreFileSet.Part = .main,
    pages: [UInt32] = [], _ words: String
  ) {
    causes.append(DamageCause(code, confidence, part: part, pages: pages, words: words))
  }

  // MARK: Lists and indexes

  private mutating func lookAtFreelist() {
    guard !crawl.isFreelistSound, reader.layout.header != nil else { return }
    let isAlone = causes.allSatisfy { $0.pageCount == 0 }
    add(
      .freelistDamaged, isAlone ? .likely : .possible,
      "The list of free pages is damaged\(isAlone ? "" : ", which other damage may have brought about"). "
        + "SQLite would overwrite pages in use; no record is lost by that alone.")
  }

  private mutating func lookAtIndexes() {
    let tables = crawl.trees.indices.filter { crawl.trees[$0].kind != .index && crawl.trees[$0].isListed }
    let indexes = crawl.trees.filter { $0.kind == .index && $0.isListed && !$0.gaps.isEmpty }
    guard !indexes.isEmpty, !tables.isEmpty,
      tables.allSatisfy({ crawl.trees[$0].isComplete && outcome.tallies[$0].lost == 0 }), outcome.wounds.pages.isEmpty
    else { return }
    add(
      .indexesOnly, .certain,
      "Only \(indexes.count == 1 ? "an index is" : "indexes are") damaged "
        + "(\(indexes.prefix(5).map { printable($0.name) }.joined(separator: ", "))"
        + (indexes.count > 5 ? " and \(grouped(indexes.count - 5)) more" : "")
        + "), and no table: every record is there.")
  }

  private mutating func lookAtPointerMaps() throws {
    guard reader.layout.header?.isAutoVacuum == true, crawl.map.pageCount >= 3 else { return }
    var damaged: [UInt32] = []
    var buffer = reader.makeBuffer()
    for page in stride(from: UInt32(2), through: crawl.map.pageCount, by: reader.layout.layout.pointerMapEntries + 1) {
      let map = reader.layout.layout.pointerMapPage(for: page) ?? page
      guard map < crawl.map.pageCount, try reader.readPlace(map, into: &buffer) else { continue }
      let last = min(Int(crawl.map.pageCount - map), reader.layout.layout.pointerMapEntries)
      let wrong = (0..<last).count { buffer[5 * $0] == 0 || buffer[5 * $0] > 5 }
      // The lock-byte page and unused pages have no entry.
      if wrong > 2, wrong * 4 > last { damaged.append(map) }
    }
    guard !damaged.isEmpty else { return }
    add(
      .pointerMapsDamaged, .certain, pages: damaged,
      "The \(DamageCause.place(damaged)) of the pointer map \(damaged.count == 1 ? "is" : "are") damaged, "
        + "which SQLite needs for vacuuming only: no record is lost by that alone.")
  }
}

extension CauseSearch {
  mutating func lookAtPages() throws {
    var foreign: [String: [UInt32]] = [:]
    var buffer = reader.makeBuffer()
    var whole: [UInt32] = []
    let last = lastUsedPage
    for page in stride(from: UInt32(2), through: crawl.map.pageCount, by: 1) where isSuspicious(page, last) {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      if reader.hole(in: page) != nil { continue }
      switch PageContent.of(buffer, start: 0, usableSize: reader.usableSize) {
      case .zeros: note(page, .zeroedPages)
      // Moved pages, or possible overflow pages, were not overwritten.
      case .random where reader.moved[page] != nil: break
      case .random where crawl.map.look(page) == .linked: whole.append(page)
      case .random: note(page, .randomPages)
      case .foreign(let words): foreign[words, default: []].append(page)
      case .torn: note(page, .tornSectors)
      case .flippedKind: note(page, .bitFlips)
      case .lostPointers: note(page, .lostCellPointers)
      case .tree: whole.append(page)
      case .other: if crawl.map.look(page) == .linked { whole.append(page) } else { note(page, .damagedPages) }
      }
    }
    for (page, wound) in outcome.wounds.pages where reader.hole(in: page) == nil {
      if wound.isTorn {
        note(page, .tornSectors)
      } else if wound.unfitting > 0, wound.unfitting == wound.badPointers {
        note(page, .unknown)
      } else if wound.unfitting * 4 < wound.badPointers, wound.badPointers > 1, wound.badPointers == wound.pointers {
        note(page, .lostCellPointers)
      } else if wound.badPointers + wound.outOfOrder <= 3 {
        note(page, .bitFlips)
      } else {
        note(page, .damagedPages)
      }
    }
    let zeroed = pages[.zeroedPages] ?? []
    pages[.misplacedPages] = reader.moved.filter { page, other in
      !zeroed.contains(page) && !reader.mayBeAnother(page) && !reader.mayBeAnother(other)
    }.map(\.key)
    let twins = try twins(of: whole.filter { reader.moved[$0] == nil })
    for page in whole where reader.moved[page] == nil && !reader.mayBeAnother(page) {
      if twins.contains(page) {
        note(page, .pageCopies)
      } else {
        switch crawl.map.fate(page) {
        case .placed, .tree, .overflow: note(page, .misplacedPages)
        case .unclaimed, .damaged, .free, .special, .dead: note(page, .contradictingPages)
        }
      }
    }
    pages[.contradictingPages, default: []] += crawl.contradictions.stale
    tell(foreign)
  }

  private mutating func note(_ page: UInt32, _ code: DamageCause.Code) { pages[code, default: []].append(page) }

  /// The last used page; the file may be larger.
  private var lastUsedPage: UInt32 {
    if let overlay = reader.overlay, let count = overlay.pageCount, count > 0 { return count }
    guard let header = reader.layout.header, header.isPageCountValid else { return .max }
    return header.pageCount
  }

  private func isSuspicious(_ page: UInt32, _ last: UInt32) -> Bool {
    if misfits.contains(page) { return true }
    switch crawl.map.fate(page) {
    case .damaged: return true
    case .unclaimed:
      guard page <= last else { return false }
      switch crawl.map.look(page) {
      // Without a sound freelist, free zero pages look damaged.
      case .zero: return crawl.isFreelistSound
      case .unknown, .broken: return true
      case .missing, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior, .linked: return false
      }
    case .tree, .placed, .overflow, .free, .special, .dead: return false
    }
  }

  /// - Parameter foreign: pages by the foreign content that they have.
  private mutating func tell(_ foreign: [String: [UInt32]]) {
    add(
      .zeroedPages, .likely, ("holds", "hold"),
      " nothing but zeros, as where a write never reached the disk (power loss, a full or failing disk, a file "
        + "system that was not shut down).")
    add(
      .randomPages, .likely, ("holds", "hold"),
      " bytes without any pattern, as encrypted or compressed data has none: it was overwritten, or a disk failed.")
    for (what, pages) in foreign.ordered(by: { $0.key < $1.key }) {
      self.pages[.overwritten] = pages
      add(.overwritten, .certain, ("was", "were"), " overwritten: there is \(what).")
    }
    add(
      .tornSectors, .likely, ("has", "have"),
      " sectors of zeros in their content: a write that reached the disk only in part, as after power loss.")
    add(
      .lostCellPointers, .certain, ("lacks", "lack"),
      " the array that says where the rows are; the rows were looked for by their content.")
    add(
      .pageCopies, .certain, ("is a copy", "are copies"),
      " of another page of the store: writes that went to the wrong place, or a file system that gave back stale "
        + "blocks.")
    add(.misplacedPages, .likely, ("stands", "stand"), " in the place of another: writes that went to the wrong place.")
    add(
      .bitFlips, .likely, ("has", "have"),
      " single wrong bytes: flipped bits of failing memory or a failing disk. Flipped bits inside of values "
        + "leave no trace.")
    add(.damagedPages, .possible, ("is", "are"), " damaged; by what, the bytes do not tell.")
    add(
      .unknown, .possible, ("holds", "hold"),
      " rows that do not fit the table that leads to them; the reason is not known.")
    add(
      .contradictingPages, .possible, ("is whole but contradicts", "are whole but contradict"),
      " the rest: single values of them are wrong, or they are of another time or store; nothing tells which.")
  }

  /// Adds a cause for its noted pages, if any.
  private mutating func add(
    _ code: DamageCause.Code, _ confidence: DamageCause.Confidence, _ verb: (one: String, several: String),
    _ words: String
  ) {
    let pages = Set(self.pages[code] ?? []).sorted()
    guard !pages.isEmpty else { return }
    add(code, confidence, pages: pages, DamageCause.counted(pages, verb.one, verb.several) + words)
  }

  private func twins(of pages: [UInt32]) throws -> Set<UInt32> {
    guard !pages.isEmpty, pages.count <= 4096 else { return [] }
    struct Key: Hashable {
      var look: PageMap.Look
      var first: Int64
      var last: Int64
      var fields: Int
    }
    func key(_ page: UInt32) -> Key {
      Key(
        look: crawl.map.look(page), first: crawl.map.firstKey(page), last: crawl.map.lastKey(page),
        fields: crawl.map.fieldCount(page))
    }
    var wanted: [Key: [(page: UInt32, bytes: [UInt8])]] = [:]
    var buffer = reader.makeBuffer()
    for page in pages {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      wanted[key(page), default: []].append((page, buffer))
    }
    var twins: Set<UInt32> = []
    var budget = 20_000
    for page in 2...max(2, crawl.map.pageCount) {
      guard let candidates = wanted[key(page)], budget > 0 else { continue }
      if candidates.count == 1, candidates[0].page == page { continue }
      budget -= 1
      guard try reader.readPlace(page, into: &buffer) else { continue }
      for candidate in candidates where candidate.page != page && candidate.bytes == buffer {
        twins.insert(candidate.page)
      }
    }
    return twins
  }
}

/// The content found in the place of a database page.
enum PageContent: Hashable {
  case zeros

  case random

  case foreign(String)

  case torn

  /// A b-tree page after one bit flip.
  case flippedKind

  /// A b-tree page with zeroed cell pointers.
  case lostPointers

  case tree

  case other

  /// Classifies the bytes of a page.
  ///
  /// - Parameter start: the offset of a b-tree header: 100 on page 1, else 0.
  static func of(_ bytes: [UInt8], start: Int, usableSize: Int) -> PageContent {
    if PageSurvey.isZero(bytes.span) { return .zeros }
    if start == 0 || !bytes.starts(with: DatabaseHeader.magic), let words = signature(bytes) { return .foreign(words) }
    let kind = PageKind(rawValue: bytes[start])
    if let kind, PageSurvey.isPossible(bytes.span, kind, start, usableSize) {
      let count = bytes.span.uint16(at: start + 3) ?? 0
      let pointers = start + kind.headerLength
      if count > 1, (0..<count).allSatisfy({ bytes.span.uint16(at: pointers + 2 * $0) == 0 }) { return .lostPointers }
      return TornSectors.ranges(bytes.span, content: (pointers + 2 * count)..<usableSize).isEmpty ? .tree : .torn
    }
    if isRandom(bytes) { return .random }
    if isTorn(bytes) { return .torn }
    let isFlipped = (0..<8).contains { bit in
      var changed = bytes
      changed[start] ^= 1 << UInt8(bit)
      guard let kind = PageKind(rawValue: changed[start]) else { return false }
      return PageSurvey.isPossible(changed.span, kind, start, usableSize)
    }
    if isFlipped { return .flippedKind }
    switch FileKind(firstBytes: bytes) {
    case .markup, .propertyList: return .foreign("a web page or another document with markup")
    case .json: return .foreign("JSON")
    case .text, .script: return .foreign("text")
    case .database, .databaseOfVersion2, .writeAheadLog, .rollbackJournal, .empty, .zeros, .transactions,
      .berkeleyDatabase, .locateDatabase, .otherDatabase, .gzip, .zip,
      .archive, .binaryPropertyList, .picture, .media, .document, .program, .sealed, .encrypted, .other:
      return .other
    }
  }

  /// Whether some but not all 512-byte sectors are zeros.
  private static func isTorn(_ bytes: [UInt8]) -> Bool {
    let sectors = bytes.count / TornSectors.sector
    guard sectors > 1 else { return false }
    let first = bytes.span.extracting(0..<TornSectors.sector)
    return PageSurvey.isZero(first) && !PageSurvey.isZero(bytes.span.extracting((bytes.count / 2)..<bytes.count))
  }

  /// Signatures that no page begins with.
  private static func signature(_ bytes: [UInt8]) -> String? {
    let signatures: [([UInt8], String)] = [
      (DatabaseHeader.magic, "the beginning of another SQLite database"),
      ([0x37, 0x7f, 0x06, 0x82], "a SQLite write-ahead log"), ([0x37, 0x7f, 0x06, 0x83], "a SQLite write-ahead log"),
      (RollbackJournal.magic, "a SQLite rollback journal"), ([0x1f, 0x8b, 0x08], "a gzip file"),
      ([0x50, 0x4b, 0x03, 0x04], "a zip archive"), ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], "a PNG image"),
      ([0xff, 0xd8, 0xff], "a JPEG image"), (Array("%PDF-".utf8), "a PDF document"),
      (Array("bplist".utf8), "a property list"), ([0x7f, 0x45, 0x4c, 0x46], "a program"),
      ([0x28, 0xb5, 0x2f, 0xfd], "a zstd file"),
    ]
    return signatures.first { bytes.starts(with: $0.0) }?.1
  }

  /// Whether bytes are noise: a chi-square test with 255 degrees of freedom, where noise gives 255 ± 23.
  static func isRandom(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 512 else { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let expected = Double(bytes.count) / 256
    return counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected } < 400
  }
}
