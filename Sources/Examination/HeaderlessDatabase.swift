import SQLiteFormat
import StoreFiles

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

  /// How much of a file's beginning is looked at, in bytes.
  private static let sampleLength = 1 << 20

  /// The page sizes that SQLite knows.
  private static let pageSizes = (9...16).map { 1 << $0 }

  /// Looks for pages; nil where there are none.
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
    self.pageSize = pageSize
    let geometry = PayloadGeometry(usableSize: pageSize)
    pagesSeen = 0
    treePages = 0
    isFirstPageReadable = false
    for start in stride(from: 0, through: sample.count - pageSize, by: pageSize) {
      let bytes = Array(sample[start..<(start + pageSize)])
      let isTree = Self.isTreePage(bytes, number: start == 0 ? 1 : 2, geometry)
      if start == 0 {
        isFirstPageReadable = isTree
      } else {
        pagesSeen += 1
        if isTree { treePages += 1 }
      }
    }
  }

  /// Whether the bytes are a page of a b-tree: possible numbers, readable cells, and the last byte taken by one of them.
  private static func isTreePage(_ bytes: [UInt8], number: UInt32, _ geometry: PayloadGeometry) -> Bool {
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
