internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// The files of a store: opened for reading, never written, never opened by SQLite.
struct Evidence {
  let files: StoreFileSet

  let fileSystem: FileSystem

  /// The database file; empty for a lone log or journal.
  private(set) var main: any ByteSource

  /// Whether `main` lacks a long hole at its end, in which every byte is zero.
  private(set) var endsInHole = false

  /// The write-ahead log; nil if missing or empty.
  let log: (any ByteSource)?

  /// Whether a log file exists, even an empty one.
  let hasLogFile: Bool

  /// The rollback journal; nil if missing or empty.
  let journal: (any ByteSource)?

  /// Opens the set of files at a path.
  ///
  /// - Parameters:
  ///   - opened: the files themselves, if they have no names.
  ///   - realigns: whether to undo shifts of bytes.
  init(
    _ path: FilePath, opened: OpenedFiles? = nil, in fileSystem: FileSystem, realigns: Bool = true
  ) throws {
    self.fileSystem = fileSystem
    let main: any ByteSource
    files = try opened == nil ? StoreFileSet.locate(path, in: fileSystem) : StoreFileSet(main: path)
    let wal = try Self.part(.wal, of: files, opened, in: fileSystem)
    var log = wal.flatMap { $0.count > 0 ? $0 : nil }
    var journal = try Self.part(.journal, of: files, opened, in: fileSystem).flatMap { $0.count > 0 ? $0 : nil }
    let whole = try Self.part(.main, of: files, opened, in: fileSystem)
    if log == nil, journal == nil, let whole, let kind = try Self.kindAlone(whole) {
      // A lone log or journal, under any name.
      main = MemoryBytes([])
      if kind == .writeAheadLog { log = whole } else { journal = whole }
    } else if let whole {
      main = Self.withoutHole(whole)
      endsInHole = main.count < whole.count
    } else if log != nil || journal != nil {
      main = MemoryBytes([])
    } else {
      main = try fileSystem.open(files.main)
    }
    (self.log, self.journal) = (log, journal)
    hasLogFile = wal != nil
    self.main = realigns ? try RealignmentSearch.realigned(main) : main
    if realigns, let realigned = try PageShiftSearch.realigned(self) { self.main = realigned }
  }

  private static func kindAlone(_ file: ReadableFile) throws(FileError) -> FileKind? {
    let kind = FileKind(firstBytes: try file.bytes(at: 0, length: FileKind.sampleLength))
    return kind == .writeAheadLog || kind == .rollbackJournal ? kind : nil
  }

  /// The least bytes of a trailing hole to cut off.
  private static let holeLength: Int64 = 64 << 20

  /// The file without a long trailing hole.
  private static func withoutHole(_ file: ReadableFile) -> any ByteSource {
    let end = file.dataEnd
    guard file.count - end >= holeLength else { return file }
    return SourcePrefix(source: file, count: (end + 0xffff) & ~0xffff)
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, _ opened: OpenedFiles?, in fileSystem: FileSystem
  ) throws(FileError) -> ReadableFile? {
    if let opened { return opened[part] }
    let path = files.path(of: part)
    return try fileSystem.status(of: path) == nil ? nil : fileSystem.open(path)
  }
}

/// Finds inserted or lost bytes by whole pages at shifted offsets.
struct RealignmentSearch {
  private let file: any ByteSource
  private let layout: FileLayout
  private var parts = [RealignedFile.Part(place: 0, offset: 0)]
  private var uncertain: [Range<Int64>] = []

  private static let maximumShifts = 4096

  /// The limit of failed searches; possible overflow pages weigh less.
  private static let maximumFailures = 1 << 16

  private static let maximumLineEnds = 1 << 20

  private var size: Int { layout.pageSize }
  private var shift: Int64 { parts.last.map { $0.offset - $0.place } ?? 0 }

  private init(_ file: any ByteSource, _ layout: FileLayout) {
    self.file = file
    self.layout = layout
  }

  static func realigned(_ file: any ByteSource) throws -> any ByteSource {
    let search = FileLayoutSearch(main: file)
    var found = try search.stated()
    if found == nil { found = try search.find() }
    guard let layout = found else { return file }
    let length = file.count - layout.base
    let stated = layout.header.flatMap { $0.isPageCountValid ? Int64($0.pageCount) * Int64(layout.pageSize) : nil }
    guard length % Int64(layout.pageSize) != 0 || stated ?? length != length || layout.strangePages > 0 else {
      return file
    }
    if let found = try search.find() {
      // At the right page size hardly any page is strange, except pointer maps.
      let isAligned = found.pageSize != layout.pageSize && found.strangePages * 10 < Int(found.pageCount)
      if isAligned || !found.otherDatabases.isEmpty { return file }
    }
    var one = RealignmentSearch(file, layout)
    if let undone = try one.withoutCarriageReturns(), try undone.pages > one.pages(of: file) { return undone.file }
    return try one.run() ?? file
  }

