public import Platform
internal import SystemPackage

/// Checks a scrubbed store against the original, sharing no code with the scrubber.
///
/// Both are compared in place, except for parts that stay by specification; then all output is searched for original
/// values. The original is read twice and the result once, large files in two concurrent halves. Memory is bounded:
/// about 120 MB for a store of any size.
public struct ResultCheck: Sendable {
  /// Receives the bytes done and the total; returns false to cancel.
  public typealias Progress = @Sendable (_ done: Int64, _ total: Int64) -> Bool

  private let original: StoreFileSet
  private let keeping: Set<String>
  private let dropping: Set<String>
  private let names: [String]
  private let model: [UInt8]?
  private let pages: PageHint?
  private let fileSystem: FileSystem

  /// The place of a file's pages, from the survey, for a wrong or missing header.
  public struct PageHint: Sendable, Hashable {
    /// The page size in bytes.
    public var pageSize: Int

    /// The offset of page 1.
    public var base: Int64

    /// Creates a hint.
    public init(pageSize: Int, base: Int64) {
      self.pageSize = pageSize
      self.base = base
    }
  }

  /// Creates a check.
  ///
  /// - Parameters:
  ///   - original: the store's files.
  ///   - keeping: the attributes or columns that the caller keeps.
  ///   - dropping: those overwritten with filler.
  ///   - names: more names of schema and model.
  ///   - model: the app's model as stored; it stays if it unpacks to a model archive.
  ///   - pages: the place of the main file's pages; by default from the file.
  public init(
    of original: StoreFileSet, keeping: Set<String> = [], dropping: Set<String> = [], names: [String] = [],
    model: [UInt8]? = nil, pages: PageHint? = nil, in fileSystem: FileSystem = FileSystem()
  ) {
    self.original = original
    self.keeping = keeping
    self.dropping = dropping
    self.names = names
    self.model = model
    self.pages = pages
    self.fileSystem = fileSystem
  }

  /// The result of a check, with a search for the same values in texts.
  public struct Outcome: Sendable {
    /// The places of values.
    public var findings: CheckFindings

    var search: ValueSearch
  }

  /// Checks a result; nil if cancelled.
  ///
  /// - Parameter result: the files, named as the original.
  public func run(
    on result: StoreFileSet, progress: @escaping Progress = { _, _ in true }
  ) throws(FileError) -> Outcome? {
    let store = try CheckedStore(
      original, keeping: keeping, dropping: dropping, names: names, model: model, pages: pages, in: fileSystem)
    let bytes = store.parts.reduce(0) { $0 + $1.source.count }
    let external = try fileSystem.regularFiles(below: result.path(of: .externalData))
    let total = external.reduce(2 * bytes) { $0 + $1.status.size }
    let progress = CheckProgress(total: total, progress)
    guard
      let reading = try ValueReading.all(
        of: store, external: original.path(of: .externalData), total: total, progress, in: fileSystem)
    else { return nil }
    let (read, rows) = (reading.store, reading.rows)
    let search = reading.search(size: total)
    let lists = Stretch.lists(of: read, overlap: 1)
    let passes = try concurrently(lists) { [fileSystem] (stretches) throws(FileError) -> CheckFindings? in
      var pass = ResultPass(read, search, rows: rows, total: total, progress)
      return try pass.run(stretches, result, in: fileSystem) ? pass.findings : nil
    }
    var last = ResultPass(read, search, rows: rows, total: total, progress)
    guard try last.searchFiles(below: result.path(of: .externalData), fileSystem) else { return nil }
    var findings = CheckFindings()
    findings.sampling = Int(clamping: search.fingerprints.share)
    for found in passes + [last.findings] {
      guard let found else { return nil }
      findings.take(found)
    }
    return Outcome(findings: findings, search: search)
  }
}

extension FileSystem {
  /// Returns the files below a folder, without links.
  func regularFiles(below folder: FilePath) throws(FileError) -> [Descendant] {
    guard try status(of: folder, followingLinks: false)?.kind == .directory else { return [] }
    return try descendants(of: folder).files.filter { $0.status.kind == .regular }
  }
}

/// Compares each page of the result, then searches all bytes.
struct ResultPass {
  private(set) var findings = CheckFindings()

  private let store: CheckedStore
  private var search: ValueSearch
  private let comparison: PageComparison
  private let progress: CheckProgress
  private var page = CheckedPage()

  /// Compared bytes to search, without kept parts.
  private var waiting: [UInt8] = []
  private var carried = 0

  private var stream: Inflating?

  private static let pieceLength = 1 << 20
  private static let overlap = 128

