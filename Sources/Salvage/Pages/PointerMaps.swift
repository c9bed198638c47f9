internal import SQLiteFormat

/// An auto-vacuum database's pointer maps, which give each page's parent (SQLite file format, "Pointer Map or Ptrmap
/// Pages").
struct PointerMaps {
  private let reader: PageReader

  /// Whether they exist, by page 2 or, if inconclusive, by the header.
  let isThere: Bool

  private static let sample: UInt32 = 200

  init(_ reader: PageReader) throws {
    self.reader = reader
    isThere = try Self.isMap(reader) ?? reader.layout.header.map { $0.hasMagic && $0.isAutoVacuum } ?? false
  }

  /// The entry for a page; nil without a map or if impossible.
  func entry(for page: UInt32) throws -> PointerMapEntry? {
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

  /// Whether page 2 has possible entries for the following pages; nil if damaged.
  private static func isMap(_ reader: PageReader) throws -> Bool? {
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
