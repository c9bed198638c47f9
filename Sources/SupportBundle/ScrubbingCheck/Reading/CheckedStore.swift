internal import Platform
internal import SystemPackage

/// The original: its page images, and the tree of each page.
struct CheckedStore: Sendable {
  /// Core Data's folder, which keeps its name.
  static let ownFolder: FilePath.Component = "_EXTERNAL_DATA"

  struct Image: Sendable {
    var page: Int

    var offset: Int64
  }

  /// A part of the store: images and other bytes.
  struct Part: Sendable {
    var part: StoreFileSet.Part

    var source: any ByteSource

    var images: [Image] = []
  }

  enum Use: UInt8 {
    case unknown
    case kept
    case text
    case blob

    /// Core Data's metadata: an app's values are searched, but not compared in place.
    case metadata
  }

  let parts: [Part]

  let format: PageFormat?

  let base: Int64

  private(set) var trees: [CheckedTree] = [.schema]

  /// The page's tree as index in ``trees`` plus one, or 0.
  private var owners: [UInt16]

  private var uses: [UInt8]

  /// The case-sensitive names of schema and model, which stay.
  private(set) var names: Set<String> = []

  private var capitals: Set<String> = []

  /// The app's model, which stays on any page.
  let model: CheckedModel?

  /// The last WAL image of each page.
  private var logged: [Int: Int64] = [:]

  private let keeping: Set<String>
  private let dropping: Set<String>

  private static let mostTrees = 65000
  private static let mostNames = 1 << 18

  init(
    _ files: StoreFileSet, keeping: Set<String>, dropping: Set<String>, names: [String], model: [UInt8]?,
    pages: ResultCheck.PageHint?, in fileSystem: FileSystem
  ) throws(FileError) {
    base = max(0, pages?.base ?? 0)
    self.keeping = keeping
    self.dropping = dropping
    let main = try fileSystem.open(files.main)
    let (log, journal) = (try files.open(.wal, in: fileSystem), try files.open(.journal, in: fileSystem))
    var format = try PageFinding.format(of: main, log: log, pages)
    var parts = [Part(part: .main, source: main)]
    if let log { parts.append(Part(part: .wal, source: log)) }
    if let journal { parts.append(Part(part: .journal, source: journal)) }
    if let found = format {
      for place in parts.indices { parts[place].images = try PageFinding.images(of: parts[place], found, from: base) }
      if try !PageFinding.hasHeader(main, at: base) {
        format = PageFormat(pageSize: found.pageSize, encoding: try PageFinding.encoding(of: parts, found))
      }
    }
    if let found = format, let encoding = try PageFinding.encoding(ofSchemaIn: main, from: base, found) {
      format = PageFormat(pageSize: found.pageSize, reserved: found.pageSize - found.usableSize, encoding: encoding)
    }
    self.parts = parts
    self.format = format
    self.model = format.flatMap { pages in model.flatMap { CheckedModel($0, pages) } }
    let count = parts[0].images.count
    let highest = min(parts.flatMap(\.images).reduce(count) { max($0, $1.page) }, count + 1 << 20)
    owners = [UInt16](repeating: 0, count: highest + 1)
    uses = [UInt8](repeating: 0, count: highest + 1)
    for image in parts.first(where: { $0.part == .wal })?.images ?? [] { logged[image.page] = image.offset }
    for name in names.prefix(Self.mostNames) { note(name: name) }
    guard format != nil else { return }
    try readSchema()
    if !logged.isEmpty {
      // The main file's older images may be of dropped trees.
      let latest = logged
      logged = [:]
      try readSchema()
      logged = latest
    }
  }

  // MARK: Answers

  func tree(ofPage page: Int) -> CheckedTree? {
    guard owners.indices.contains(page), owners[page] > 0 else { return nil }
    return trees[Int(owners[page]) - 1]
  }

  /// True without a schema.
  var hasOwnRowids: Bool {
    trees.count == 1 || trees.contains { $0.keepsRowids && !$0.isSchema && !$0.isIndex && !$0.isKept }
  }

  func use(ofPage page: Int) -> Use { uses.indices.contains(page) ? Use(rawValue: uses[page]) ?? .unknown : .unknown }

  /// Notes an overflow page; false if unchanged.
  mutating func note(_ use: Use, ofPage page: Int) -> Bool {
    guard uses.indices.contains(page), uses[page] == 0 || use == .kept && uses[page] != Use.kept.rawValue else {
      return false
    }
    uses[page] = use.rawValue
    return true
  }

  mutating func takeUses(of other: CheckedStore) {
    for page in uses.indices where uses[page] == 0 || other.uses[page] == Use.kept.rawValue {
      uses[page] = other.uses[page]
    }
  }