  init(_ store: CheckedStore, _ search: ValueSearch, rows: Int64, total: Int64, _ progress: CheckProgress) {
    self.store = store
    self.search = search
    self.progress = progress
    comparison = PageComparison(
      store.format ?? PageFormat(pageSize: 65536), places: total, rows: rows,
      hasOwnRowids: store.hasOwnRowids, model: store.model, isName: store.isName)
  }

  mutating func run(_ list: [Stretch], _ result: StoreFileSet, in fileSystem: FileSystem) throws(FileError) -> Bool {
    for stretch in list {
      let path = result.path(of: store.parts[stretch.part].part)
      guard try fileSystem.status(of: path) != nil else { continue }
      let written = try fileSystem.open(path)
      begin(with: [])
      guard try compare(stretch, written, PathText(FilePath(path.lastComponent?.string ?? ""))) else { return false }
    }
    return true
  }

  /// Begins the search of a file.
  private mutating func begin(with bytes: [UInt8]) {
    stream = nil
    waiting = bytes
    carried = bytes.count
    waitingImages = []
  }

  private mutating func note(_ kind: CheckFindings.Kind, _ name: PathText, page: Int? = nil, at offset: Int64) {
    let table = page.flatMap { store.tree(ofPage: $0) }.map { $0.name ?? "sqlite_schema" }
    findings.add(CheckFindings.Place(kind: kind, file: name, page: page, table: table, offset: offset))
  }

  // MARK: Pages

  private mutating func compare(
    _ stretch: Stretch, _ written: any ByteSource, _ name: PathText
  ) throws(FileError) -> Bool {
    let part = store.parts[stretch.part]
    let size = store.format?.pageSize ?? 65536
    var before = [UInt8](repeating: 0, count: size)
    var after = [UInt8](repeating: 0, count: size)
    var end: Int64 = 0
    if part.part == .main, stretch.images.lowerBound == 0 {
      guard try compareRest(part, written, from: 0, to: store.base, name) else { return false }
    }
    for number in stretch.images {
      let image = part.images[number]
      let got = try part.source.read(at: image.offset, length: size, into: &before)
      let gotAfter = try written.read(at: image.offset, length: size, into: &after)
      for index in got..<max(got, size) { before[index] = 0 }
      for index in gotAfter..<max(gotAfter, size) { after[index] = 0 }
      compare(image, before, &after, name)
      end = image.offset + Int64(size)
      searchWaiting(name, image, page.parted(after))
      if number % 256 == 0, !progress.add(256 * Int64(size)) { return false }
    }
    if stretch.hasRest {
      let start = part.images.isEmpty ? 0 : end
      guard try compareRest(part, written, from: start, to: part.source.count, name) else { return false }
    }
    searchRest(name)
    return true
  }

  /// Compares an image, and removes kept parts.
  private mutating func compare(
    _ image: CheckedStore.Image, _ before: [UInt8], _ after: inout [UInt8], _ name: PathText
  ) {
    guard let format = store.format else { return }
    if let piece = store.model?.piece(before.span, after.span) { for index in piece { after[index] = 0 } }
    let tree = store.tree(ofPage: image.page)
    let use = store.use(ofPage: image.page)
    page.read(before.span, number: image.page, format)
    var isSame = false
    if page.kind == 0, use != .unknown {
      if use == .kept {
        for index in 4..<after.count { after[index] = 0 }
      } else if use != .metadata {
        isSame = comparison.isSameStretch(
          before.span, after.span, from: store.endOfTrunk(before.span), isText: use == .text)
      }
    } else if page.kind == 0 {
      // The database header holds no values.
      let loose = (image.page == 1 && before.starts(with: "SQLite format 3\0".utf8) ? 100 : 0)..<format.pageSize
      isSame = comparison.hasSameLoose(
        nil, before.span.extracting(loose), after.span.extracting(loose), isSchema: tree?.isSchema == true)
      if tree?.isSchema == true {
        // A value may begin as a statement that stays.
        for range in comparison.statements(before.span, after.span) {
          after.replaceSubrange(range, with: repeatElement(0, count: range.count))
        }
      }
    } else {
      isSame =
        comparison.hasSame(page, before.span, after.span, tree)
        || comparison.hasSameLoose(
          page.marks, before.span, after.span, isSchema: image.page == 1 || tree?.isSchema == true)
      takeOut(&after, before, tree)
    }
    if isSame { note(.samePlace, name, page: image.page, at: image.offset) }
  }

