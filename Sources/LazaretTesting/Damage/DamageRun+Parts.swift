internal import SQLiteFormat

// Damage to parts of pages, the header, page positions, and logs or journals.
extension DamageRun {
  mutating func spoilSectors(_ kind: DamageKind) throws {
    let sectors = Int(try size(of: .main) - base) / 512
    let first = max(1, pageSize / 512)
    guard sectors > first + 4 else { throw kind.nothing(main, "there are not enough pages") }
    for _ in 0..<max(2, sectors / 50) {
      let place = base + 512 * Int64.random(in: Int64(first)..<Int64(sectors - 3), using: &generator)
      let page = UInt32((place - base) / Int64(pageSize)) + 1
      switch kind.word {
      case "rand": try write(noise(512), at: place, kind, page: page)
      case "swap":
        let other = base + 512 * Int64.random(in: Int64(first)..<Int64(sectors - 3), using: &generator)
        let file = try fileSystem.open(main)
        let (one, two) = (try file.bytes(at: place, length: 512), try file.bytes(at: other, length: 512))
        try write(two, at: place, kind, page: page)
        try write(one, at: other, kind, page: UInt32((other - base) / Int64(pageSize)) + 1)
      default:
        let text = Array("The quick brown fox jumps over the lazy dog. ".utf8)
        let block =
          switch kind.word {
          case "zip": [0x50, 0x4b, 0x03, 0x04] + noise(1396)
          case "jpeg": [0xff, 0xd8, 0xff, 0xe0] + noise(1396)
          default: (0..<1400).map { text[$0 % text.count] }
          }
        try write(block, at: place, kind, page: page)
      }
    }
  }

  mutating func spoilField(_ kind: DamageKind) throws {
    let file = try fileSystem.open(main)
    let header = try file.bytes(at: base, length: 105)
    guard header.count == 105 else { throw kind.nothing(main, "the file has no header") }
    let (offset, bytes): (Int64, [UInt8]) =
      switch kind.word {
      case "reserved": (20, [header[20] ^ 8])
      case "largest-root": (52, bigEndian(header[52..<56].allSatisfy { $0 == 0 } ? 3 : 0))
      case "incremental": (64, bigEndian(header[67] == 0 ? 1 : 0))
      case "freelist": (32, zeros(8))
      case "format": (44, bigEndian(9))
      default: (103, [0, header[104] / 2])
      }
    try write(bytes, at: base + offset, kind, page: 1)
  }

  /// Corrupts a bit or word of a statement on the first page or another leaf.
  mutating func spoilDeclaration(_ kind: DamageKind) throws {
    let words = Array("CREATE TABLE".utf8)
    var places: [(page: UInt32, offset: Int)] = []
    for page in [1] + database.leaves.filter({ $0 > 1 }).prefix(64) {
      let bytes = try bytes(of: page)
      for start in bytes.indices.dropLast(words.count) where bytes[start] == words[0] {
        if bytes[start..<(start + words.count)].elementsEqual(words) { places.append((page, start)) }
      }
    }
    guard let place = places.randomElement(using: &generator) else {
      throw kind.nothing(main, "no declaration of a table was found")
    }
    var statement = Array(try bytes(of: place.page)[place.offset...].prefix(60))
    if kind.word == "bit" {
      statement[Int.random(in: statement.indices, using: &generator)] ^= 1 << UInt8.random(in: 0..<7, using: &generator)
    } else {
      let parts = statement.indices.split { statement[$0] <= 0x2c }
      guard let word = parts.randomElement(using: &generator) else { return }
      for index in word { statement[index] = UInt8.random(in: 0x61...0x7a, using: &generator) }
    }
    try write(statement, at: offset(of: place.page) + Int64(place.offset), kind, page: place.page)
  }

  mutating func shift(_ kind: DamageKind) throws {
    let size = try size(of: .main)
    let number = Int(kind.number)
    let first = base + Int64(pageSize)
    let isRemoved = kind.name == .removed
    guard first + Int64(isRemoved ? number : 0) < size else {
      throw kind.nothing(main, "there are not enough bytes behind the first page")
    }
    let place = Int64.random(in: first..<(size - Int64(isRemoved ? number : 0)), using: &generator)
    try splice(.main, at: place, removing: isRemoved ? number : 0, inserting: isRemoved ? 0 : number)
    try note(kind, .main, place, size - place + Int64(isRemoved ? 0 : number), nil)
  }

  // MARK: Log and journal

