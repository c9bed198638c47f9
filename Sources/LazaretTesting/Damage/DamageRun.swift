internal import SQLiteFormat

struct DamageRun {
  let files: StoreFileSet
  let fileSystem: FileSystem
  private(set) var places: [DamagedCopy.Place] = []
  private(set) var placeCount = 0
  var generator = SeededGenerator(seed: 0)

  /// The first page's offset, after insertions before it.
  private(set) var base: Int64 = 0

  /// The page size before any damage.
  let pageSize: Int
  private(set) var pageCount: UInt32
  private(set) var database: Survey

  init(on files: StoreFileSet, in fileSystem: FileSystem) throws {
    self.files = files
    self.fileSystem = fileSystem
    database = try Survey(files, in: fileSystem)
    pageSize = database.pageSize
    pageCount = database.pageCount
  }

  var main: FilePath { files.main }

  mutating func apply(_ kind: DamageKind, seed: UInt64, index: Int) throws {
    generator = SeededGenerator(seed: Self.mix(seed, kind.description, index))
    switch kind.name {
    case .none: break
    case .zero: for page in pick(kind.number) { try overwrite(page, zeros(pageSize), kind) }
    case .random: for page in pick(kind.number) { try overwrite(page, noise(pageSize), kind) }
    case .bitFlips: try flipBits(kind)
    case .truncated: try truncate(kind)
    case .header: try write(kind.word == "zero" ? zeros(100) : noise(100), at: base, kind, page: 1)
    case .firstPage: try destroyFirstPage(kind)
    case .roots: for page in database.roots where page > 1 { try overwrite(page, noise(pageSize), kind) }
    case .interior: for page in database.interior where page > 1 { try overwrite(page, noise(pageSize), kind) }
    case .swapped: try swapPages(kind)
    case .sector: try spoilSectors(kind)
    case .pageHeaders: for page in pick(kind.number) { try write(noise(8), at: offset(of: page), kind, page: page) }
    case .declaration: try spoilDeclaration(kind)
    case .field: try spoilField(kind)
    case .inserted, .removed: try shift(kind)
    case .torn:
      for page in pick(kind.number) {
        let sector = Int.random(in: 0..<(pageSize / 512), using: &generator)
        try write(zeros(512), at: offset(of: page) + Int64(512 * sector), kind, page: page)
      }
    case .tornFirstPage: try write(zeros(512), at: base, kind, page: 1)
    case .freelist: try spoilFreelist(kind)
    case .stale: try replacePages(kind)
    case .cellPointers: try spoilCellPointers(kind)
    case .pointerMaps: try spoilPointerMaps(kind)
    case .overflow:
      guard !database.secondOverflowPages.isEmpty else { throw kind.nothing(main, "no value is longer than two pages") }
      for page in database.secondOverflowPages { try overwrite(page, noise(pageSize), kind) }
    case .pageCount: try write(bigEndian(pageCount &* 2), at: base + 28, kind, page: 1)
    case .pageSize: try write([UInt8(pageSize == 8192 ? 0x10 : 0x20), 0], at: base + 16, kind, page: 1)
    case .encoding: try write([0, 0, 0, database.encodingNumber == 1 ? 2 : 1], at: base + 56, kind, page: 1)
    case .text: try overwriteWithText(kind)
    case .emptied:
      try note(kind, .main, 0, try size(of: .main), nil)
      try fileSystem.update(main).truncate(to: 0)
    case .prefix: try surround(Int(kind.number), behind: 0, kind)
    case .embedded: try surround(Int(kind.number), behind: 65536, kind)
    case .logMissing: try remove(.wal, kind)
    case .journalMissing: try remove(.journal, kind)
    case .logFrame, .logHeader, .logTail, .logForeign, .logShape: try spoilLog(kind)
    case .logPartial: try writePartially(kind)
    case .journalShape: try spoilJournal(kind)
    case .drift: try drift(kind)
    case .journalHeader: try write(zeros(min(512, Int(try size(of: .journal)))), at: 0, kind, part: .journal)
    }
  }

  /// Damages schema or bookkeeping; later kinds see the new pages.
  private mutating func drift(_ kind: DamageKind) throws {
    guard base == 0 else { throw kind.nothing(main, "other bytes stand before the database already") }
    try SchemaDrift(kind: kind, files: files).apply(drawing: &generator)
    database = try Survey(files, in: fileSystem)
    pageCount = database.pageCount
    try note(kind, .main, 0, try size(of: .main), nil)
  }