  private func takeOut(_ after: inout [UInt8], _ before: [UInt8], _ tree: CheckedTree?) {
    for record in page.records {
      let isKept = comparison.keeps(record, page, before.span, tree)
      for place in record.fields {
        let field = page.fields[place]
        guard isKept || comparison.rule(of: field, tree).isKept else { continue }
        for index in field.range { after[index] = 0 }
      }
    }
  }

  // MARK: Other bytes

  private mutating func compareRest(
    _ part: CheckedStore.Part, _ written: any ByteSource, from start: Int64, to end: Int64, _ name: PathText
  ) throws(FileError) -> Bool {
    for offset in stride(from: start, to: end, by: 65536) {
      let length = Int(clamping: min(65536, end - offset))
      let before = try part.source.bytes(at: offset, length: length)
      let after = try written.bytes(at: offset, length: length)
      guard !before.isEmpty else { break }
      if comparison.hasSameLoose(nil, before.span, after.span, isSchema: false) { note(.samePlace, name, at: offset) }
      searchWaiting(name, nil, after, at: offset)
      if !progress.add(Int64(before.count)) { return false }
    }
    return true
  }

  // MARK: The search

  /// The waiting pages, for findings.
  private var waitingImages: [(start: Int, image: CheckedStore.Image?, offset: Int64)] = []

  private mutating func searchWaiting(
    _ name: PathText, _ image: CheckedStore.Image?, _ bytes: [UInt8], at offset: Int64 = 0
  ) {
    waitingImages.append((waiting.count, image, image?.offset ?? offset))
    waiting += bytes
    if waiting.count >= Self.pieceLength { searchRest(name) }
  }

  private mutating func searchRest(_ name: PathText) {
    findings.bytes += Int64(waiting.count)
    if let hit = search.first(in: waiting, from: carried, stream: &stream) {
      let found = waitingImages.last { $0.start <= max(0, hit.lowerBound) }
      let number = found?.image?.page
      let offset = found.map { $0.offset + (number == nil ? Int64(max(0, hit.lowerBound - $0.start)) : 0) }
      note(.elsewhere, name, page: number, at: offset ?? 0)
    }
    waiting = Array(waiting.suffix(Self.overlap))
    carried = waiting.count
    waitingImages = []
  }

  mutating func searchFiles(below folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> Bool {
    for file in try fileSystem.regularFiles(below: folder) {
      let written = try fileSystem.open(file.path)
      // A file name may be a value.
      let name = PathText(FilePath(folder.lastComponent?.string ?? ""))
      begin(with: file.relative.filter { $0 != CheckedStore.ownFolder }.flatMap { Array($0.string.utf8) + [0] })
      for offset in stride(from: 0, to: written.count, by: 65536) {
        let bytes = try written.bytes(at: offset, length: 65536)
        guard !bytes.isEmpty else { break }
        searchWaiting(name, nil, bytes, at: offset)
        guard progress.add(Int64(bytes.count)) else { return false }
      }
      searchRest(name)
    }
    return true
  }
}

/// The places of remaining original values, never the values.
public struct CheckFindings: Sendable, Hashable {
  /// The way a value was found.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// At its place in the original.
    case samePlace

    /// Elsewhere, in any form.
    case elsewhere
  }

  /// The place of a value.
  public struct Place: Sendable, Hashable {
    /// The kind of finding.
    public var kind: Kind

    /// The file name; for external values, the folder's.
    public var file: PathText

    /// The page number from one, if any.
    public var page: Int?

    /// The table or index that owns the page, if any.
    public var table: String?

    /// The offset of the value if known, otherwise of the page.
    public var offset: Int64

    /// The place in words.
    public var words: String {
      let owner = table.map { " of \"\(printable($0))\"" } ?? ""
      return page.map { "on page \($0)\(owner) of \(printable(file.text))" }
        ?? "at byte \(offset) of \(printable(file.text))"
    }
  }

  /// The number of pages and file pieces with a value.
  public internal(set) var count = 0

  /// The first 100 places.
  public internal(set) var places: [Place] = []

  /// The number of compared and searched bytes.
  public internal(set) var bytes: Int64 = 0

  /// The sampling of pieces: one in this many was sought.
  public internal(set) var sampling = 1

  /// Whether the check found no value.
  public var isEmpty: Bool { count == 0 }

  mutating func add(_ place: Place) {
    count += 1
    if places.count < 100 { places.append(place) }
  }

  mutating func take(_ other: CheckFindings) {
    let known = Set(places)
    let added = other.places.filter { !known.contains($0) }
    count += other.count - (other.places.count - added.count)
    places += added.prefix(max(0, 100 - places.count))
    bytes += other.bytes
  }
}