  // MARK: Line ends

  /// The file without carriage returns, if each line feed has one, and its number of whole pages.
  private func withoutCarriageReturns() throws -> (file: RealignedFile, pages: Int)? {
    var undone = parts
    var previous: UInt8 = 0
    var offset: Int64 = 0
    while offset < file.count {
      let bytes = try file.bytes(at: offset, length: 1 << 18)
      guard !bytes.isEmpty else { break }
      for index in bytes.indices {
        if bytes[index] == 0x0a {
          guard previous == 0x0d, undone.count < Self.maximumLineEnds else { return nil }
          let place = offset + Int64(index)
          undone.append(.init(place: place - Int64(undone.count), offset: place))
        }
        previous = bytes[index]
      }
      offset += Int64(bytes.count)
    }
    guard undone.count > 1 else { return nil }
    let result = RealignedFile(file, .lineEnds, undone)
    return (result, try pages(of: result))
  }

  private func pages(of file: any ByteSource) throws -> Int {
    try FileLayoutSearch(main: file).vote(size: size, base: layout.base).filled
  }

  // MARK: Pages

  private mutating func run() throws -> RealignedFile? {
    var offset = layout.base
    var known = offset
    var failures = 0
    while offset < file.count, failures < Self.maximumFailures, parts.count < Self.maximumShifts {
      let bytes = try page(at: offset)
      let start = offset == layout.base ? DatabaseHeader.length : 0
      if TreePageLook.isWhole(bytes.span, start: start, usableSize: layout.usableSize) {
        known = offset + Int64(size)
      } else if !PageSurvey.isZero(bytes.span) {
        if let next = try nextPage(
          after: max(known - Int64(size), offset - Int64(2 * size), layout.base), unlike: offset)
        {
          try add(from: known, strange: offset, to: next)
          known = next
          offset = next
          continue
        }
        // An overflow page isn't a b-tree page either.
        failures += isPossible(bytes.span) ? 1 : 64
      }
      offset += Int64(size)
    }
    return parts.count > 1 ? RealignedFile(file, .shifted, parts, uncertain: uncertain) : nil
  }

  private func page(at offset: Int64) throws -> [UInt8] {
    let missing = Int(min(Int64(size), max(0, -offset)))
    let bytes = try file.bytes(at: max(0, offset), length: size - missing)
    return [UInt8](repeating: 0, count: missing) + bytes + [UInt8](repeating: 0, count: size - missing - bytes.count)
  }

  /// Whether a page may be a sound overflow, freelist or zero page.
  private func isPossible(_ bytes: Span<UInt8>) -> Bool { bytes.uint32(at: 0).map { $0 <= layout.pageCount } ?? true }

  /// The first whole page with another alignment and successors.
  private func nextPage(after start: Int64, unlike aligned: Int64) throws -> Int64? {
    let bytes = try file.bytes(at: start, length: 8 * size)
    var offset = 1
    while offset + size <= bytes.count, start + Int64(offset) <= aligned + Int64(3 * size) {
      if PageKind(rawValue: bytes[offset]) != nil, (start + Int64(offset) - aligned) % Int64(size) != 0,
        isTreePage(bytes.span.extracting(offset..<(offset + size))),
        try isFollowed(start + Int64(offset))
      {
        return start + Int64(offset)
      }
      offset += 1
    }
    return nil
  }

  private func isTreePage(_ bytes: Span<UInt8>) -> Bool {
    bytes.uint16(at: 3) ?? 0 > 0 && TreePageLook.isWhole(bytes, start: 0, usableSize: layout.usableSize)
  }

  /// Whether one of the next pages is whole too, or the file ends.
  private func isFollowed(_ offset: Int64) throws -> Bool {
    var next = offset + Int64(size)
    guard next + Int64(size) <= file.count else { return true }
    for _ in 0..<8 where next + Int64(size) <= file.count {
      let bytes = try page(at: next)
      if isTreePage(bytes.span) { return true }
      next += Int64(size)
    }
    return false
  }