  /// Seeds each kind separately, so that adding one does not change the others.
  private static func mix(_ seed: UInt64, _ text: String, _ index: Int) -> UInt64 {
    var mixed = seed &+ UInt64(index) &* 0x9E37_79B9_7F4A_7C15
    for byte in text.utf8 { mixed = (mixed ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return mixed
  }

  // MARK: Pages

  /// Picks a percentage of the pages in order, at least one, never the first.
  mutating func pick(_ percent: Double) -> [UInt32] {
    guard pageCount >= 2 else { return [] }
    let count = max(1, Int((Double(pageCount - 1) * percent / 100).rounded()))
    var chosen = PageSet()
    var result: [UInt32] = []
    // Above half, draw the pages to keep.
    let isMost = count > Int(pageCount - 1) / 2
    var left = isMost ? Int(pageCount - 1) - count : count
    while left > 0 {
      let page = UInt32.random(in: 2...pageCount, using: &generator)
      if chosen.insert(page) { left -= 1 }
    }
    for page in 2...pageCount where chosen.contains(page) != isMost { result.append(page) }
    return result
  }

  func offset(of page: UInt32) -> Int64 { base + Int64(page - 1) * Int64(pageSize) }

  func bytes(of page: UInt32) throws -> [UInt8] {
    try fileSystem.open(main).bytes(at: offset(of: page), length: pageSize)
  }

  private mutating func overwrite(_ page: UInt32, _ bytes: [UInt8], _ kind: DamageKind) throws {
    // The last page may be truncated already.
    let present = try bytes.prefix(self.bytes(of: page).count)
    guard !present.isEmpty else { return }
    try write(Array(present), at: offset(of: page), kind, page: page)
  }

  private mutating func flipBits(_ kind: DamageKind) throws {
    let size = try size(of: .main)
    guard size > 100 else { throw kind.nothing(main, "the file has no more than a header") }
    let count = max(1, Int((Double(size) / 1_048_576 * kind.number).rounded()))
    for _ in 0..<count {
      let place = Int64.random(in: 100..<size, using: &generator)
      let old = try fileSystem.open(main).bytes(at: place, length: 1).first ?? 0
      let page = place >= base ? UInt32((place - base) / Int64(pageSize)) + 1 : nil
      try write([old ^ (1 << UInt8.random(in: 0..<8, using: &generator))], at: place, kind, page: page)
    }
  }

  private mutating func truncate(_ kind: DamageKind) throws {
    let size = try size(of: .main)
    let within = Int64.random(in: 1..<Int64(pageSize), using: &generator)
    let rest = max(0, Int64(Double(size) * (1 - kind.number / 100)) - within)
    try note(kind, .main, rest, size - rest, nil)
    try fileSystem.update(main).truncate(to: rest)
  }

  private mutating func destroyFirstPage(_ kind: DamageKind) throws {
    switch kind.word {
    case "zero": try overwrite(1, zeros(pageSize), kind)
    case "rand": try overwrite(1, noise(pageSize), kind)
    default:
      guard let leaf = database.leaves.filter({ $0 > 1 }).randomElement(using: &generator) else {
        throw kind.nothing(main, "there is no other leaf page to replace it with")
      }
      try overwrite(1, try bytes(of: leaf), kind)
    }
  }

  private mutating func swapPages(_ kind: DamageKind) throws {
    var pages = pick(kind.number)
    pages.shuffle(using: &generator)
    for index in stride(from: 0, to: pages.count - 1, by: 2) {
      let (first, second) = (try bytes(of: pages[index]), try bytes(of: pages[index + 1]))
      try overwrite(pages[index], second, kind)
      try overwrite(pages[index + 1], first, kind)
    }
  }

  private mutating func replacePages(_ kind: DamageKind) throws {
    guard pageCount >= 3 else { throw kind.nothing(main, "there are not enough pages") }
    for page in pick(kind.number) {
      try overwrite(page, try bytes(of: UInt32.random(in: 2...pageCount, using: &generator)), kind)
    }
  }

  private mutating func spoilFreelist(_ kind: DamageKind) throws {
    for trunk in database.trunks {
      try write(noise(min(pageSize, 8 + 4 * 50)), at: offset(of: trunk), kind, page: trunk)
    }
    guard let live = database.leaves.filter({ $0 > 1 }).randomElement(using: &generator) else {
      throw kind.nothing(main, "there is no page in use that the list could begin with")
    }
    try write(bigEndian(live) + bigEndian(pageCount / 2), at: base + 32, kind, page: 1)
  }

  private mutating func spoilCellPointers(_ kind: DamageKind) throws {
    let leaves = database.leaves.filter { $0 > 1 }
    guard !leaves.isEmpty else { throw kind.nothing(main, "there are no leaf pages") }
    let count = max(1, Int((Double(leaves.count) * kind.number / 100).rounded()))
    for page in leaves.shuffled(using: &generator).prefix(count).sorted() {
      guard let leaf = BTreePage(try bytes(of: page), number: page, geometry: database.geometry) else { continue }
      let length = 2 * leaf.cellCount
      guard length > 0 else { continue }
      try write(zeros(length), at: offset(of: page) + Int64(leaf.pointerArrayOffset), kind, page: page)
    }
  }

  private mutating func spoilPointerMaps(_ kind: DamageKind) throws {
    guard !database.pointerMaps.isEmpty else {
      throw kind.nothing(main, "the store has no pointer-map pages (auto_vacuum is off)")
    }
    for page in database.pointerMaps { try overwrite(page, zeros(pageSize), kind) }
  }

  private mutating func overwriteWithText(_ kind: DamageKind) throws {
    let line = Array("<!DOCTYPE html><title>Sign in to the network</title>\n".utf8)
    let length = Int(min(4096, try size(of: .main)))
    let text = (0..<length).map { line[$0 % line.count] }
    try write(text, at: 0, kind, page: 1)
  }

  private mutating func surround(_ before: Int, behind: Int, _ kind: DamageKind) throws {
    let size = try size(of: .main)
    try splice(.main, at: 0, removing: 0, inserting: before)
    if behind > 0 { try splice(.main, at: Int64(before) + size, removing: 0, inserting: behind) }
    try note(kind, .main, 0, Int64(before), nil)
    if behind > 0 { try note(kind, .main, Int64(before) + size, Int64(behind), nil) }
    base += Int64(before)
  }

  mutating func splice(_ part: StoreFileSet.Part, at place: Int64, removing: Int, inserting: Int) throws {
    let path = files.path(of: part)
    let unfinished = path.hiddenSibling(suffix: ".unfinished")
    let source = try fileSystem.open(path)
    let target = try fileSystem.create(unfinished, permissions: .ownerReadWrite)
    try copy(source, 0..<place, to: target)
    try writeNoise(inserting, to: target)
    try copy(source, (place + Int64(removing))..<source.count, to: target)
    try target.commit()
    try fileSystem.rename(unfinished, to: path)
  }

  private func copy(_ source: ReadableFile, _ range: Range<Int64>, to target: borrowing WritableFile) throws {
    var done = range.lowerBound
    while done < range.upperBound {
      let piece = try source.bytes(at: done, length: Int(min(1 << 20, range.upperBound - done)))
      guard !piece.isEmpty else { return }
      try target.write(piece)
      done += Int64(piece.count)
    }
  }

  private mutating func writeNoise(_ count: Int, to file: borrowing WritableFile) throws {
    var left = count
    while left > 0 {
      let piece = noise(min(left, 1 << 20))
      try file.write(piece)
      left -= piece.count
    }
  }

  // MARK: Log and journal

  mutating func remove(_ part: StoreFileSet.Part, _ kind: DamageKind) throws {
    try note(kind, part, 0, try size(of: part), nil)
    try fileSystem.unlink(files.path(of: part))
  }

  private mutating func spoilLog(_ kind: DamageKind) throws {
    let size = try size(of: .wal)
    let header = 32
    let frame = WriteAheadLog.frameHeaderLength + pageSize
    let frames = (Int(size) - header) / frame
    guard frames > 0 else { throw kind.nothing(files.path(of: .wal), "the log has no frames") }
    switch kind.name {
    case .logHeader: try write(noise(header), at: 0, kind, part: .wal)
    case .logShape: try reshapeLog(kind, header: header, frame: frame, size: size)
    case .logTail:
      let rest = size / 2 + 100
      try note(kind, .wal, rest, max(0, size - rest), nil)
      try fileSystem.update(files.path(of: .wal)).truncate(to: rest)
    case .logFrame:
      let place =
        Int64(header + frames / 2 * frame + WriteAheadLog.frameHeaderLength)
        + Int64.random(in: 0..<Int64(pageSize), using: &generator)
      let old = try fileSystem.open(files.path(of: .wal)).bytes(at: place, length: 1).first ?? 0
      try write([old ^ 0x40], at: place, kind, part: .wal)
    case .none, .zero, .random, .bitFlips, .truncated, .header, .firstPage, .roots, .interior, .swapped, .torn,
      .tornFirstPage, .freelist, .stale, .cellPointers, .pointerMaps, .overflow, .pageCount, .pageSize, .encoding,
      .text, .emptied, .prefix, .embedded, .logMissing, .logForeign, .journalMissing, .journalHeader, .drift, .sector,
      .pageHeaders, .declaration, .field, .inserted, .removed, .logPartial, .journalShape:
      let log = foreignLog(frames: frames)
      try write(log, at: 0, kind, part: .wal)
      try fileSystem.update(files.path(of: .wal)).truncate(to: Int64(log.count))
    }
  }

  /// Makes a log that is valid to SQLite, with foreign pages.
  private mutating func foreignLog(frames: Int) -> [UInt8] {
    let count = min(frames, 64)
    var log = bigEndian(0x377F_0683) + bigEndian(3_007_000) + bigEndian(UInt32(pageSize))
    log += bigEndian(0) + noise(8)
    var sum = LogChecksum()
    sum.add(log.span, bigEndian: true)
    let salts = Array(log[16..<24])
    log += bigEndian(sum.first) + bigEndian(sum.second)
    for index in 0..<count {
      let page = UInt32(index) + 2
      let head = bigEndian(page) + bigEndian(index == count - 1 ? max(pageCount, page) : 0)
      let content = noise(pageSize)
      sum.add(head.span, bigEndian: true)
      sum.add(content.span, bigEndian: true)
      log += head + salts + bigEndian(sum.first) + bigEndian(sum.second) + content
    }
    return log
  }

  // MARK: Bytes

  func size(of part: StoreFileSet.Part) throws -> Int64 {
    guard let status = try fileSystem.status(of: files.path(of: part)), status.kind == .regular else {
      throw FileError(.notFound, operation: "damage the copy", path: files.path(of: part))
    }
    return status.size
  }

  mutating func write(
    _ bytes: [UInt8], at offset: Int64, _ kind: DamageKind, part: StoreFileSet.Part = .main, page: UInt32? = nil
  ) throws {
    _ = try size(of: part)
    try fileSystem.update(files.path(of: part)).write(bytes, at: offset)
    try note(kind, part, offset, Int64(bytes.count), page)
  }

  mutating func note(
    _ kind: DamageKind, _ part: StoreFileSet.Part, _ offset: Int64, _ length: Int64, _ page: UInt32?
  ) throws {
    placeCount += 1
    guard places.count < 10000 else { return }
    places.append(.init(kind: kind.description, part: part, offset: offset, length: length, page: page))
  }

  func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  func bigEndian(_ number: UInt32) -> [UInt8] { number.bigEndianBytes }

  mutating func noise(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 7)
    while bytes.count < count {
      var number = generator.next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: number))
        number >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}

/// A reproducibly damaged copy of a store, for rehearsals.
package struct DamagedCopy: Sendable, Hashable, Codable {
  package struct Place: Sendable, Hashable, Codable {
    /// The kind, such as `zero:5`.
    var kind: String

    package var part: StoreFileSet.Part

    package var offset: Int64

    package var length: Int64

    /// The page, for damage within pages.
    package var page: UInt32?
  }

  var copy: PathText

  package var kinds: [String]

  var seed: UInt64

  /// The damaged places; the first 10,000.
  package var places: [Place]

  package var placeCount: Int

  /// Copies a store and damages the copy.
  ///
  /// - Parameters:
  ///   - store: the main file; log, journal and external data are copied too.
  ///   - copy: a free path.
  /// - Throws: `PersistentStoreError`, or `FileError` from copying; the copy is then removed.
  package static func make(
    of store: FilePath, at copy: FilePath, kinds: [DamageKind], seed: UInt64, fileSystem: FileSystem = FileSystem()
  ) throws -> DamagedCopy {
    let original = try StoreFileSet.locate(store, in: fileSystem)
    guard try fileSystem.status(of: original.main) != nil else {
      throw FileError(.notFound, operation: "copy the store", path: store)
    }
    let target = StoreFileSet(main: copy)
    for part in StoreFileSet.Part.allCases
    where try fileSystem.status(of: target.path(of: part), followingLinks: false) != nil {
      throw PersistentStoreError(
        .copyTaken, operation: "copy the store", path: target.path(of: part), detail: "there is a file already")
    }
    do {
      let lock = try SharedStoreLock(on: original, in: fileSystem)
      for part in [StoreFileSet.Part.main, .wal, .journal] {
        guard try fileSystem.status(of: original.path(of: part)) != nil else { continue }
        _ = try fileSystem.copy(original.path(of: part), to: target.path(of: part))
      }
      let values = original.path(of: .externalData)
      if try fileSystem.status(of: values)?.kind == .directory {
        try fileSystem.copyTree(values, to: target.path(of: .externalData))
      }
      lock.release()
      var run = try DamageRun(on: target, in: fileSystem)
      for (index, kind) in kinds.enumerated() { try run.apply(kind, seed: seed, index: index) }
      return DamagedCopy(
        copy: PathText(copy), kinds: kinds.map(\.description), seed: seed, places: run.places,
        placeCount: run.placeCount)
    } catch {
      // Report the first error.
      for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
      try? fileSystem.removeTree(target.path(of: .externalData))
      throw error
    }
  }
}
