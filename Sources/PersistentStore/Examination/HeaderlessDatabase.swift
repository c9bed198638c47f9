import Platform
import SQLiteFormat

/// What can be told of a database whose header is lost, from the pages that are left.
///
/// Pages of b-trees are known by their headers and cells (SQLite file format, "B-tree Pages"): the first byte is one of
/// four, the counts fit the page, and cells are laid down from the page's end.
struct HeaderlessDatabase {
  /// The page size in bytes.
  var pageSize: Int

  /// How many pages behind the first one are pages of b-trees, of those looked at.
  var treePages: Int

  /// How many pages behind the first one were looked at.
  var pagesSeen: Int

  /// Whether the b-tree page that follows the header on page 1 can be read.
  var isFirstPageReadable: Bool

  /// Whether any of those pages does not look random.
  private var hasPlainPage = false

  /// How much of a file's beginning is looked at, in bytes.
  private static let sampleLength = 1 << 20

  private static let pageSizes = (9...16).map { 1 << $0 }

  /// How much of a file is looked at as a whole, in bytes, where its beginning has no page; of a longer one as much, in
  /// pieces spread evenly over it.
  private static let searchLength = Int64(256 << 20)

  /// Looks for pages at the beginning of a file, and where there are none behind it; nil where there are none.
  ///
  /// One page among bytes that look random may be so by chance: it counts if it does not look random itself, or if there
  /// are two.
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

  /// Looks for pages at the beginning of a file; nil where there are none.
  ///
  /// - Parameters:
  ///   - file: the file, of which at most 1 MiB is read.
  ///   - header: its first 100 bytes, whose page size counts where the bytes that never change are right.
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
      // Where sizes are equally good, the smaller one: pages twice as long would hide every other one.
      if score >= 4, score > best?.score ?? 0 { best = (score, candidate) }
    }
    guard let best else { return nil }
    self = best.database
  }

  private init(_ sample: [UInt8], pageSize: Int) {
    self.init(pageSize: pageSize)
    look(at: sample, isBeginning: true)
  }

  private init(pageSize: Int) {
    self.pageSize = pageSize
    pagesSeen = 0
    treePages = 0
    isFirstPageReadable = false
  }

  /// Counts the pages in a piece of the file that begins where a page of any size does.
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

  /// Whether more than half of what was looked at is pages of b-trees.
  var isMostlyPages: Bool { treePages > 1 && 2 * treePages > pagesSeen }

  private var isBeyondChance: Bool { hasPlainPage || treePages + (isFirstPageReadable ? 1 : 0) > 1 }

  /// Whether the bytes are a page of a b-tree: possible numbers, readable cells, and the last byte taken by one of them.
  static func isTreePage(_ bytes: [UInt8], number: UInt32, _ geometry: PayloadGeometry) -> Bool {
    guard let page = BTreePage(bytes, number: number, geometry: geometry), page.isHeaderPlausible else { return false }
    if page.storedCellCount == 0 { return page.kind.isLeaf && page.contentStart == geometry.usableSize }
    var end = 0
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index) else { return false }
      end = max(end, cell.offset + cell.length)
    }
    // The cell at the end may have been deleted; then a free block is there.
    return end == geometry.usableSize || page.firstFreeblock != 0
  }
}
