internal import SQLiteFormat

/// The pointer maps of a new database while its pages are added: those that were used last are in memory, the others on the
/// disk.
struct NewPointerMaps {
  private static let limit = 1 << 19

  private let layout: PageLayout
  private let pageSize: Int
  private let maximumCount: Int

  /// The maps in memory by their page numbers, and these in the order in which they came.
  private var maps: [UInt32: [UInt8]] = [:]
  private var queue: [UInt32] = []

  /// The maps that have been written, by SQLite or by us.
  private var written = PageSet()

  /// The map that was used last, so that it is not looked up for each page.
  private var recent: UInt32 = 0
  private var bytes: [UInt8] = []

  /// - Parameter pageCount: the pages that SQLite made; their maps are in the file.
  init(_ layout: PageLayout, pageSize: Int, pageCount: UInt32) {
    self.layout = layout
    self.pageSize = pageSize
    maximumCount = max(4, Self.limit / pageSize)
    for page in stride(from: UInt32(2), through: pageCount, by: 1) where layout.isPointerMap(page) {
      _ = written.insert(page)
    }
  }

  /// The map that has a page's entry.
  func page(for page: UInt32) -> UInt32? { layout.pointerMapPage(for: page) }

  /// Whether the map for a page has to be taken into memory first.
  func needs(_ page: UInt32) -> Bool {
    guard let map = self.page(for: page) else { return false }
    return map != recent && maps[map] == nil
  }

  /// Whether a map has been written.
  func isOnDisk(_ map: UInt32) -> Bool { written.contains(map) }

  /// The map that has been in memory longest, where there are too many; it must be written then.
  ///
  /// - Parameter limit: no map from this page on is given, because its place in the file will still be written over.
  mutating func makeRoom(before limit: UInt32) -> (page: UInt32, bytes: [UInt8])? {
    guard queue.count >= maximumCount, let place = queue.firstIndex(where: { $0 < limit }) else { return nil }
    return remove(place)
  }

  /// Takes a map into memory.
  mutating func take(_ map: UInt32, _ bytes: [UInt8]) {
    maps[map] = bytes
    queue.append(map)
  }

  /// Removes a map that must be written; nil where there is none.
  mutating func removeFirst() -> (page: UInt32, bytes: [UInt8])? { queue.isEmpty ? nil : remove(0) }

  private mutating func remove(_ place: Int) -> (page: UInt32, bytes: [UInt8]) {
    let map = queue.remove(at: place)
    putBack()
    _ = written.insert(map)
    return (map, maps.removeValue(forKey: map) ?? [UInt8](repeating: 0, count: pageSize))
  }

  private mutating func putBack() {
    if recent != 0 { maps[recent] = bytes }
    recent = 0
    bytes = []
  }

  /// Says what leads to a page whose map is in memory.
  mutating func set(_ page: UInt32, _ kind: PointerMapEntry.Kind, parent: UInt32) {
    guard let map = self.page(for: page), page > map else { return }
    if map != recent {
      putBack()
      guard let found = maps[map] else { return }
      // There must be one copy, or setting an entry copies the whole map.
      maps[map] = []
      bytes = found
      recent = map
    }
    let offset = 5 * Int(page - map - 1)
    guard offset + 5 <= bytes.count else { return }
    bytes[offset] = kind.rawValue
    bytes.set(parent, at: offset + 1)
  }
}
