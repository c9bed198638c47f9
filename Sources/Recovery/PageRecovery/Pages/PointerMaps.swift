internal import SQLiteFormat

/// What the pointer maps of an auto-vacuum database say of its pages: which page leads to each (SQLite file format,
/// "Pointer Map or Ptrmap Pages").
struct PointerMaps {
  private let reader: PageReader

  /// Whether the database has pointer maps: by its header, or where that is lost by the looks of page 2.
  let isThere: Bool

  /// How many entries of the first map are looked at where the header is lost.
  private static let sample: UInt32 = 200

  init(_ reader: PageReader) throws(SalvageError) {
    self.reader = reader
    if let header = reader.layout.header, header.hasMagic {
      isThere = header.isAutoVacuum
    } else {
      isThere = try Self.looksLikeMap(reader)
    }
  }

  /// What the map says of a page; nil where there is no map, or nothing possible in it.
  func entry(for page: UInt32) throws(SalvageError) -> PointerMapEntry? {
    guard isThere, let map = reader.layout.layout.pointerMapPage(for: page), map != page, map <= reader.pageCount else {
      return nil
    }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(map, into: &buffer),
      let entry = PointerMapEntry(for: page, in: buffer.span, mapPage: map), Self.isPossible(entry, reader)
    else { return nil }
    return entry
  }

  private static func isPossible(_ entry: PointerMapEntry, _ reader: PageReader) -> Bool {
    switch entry.kind {
    case .root, .free: entry.parent == 0
    case .child, .overflowFirst, .overflowNext: entry.parent > 0 && entry.parent <= reader.pageCount
    case nil: false
    }
  }

  /// Whether page 2 is a map: it has a possible entry for each of the pages behind it.
  private static func looksLikeMap(_ reader: PageReader) throws(SalvageError) -> Bool {
    guard reader.pageCount >= 3 else { return false }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(2, into: &buffer) else { return false }
    let last = min(reader.pageCount, 2 + min(sample, UInt32(reader.layout.layout.pointerMapEntries)))
    for page in 3...last {
      guard let entry = PointerMapEntry(for: page, in: buffer.span, mapPage: 2), isPossible(entry, reader) else {
        return false
      }
    }
    return true
  }
}
