internal import SQLiteFormat

/// What the pointer maps of an auto-vacuum database say of its pages: which page leads to each (SQLite file format,
/// "Pointer Map or Ptrmap Pages").
struct PointerMaps {
  private let reader: PageReader

  /// Whether the database has pointer maps: by the looks of page 2, or where those tell nothing by its header.
  let isThere: Bool

  /// How many entries of the first map are looked at.
  private static let sample: UInt32 = 200

  init(_ reader: PageReader) throws(SalvageError) {
    self.reader = reader
    isThere = try Self.isMap(reader) ?? reader.layout.header.map { $0.hasMagic && $0.isAutoVacuum } ?? false
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

  /// Whether page 2 is a map, which has a possible entry for each of the pages behind it; nil where it is damaged.
  private static func isMap(_ reader: PageReader) throws(SalvageError) -> Bool? {
    guard reader.pageCount >= 3 else { return false }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(2, into: &buffer) else { return nil }
    if let kind = PageKind(rawValue: buffer[0]), PageSurvey.isPossible(buffer.span, kind, 0, reader.usableSize) {
      return false
    }
    let last = min(reader.pageCount, 2 + min(sample, UInt32(reader.layout.layout.pointerMapEntries)))
    for page in 3...last {
      guard let entry = PointerMapEntry(for: page, in: buffer.span, mapPage: 2), isPossible(entry, reader) else {
        return nil
      }
    }
    return true
  }
}
