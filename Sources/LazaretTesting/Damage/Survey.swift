internal import Platform
internal import SQLiteFormat

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