  /// Adds a shift.
  ///
  /// - Parameters:
  ///   - known: the end of the aligned pages.
  ///   - strange: the first malformed page.
  ///   - next: the first page after the shift.
  private mutating func add(from known: Int64, strange: Int64, to next: Int64) throws {
    let size = Int64(size)
    // The header states the page count; otherwise assume the smallest shift.
    var pages = (next - known + size / 2) / size
    if let header = layout.header, header.isPageCountValid,
      Int64(header.pageCount) * size != file.count - layout.base
    {
      let others = (known - shift - layout.base) / size + (file.count - next + size / 2) / size
      pages = max(0, Int64(header.pageCount) - others)
    }
    let place = known - shift
    let shifted = next - (place + pages * size)
    guard pages > 0 else {
      try doubtLastCell(before: known)
      parts.append(.init(place: place, offset: next))
      return
    }
    var torn = min((strange - known) / size, pages - 1)
    let start = known == layout.base ? DatabaseHeader.length : 0
    let first = try page(at: known + torn * size)
    if torn > 0, !hasHeader(first.span, 0) { torn -= 1 }
    let begin = place + torn * size
    let front = try page(at: begin + shift)
    let back = try page(at: begin + shifted)
    let seam = seam(front, back, start: torn == 0 ? start : 0)
    if torn == 0, seam.offset == 0 { try doubtLastCell(before: known) }
    if let hole = seam.hole, !hole.isEmpty {
      uncertain.append((begin + Int64(hole.lowerBound))..<(begin + Int64(hole.upperBound)))
    }
    parts.append(.init(place: begin + Int64(seam.offset), offset: begin + Int64(seam.offset) + shifted))
  }

  /// Marks a page's last cell, which can hide a shift, as uncertain.
  private mutating func doubtLastCell(before end: Int64) throws {
    guard end > layout.base else { return }
    let bytes = try page(at: end - Int64(size))
    let start = end - Int64(size) == layout.base ? DatabaseHeader.length : 0
    guard let kind = PageKind(rawValue: bytes[start]), let count = bytes.span.uint16(at: start + 3) else { return }
    let offsets = (0..<count).compactMap { bytes.span.uint16(at: start + kind.headerLength + 2 * $0) }
    guard let last = offsets.max(), last < size else { return }
    uncertain.append((end - shift - Int64(size - last))..<(end - shift))
  }

  private func hasHeader(_ bytes: Span<UInt8>, _ start: Int) -> Bool {
    PageKind(rawValue: bytes[start]).map { PageSurvey.isPossible(bytes, $0, start, layout.usableSize) } ?? false
  }

  /// The offset where the page changes alignment, and the uncertain bytes.
  ///
  /// - Parameters:
  ///   - front: the page at the earlier alignment.
  ///   - back: the page at the later alignment.
  private func seam(
    _ front: [UInt8], _ back: [UInt8], start: Int
  ) -> (offset: Int, hole: Range<Int>?) {
    guard hasHeader(front.span, start), let kind = PageKind(rawValue: front[start])
    else { return (0, 0..<8) }
    let count = front.span.uint16(at: start + 3) ?? 0
    let pointers = start + kind.headerLength
    let content = min(size, max(pointers + 2 * count, front.span.uint16(at: start + 5) ?? 0))
    let whole = Array(front[..<content] + back[content...])
    if TreePageLook.isWhole(whole.span, start: start, usableSize: layout.usableSize) { return (content, nil) }
    guard kind != .tableInterior else { return (size, nil) }
    let array = pointers..<min(size, pointers + 2 * count)
    let split = array.map { (offset: $0, good: cells(of: front, back, from: $0, array, kind)) }.max {
      $0.good < $1.good
    }
    let offsets = Set((0..<count).compactMap { front.span.uint16(at: pointers + 2 * $0) }).sorted()
    let inFront = offsets.map { end(of: front, kind, at: $0) }
    let inBack = offsets.map { end(of: back, kind, at: $0) }
    var best = (good: -1, split: 0)
    var good = inBack.count { $0 != nil }
    for split in 0...offsets.count {
      if good > best.good { best = (good, split) }
      if split < offsets.count { good += (inFront[split] != nil ? 1 : 0) - (inBack[split] != nil ? 1 : 0) }
    }
    if let split, split.good > best.good { return (split.offset, nil) }
    let last = (0..<best.split).last { inFront[$0] != nil }
    let first = (best.split..<offsets.count).first { inBack[$0] != nil }
    let upper = first.map { offsets[$0] } ?? size
    guard let last else { return (upper, first == 0 ? nil : content..<max(content, upper)) }
    // A cell across the shift begins in front.
    let isTorn = last + 1 == first ?? offsets.count
    let lower = isTorn ? offsets[last] : inFront[last] ?? offsets[last]
    return (upper, lower..<max(lower, upper))
  }

  /// The valid cells if the shift lies within the pointer array.
  private func cells(
    of front: [UInt8], _ back: [UInt8], from offset: Int, _ array: Range<Int>, _ kind: PageKind
  ) -> Int {
    let pointers = Array(front[array.lowerBound..<offset] + back[offset..<array.upperBound])
    return Set((0..<(array.count / 2)).compactMap { pointers.span.uint16(at: 2 * $0) })
      .count { end(of: back, kind, at: $0) != nil }
  }

  private func end(of page: [UInt8], _ kind: PageKind, at offset: Int) -> Int? {
    let bytes = page.span
    guard let cell = LeafCell(bytes, kind: kind, at: offset, index: 0, geometry: layout.geometry),
      RecordText.length(bytes, at: cell.payload, before: cell.payload + cell.local) == cell.length
    else { return nil }
    return cell.end
  }
}