  mutating func reshapeLog(_ kind: DamageKind, header: Int, frame: Int, size: Int64) throws {
    switch kind.word {
    case "uncommitted":
      for index in 0..<((Int(size) - header) / frame) {
        try write(zeros(4), at: Int64(header + index * frame + 4), kind, part: .wal)
      }
    default:
      let place = kind.word == "headless" ? 0 : size / 2
      let removed = kind.word == "headless" ? header : kind.word == "shorter" ? 1 : 0
      try splice(.wal, at: place, removing: removed, inserting: kind.word == "longer" ? 1 : 0)
      try note(kind, .wal, place, size - place, nil)
    }
  }

  /// Writes some of the log's pages into the file and removes the log, mixing pages of two times.
  mutating func writePartially(_ kind: DamageKind) throws {
    let log = try fileSystem.open(files.path(of: .wal))
    let frame = Int64(WriteAheadLog.frameHeaderLength + pageSize)
    var pending: [UInt32: Int64] = [:]
    var images: [UInt32: Int64] = [:]
    var place = Int64(WriteAheadLog.Header.length)
    while place + frame <= log.count {
      let head = try log.bytes(at: place, length: 8)
      guard let page = head.span.uint32(at: 0), let end = head.span.uint32(at: 4) else { break }
      pending[page] = place + Int64(WriteAheadLog.frameHeaderLength)
      if end > 0 { images.merge(pending) { $1 } }
      place += frame
    }
    let pages = images.keys.filter { $0 > 0 && $0 <= pageCount }.sorted()
    guard !pages.isEmpty else { throw kind.nothing(files.path(of: .wal), "no transaction in the log ended") }
    let count = max(1, Int(Double(pages.count) * kind.number / 100))
    for page in pages.shuffled(using: &generator).prefix(count).sorted() {
      guard let image = images[page] else { continue }
      try write(try log.bytes(at: image, length: pageSize), at: offset(of: page), kind, page: page)
    }
    try remove(.wal, kind)
  }

  mutating func spoilJournal(_ kind: DamageKind) throws {
    let size = try size(of: .journal)
    guard kind.word == "cut" else {
      try write(zeros(4), at: 8, kind, part: .journal)
      return
    }
    let rest = min(size, size / 2 + 100)
    try note(kind, .journal, rest, size - rest, nil)
    try fileSystem.update(files.path(of: .journal)).truncate(to: rest)
  }
}

/// The pages of a sound store by kind, as targets.
struct Survey {
  let pageSize: Int
  let pageCount: UInt32
  let geometry: PayloadGeometry

  /// The header's text encoding, 1 to 3.
  let encodingNumber: UInt8

  /// The root pages of tables and indexes, without the schema's.
  private(set) var roots: [UInt32] = []

  private(set) var interior: [UInt32] = []

  private(set) var leaves: [UInt32] = []

  private(set) var trunks: [UInt32] = []

  private(set) var pointerMaps: [UInt32] = []

  private(set) var secondOverflowPages: [UInt32] = []

  /// Classifies every page of the main file, without the log.
  ///
  /// - Throws: `not-a-database` without a page size.
  init(_ files: StoreFileSet, in fileSystem: FileSystem) throws {
    let file = try fileSystem.open(files.main)
    var database = try Database(main: file)
    pageSize = database.pageSize
    geometry = database.geometry
    pageCount = UInt32(clamping: file.count / Int64(database.pageSize))
    encodingNumber = try file.bytes(at: 59, length: 1).first ?? 1
    let schema = try database.schema()
    roots = schema.entries.filter { $0.rootPage > 1 }.map(\.rootPage).filter { $0 <= pageCount }.sorted()
    let freelist = try database.freelist()
    trunks = freelist.trunks
    let free = Set(freelist.trunks).union(freelist.leaves)
    var overflow: Set<UInt32> = []
    guard pageCount > 0 else { return }
    for number in 1...pageCount {
      if database.header?.isAutoVacuum == true, database.layout.isPointerMap(number) {
        pointerMaps.append(number)
        continue
      }
      guard !free.contains(number), let page = try database.bTreePage(number), page.isHeaderPlausible else { continue }
      if !page.kind.isLeaf {
        interior.append(number)
      } else if page.kind.isTable {
        leaves.append(number)
        for index in 0..<page.cellCount {
          guard let first = page.cell(at: index)?.overflowPage, let next = try Self.next(after: first, &database),
            (2...pageCount).contains(next)
          else { continue }
          overflow.insert(next)
        }
      }
    }
    secondOverflowPages = overflow.sorted()
  }

  private static func next(after page: UInt32, _ database: inout Database) throws -> UInt32? {
    guard let bytes = try database.page(page)?.bytes, bytes.count >= 4 else { return nil }
    return bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