  func isName(_ text: String) -> Bool {
    let upper = text.uppercased()
    return capitals.contains(upper) || capitals.contains("Z\(upper)")
  }

  // MARK: Reading

  /// Reads a page from the WAL or the main file.
  func read(page: Int, into buffer: inout [UInt8]) throws(FileError) -> Bool {
    guard let format, page >= 1 else { return false }
    if let offset = logged[page], let log = parts.first(where: { $0.part == .wal }) {
      return try log.source.read(at: offset, length: format.pageSize, into: &buffer) == format.pageSize
    }
    guard page <= parts[0].images.count else { return false }
    return try parts[0].source.read(
      at: base + Int64(page - 1) * Int64(format.pageSize), length: format.pageSize, into: &buffer) == format.pageSize
  }

  /// The end of the page numbers in an image that is a trunk page of the freelist; 4 for any other page.
  ///
  /// A page that held a part of a value can be one later. Each number is a page of the store, and none comes twice.
  func endOfTrunk(_ bytes: Span<UInt8>) -> Int {
    guard let next = Bytes.four(bytes, 0), next < uses.count, let count = Bytes.four(bytes, 4), count > 0,
      count <= bytes.count / 4 - 2
    else { return 4 }
    var seen: Set<Int> = []
    for index in 0..<count {
      guard let leaf = Bytes.four(bytes, 8 + 4 * index), leaf > 1, leaf < uses.count, seen.insert(leaf).inserted else {
        return 4
      }
    }
    return 8 + 4 * count
  }

  private mutating func note(name: String) {
    guard names.count < Self.mostNames, name.utf8.count <= 1024 else { return }
    names.insert(name)
    capitals.insert(name.uppercased())
  }

  private struct Entry {
    var kind: String
    var name: String
    var table: String
    var root: Int
    var sql: String
  }

  private mutating func readSchema() throws(FileError) {
    guard let format else { return }
    var entries: [Entry] = []
    var page = CheckedPage()
    var buffer = [UInt8](repeating: 0, count: format.pageSize)
    for number in try walk(1, owner: 1, &buffer, readsLeaves: true) {
      guard try read(page: number, into: &buffer) else { continue }
      page.read(buffer.span, number: number, format, isMarking: false)
      for record in page.records where record.count == 5 {
        if let entry = try entry(record, page, buffer, format) { entries.append(entry) }
      }
    }
    var tables: [String: CheckedTable] = [:]
    for entry in entries {
      for word in SchemaWords.tokens(of: entry.sql) + [entry.name, entry.table] { note(name: word) }
      if entry.kind == "table" { tables[entry.table.lowercased()] = CheckedTable(name: entry.name, sql: entry.sql) }
    }
    for entry in entries where entry.root > 1 && trees.count < Self.mostTrees {
      guard let table = tables[entry.table.lowercased()] else { continue }
      if entry.kind == "table" {
        trees.append(CheckedTree(table, keeping: keeping, dropping: dropping))
      } else if entry.kind == "index" {
        let columns = SchemaWords.items(of: entry.sql).compactMap(\.first)
        trees.append(CheckedTree(index: entry.name, columns: columns, of: table, keeping: keeping, dropping: dropping))
      } else {
        continue
      }
      _ = try walk(entry.root, owner: UInt16(trees.count), &buffer, readsLeaves: false)
    }
  }

  private func entry(
    _ record: CheckedPage.Record, _ page: CheckedPage, _ bytes: [UInt8], _ format: PageFormat
  ) throws(FileError) -> Entry? {
    var payload = Array(bytes[record.rowid.upperBound..<min(bytes.count, record.rowid.upperBound + record.local)])
    _ = try append(overflow: record.overflow, to: &payload, length: record.length, format)
    var offset = 0
    guard let header = Bytes.varint(payload.span, &offset, before: payload.count), header <= payload.count else {
      return nil
    }
    var start = Int(header)
    var texts: [String] = []
    var root = 0
    while offset < Int(header) {
      guard let type = Bytes.varint(payload.span, &offset, before: Int(header)), let length = Bytes.length(ofType: type)
      else { return nil }
      let range = min(start, payload.count)..<min(payload.count, start + length)
      if texts.count == 3, (1...6).contains(type) { root = Int(clamping: Bytes.signed(payload.span, range)) }
      texts.append(type >= 13 && type & 1 == 1 ? format.encoding.text(payload[range]) : "")
      start += length
    }
    guard texts.count == 5, ["table", "index", "view", "trigger"].contains(texts[0]) else { return nil }
    return Entry(kind: texts[0], name: texts[1], table: texts[2], root: root, sql: texts[4])
  }

