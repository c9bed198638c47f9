internal import SQLiteFormat

/// The content found in the place of a database page.
enum PageContent: Hashable {
  case zeros

  case random

  case foreign(String)

  case torn

  /// A b-tree page after one bit flip.
  case flippedKind

  /// A b-tree page with zeroed cell pointers.
  case lostPointers

  case tree

  case other

  /// Classifies the bytes of a page.
  ///
  /// - Parameter start: the offset of a b-tree header: 100 on page 1, else 0.
  static func of(_ bytes: [UInt8], start: Int, usableSize: Int) -> PageContent {
    if PageSurvey.isZero(bytes.span) { return .zeros }
    if start == 0 || !bytes.starts(with: DatabaseHeader.magic), let words = signature(bytes) { return .foreign(words) }
    let kind = PageKind(rawValue: bytes[start])
    if let kind, PageSurvey.isPossible(bytes.span, kind, start, usableSize) {
      let count = bytes.span.uint16(at: start + 3) ?? 0
      let pointers = start + kind.headerLength
      if count > 1, (0..<count).allSatisfy({ bytes.span.uint16(at: pointers + 2 * $0) == 0 }) { return .lostPointers }
      return TornSectors.ranges(bytes.span, content: (pointers + 2 * count)..<usableSize).isEmpty ? .tree : .torn
    }
    if isRandom(bytes) { return .random }
    if isTorn(bytes) { return .torn }
    let isFlipped = (0..<8).contains { bit in
      var changed = bytes
      changed[start] ^= 1 << UInt8(bit)
      guard let kind = PageKind(rawValue: changed[start]) else { return false }
      return PageSurvey.isPossible(changed.span, kind, start, usableSize)
    }
    if isFlipped { return .flippedKind }
    switch FileKind(firstBytes: bytes) {
    case .markup, .propertyList: return .foreign("a web page or another document with markup")
    case .json: return .foreign("JSON")
    case .text, .script: return .foreign("text")
    case .database, .databaseOfVersion2, .writeAheadLog, .rollbackJournal, .empty, .zeros, .transactions,
      .berkeleyDatabase, .locateDatabase, .otherDatabase, .gzip, .zip,
      .archive, .binaryPropertyList, .picture, .media, .document, .program, .sealed, .encrypted, .other:
      return .other
    }
  }

  /// Whether some but not all 512-byte sectors are zeros.
  private static func isTorn(_ bytes: [UInt8]) -> Bool {
    let sectors = bytes.count / TornSectors.sector
    guard sectors > 1 else { return false }
    let first = bytes.span.extracting(0..<TornSectors.sector)
    return PageSurvey.isZero(first) && !PageSurvey.isZero(bytes.span.extracting((bytes.count / 2)..<bytes.count))
  }

  /// Signatures that no page begins with.
  private static func signature(_ bytes: [UInt8]) -> String? {
    let signatures: [([UInt8], String)] = [
      (DatabaseHeader.magic, "the beginning of another SQLite database"),
      ([0x37, 0x7f, 0x06, 0x82], "a SQLite write-ahead log"), ([0x37, 0x7f, 0x06, 0x83], "a SQLite write-ahead log"),
      (RollbackJournal.magic, "a SQLite rollback journal"), ([0x1f, 0x8b, 0x08], "a gzip file"),
      ([0x50, 0x4b, 0x03, 0x04], "a zip archive"), ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], "a PNG image"),
      ([0xff, 0xd8, 0xff], "a JPEG image"), (Array("%PDF-".utf8), "a PDF document"),
      (Array("bplist".utf8), "a property list"), ([0x7f, 0x45, 0x4c, 0x46], "a program"),
      ([0x28, 0xb5, 0x2f, 0xfd], "a zstd file"),
    ]
    return signatures.first { bytes.starts(with: $0.0) }?.1
  }

  /// Whether bytes are noise: a chi-square test with 255 degrees of freedom, where noise gives 255 ± 23.
  static func isRandom(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 512 else { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let expected = Double(bytes.count) / 256
    return counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected } < 400
  }
}
