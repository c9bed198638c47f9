internal import StoreFiles
internal import SystemPackage

/// The passage through the result: each page against the original's, and then a search in all of it.
struct ResultPass {
  private(set) var findings = CheckFindings()

  private let store: CheckedStore
  private var search: ValueSearch
  private let comparison: PageComparison
  private let progress: CheckProgress
  private var page = CheckedPage()

  /// Pages that were compared and wait for the search, without what stays; behind the last bytes of those before.
  private var waiting: [UInt8] = []
  private var carried = 0

  /// A packed stream that goes on in the next piece.
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

  /// Goes through stretches of files; false where it was ended.
  mutating func run(
    _ stretches: [Stretch], _ result: StoreFileSet, in fileSystem: FileSystem
  ) throws(FileError) -> Bool {
    for stretch in stretches {
      let path = result.path(of: store.parts[stretch.part].part)
      guard try fileSystem.status(of: path) != nil else { continue }
      let written = try fileSystem.open(path)
      let name = PathText(FilePath(path.lastComponent?.string ?? ""))
      stream = nil
      waiting = []
      carried = 0
      guard try compare(stretch, written, name) else { return false }
    }
    return true
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
    if part.part == .main, stretch.images.lowerBound == 0, store.base > 0,
      try !compareRest(part, written, from: 0, to: store.base, name)
    {
      return false
    }
    for number in stretch.images {
      let image = part.images[number]
      let got = try part.source.read(at: image.offset, length: size, into: &before)
      let gotAfter = try written.read(at: image.offset, length: size, into: &after)
      for index in got..<max(got, size) { before[index] = 0 }
      for index in gotAfter..<max(gotAfter, size) { after[index] = 0 }
      compare(image, before, &after, name)
      end = image.offset + Int64(size)
      searchWaiting(name, image, after)
      if number % 256 == 0, !progress.add(256 * Int64(size)) { return false }
    }
    if stretch.hasRest,
      try !compareRest(part, written, from: part.images.isEmpty ? 0 : end, to: part.source.count, name)
    {
      return false
    }
    searchRest(name)
    return true
  }

  /// Compares an image, and takes what stays out of that of the result.
  private mutating func compare(
    _ image: CheckedStore.Image, _ before: [UInt8], _ after: inout [UInt8], _ name: PathText
  ) {
    guard let format = store.format else { return }
    if let piece = store.model?.piece(before.span, after.span) {
      for index in piece { after[index] = 0 }
    }
    let tree = store.tree(ofPage: image.page)
    let use = store.use(ofPage: image.page)
    let start = CheckedStore.start(ofPage: image.page, before.span)
    page.read(before.span, start: start, format)
    var isSame = false
    if page.kind == 0, use != .unknown {
      if use == .kept {
        for index in 4..<after.count { after[index] = 0 }
      } else if use != .metadata {
        isSame = comparison.isSameStretch(before.span, after.span, from: 4, isText: use == .text)
      }
    } else if page.kind == 0 {
      // The database's header says nothing of values, whatever is left of the page behind it.
      let loose = (image.page == 1 && before.starts(with: "SQLite format 3\0".utf8) ? 100 : 0)..<format.pageSize
      isSame =
        comparison.looseFinding(
          nil, before.span.extracting(loose), after.span.extracting(loose), isSchema: tree?.isSchema == true) != nil
    } else {
      isSame =
        comparison.compare(page, before.span, after.span, tree) != nil
        || comparison.looseFinding(
          page.marks, before.span, after.span, isSchema: image.page == 1 || tree?.isSchema == true)
          != nil
      takeOut(&after, before, tree)
    }
    if isSame {
      findings.add(
        CheckFindings.Place(
          kind: .samePlace, file: name, page: image.page, table: tree.map { $0.name ?? "sqlite_schema" },
          offset: image.offset))
    }
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

  // MARK: What is no page

  private mutating func compareRest(
    _ part: CheckedStore.Part, _ written: any ByteSource, from start: Int64, to end: Int64, _ name: PathText
  ) throws(FileError) -> Bool {
    var offset = start
    while offset < end {
      let length = Int(clamping: min(65536, end - offset))
      let before = try part.source.bytes(at: offset, length: length)
      let after = try written.bytes(at: offset, length: length)
      guard !before.isEmpty else { break }
      if comparison.looseFinding(nil, before.span, after.span, isSchema: false) != nil {
        findings.add(CheckFindings.Place(kind: .samePlace, file: name, offset: offset))
      }
      searchWaiting(name, nil, after, at: offset)
      if !progress.add(Int64(before.count)) { return false }
      offset += Int64(before.count)
    }
    return true
  }

  // MARK: The search

  /// The pages whose bytes wait, to tell of a finding.
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
      let tree = number.flatMap { store.tree(ofPage: $0) }
      findings.add(
        CheckFindings.Place(
          kind: .elsewhere, file: name, page: number, table: tree.map { $0.name ?? "sqlite_schema" },
          offset: found.map { $0.offset + Int64(max(0, hit.lowerBound - $0.start)) } ?? 0))
    }
    waiting = Array(waiting.suffix(Self.overlap))
    carried = waiting.count
    waitingImages = []
  }

  /// Searches the files of large values; false where it was ended.
  mutating func searchFiles(below folder: FilePath, _ fileSystem: FileSystem) throws(FileError) -> Bool {
    guard try fileSystem.status(of: folder, followingLinks: false)?.kind == .directory else { return true }
    for file in try fileSystem.descendants(of: folder).files where file.status.kind == .regular {
      let written = try fileSystem.open(file.path)
      // The name of the file may be a value.
      let name = PathText(FilePath(folder.lastComponent?.string ?? ""))
      stream = nil
      waiting = []
      for component in file.relative where component != CheckedStore.ownFolder {
        waiting += Array(component.string.utf8) + [0]
      }
      carried = waiting.count
      waitingImages = []
      var offset: Int64 = 0
      while offset < written.count {
        let bytes = try written.bytes(at: offset, length: 65536)
        guard !bytes.isEmpty else { break }
        searchWaiting(name, nil, bytes, at: offset)
        guard progress.add(Int64(bytes.count)) else { return false }
        offset += Int64(bytes.count)
      }
      searchRest(name)
    }
    return true
  }
}
