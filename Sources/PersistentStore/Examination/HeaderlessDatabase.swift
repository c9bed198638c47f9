import Platform
import SQLiteFormat

/// The remaining pages of a database without a header.
///
/// B-tree pages are recognized by header and cells (SQLite file format, "B-tree Pages"): one of four first bytes,
/// counts that fit, cells laid out from the page's end.
struct HeaderlessDatabase {
  var pageSize: Int

  var treePages: Int

  /// The pages examined after the first.
  var pagesSeen: Int

  var isFirstPageReadable: Bool

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

  private init(pageSize: Int) {
    self.pageSize = pageSize
    pagesSeen = 0
    treePages = 0
    isFirstPageReadable = false
  }

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