  /// Appends overflow up to the length of a payload, and returns its pages.
  func append(
    overflow first: Int, to payload: inout [UInt8], length: Int, _ format: PageFormat
  ) throws(FileError) -> [Int] {
    var (next, pages) = (first, [Int]())
    var buffer = [UInt8](repeating: 0, count: format.pageSize)
    while payload.count < length, next > 1, pages.count < 4096, try read(page: next, into: &buffer) {
      pages.append(next)
      payload += buffer[4..<min(format.usableSize, 4 + length - payload.count)]
      next = Bytes.four(buffer.span, 0) ?? 0
    }
    return pages
  }

  /// Notes a tree's pages, and returns those with records.
  private mutating func walk(
    _ root: Int, owner: UInt16, _ buffer: inout [UInt8], readsLeaves: Bool
  ) throws(FileError) -> [Int] {
    guard let format else { return [] }
    var page = CheckedPage()
    var waiting = [root]
    var found: [Int] = []
    var seen: Set<Int> = []
    while let number = waiting.popLast() {
      guard owners.indices.contains(number), owners[number] == 0 || owners[number] == owner && readsLeaves,
        seen.insert(number).inserted, try read(page: number, into: &buffer)
      else { continue }
      owners[number] = owner
      found.append(number)
      page.read(buffer.span, number: number, format, isMarking: false)
      guard page.kind == 2 || page.kind == 5 else { continue }
      let children = page.children
      // B-trees are balanced: if one child is a leaf, all are.
      if !readsLeaves, let first = children.last, owners.indices.contains(first),
        try read(page: first, into: &buffer), buffer[0] >= 10
      {
        for child in children where owners.indices.contains(child) && owners[child] == 0 {
          owners[child] = owner
          found.append(child)
        }
      } else {
        waiting += children
      }
    }
    return found
  }
}

/// The app's model, recognized by its bytes on any page.
struct CheckedModel: Sendable {
  let bytes: [UInt8]

  /// The pieces on overflow pages, by their first eight bytes.
  private let pieces: [UInt64: Int]

  private let length: Int

  /// The longest model, packed or unpacked.
  private static let longest = 16 << 20
  private static let mostUnpacked = 64 << 20

  /// Fails unless the bytes unpack to a model.
  init?(_ bytes: [UInt8], _ format: PageFormat) {
    guard bytes.count >= 8, bytes.count <= Self.longest, Self.isArchive(bytes) else { return nil }
    self.bytes = bytes
    length = format.usableSize - 4
    // Two numbers: header length and serial type.
    let type = 12 + 2 * bytes.count
    let header = type < 1 << 14 ? 3 : type < 1 << 21 ? 4 : 5
    let local = format.localLength(of: header + bytes.count, isTableLeaf: true)
    var pieces: [UInt64: Int] = [:]
    for start in stride(from: local - header, to: bytes.count - 7, by: length) {
      pieces[ValueFingerprints.word(bytes.span, start)] = start
    }
    self.pieces = pieces
  }

  /// Whether bytes are a packed keyed archive with a model.
  private static func isArchive(_ bytes: [UInt8]) -> Bool {
    guard let stream = Inflating(limit: mostUnpacked, isRaw: true) else { return false }
    var archive: [UInt8] = []
    _ = stream.read(bytes, from: 0) { piece in
      archive += piece
      return true
    }
    guard archive.starts(with: "bplist00".utf8) else { return false }
    var wanted = ["NSKeyedArchiver", "NSManagedObjectModel", "NSEntityDescription"].map { Array($0.utf8) }
    for index in archive.indices where archive[index] == 0x4e {
      wanted.removeAll { archive[index...].starts(with: $0) }
      if wanted.isEmpty { return true }
    }
    return false
  }

  /// Whether a field's local part is the model.
  func begins(_ field: CheckedPage.Field, _ page: Span<UInt8>) -> Bool {
    field.place == 0 && field.type == Int64(12 + 2 * bytes.count) && isSame(field.range, as: 0, page)
  }

  /// Returns an overflow page's piece of the model, if in both versions.
  func piece(_ original: Span<UInt8>, _ result: Span<UInt8>) -> Range<Int>? {
    guard original.count >= 12, result.count >= original.count, let start = pieces[ValueFingerprints.word(original, 4)]
    else { return nil }
    let range = 4..<(4 + min(length, bytes.count - start))
    return isSame(range, as: start, original) && isSame(range, as: start, result) ? range : nil
  }

  private func isSame(_ range: Range<Int>, as start: Int, _ page: Span<UInt8>) -> Bool {
    guard range.upperBound <= page.count, start + range.count <= bytes.count else { return false }
    for (place, index) in range.enumerated() where page[index] != bytes[start + place] { return false }
    return true
  }
}
