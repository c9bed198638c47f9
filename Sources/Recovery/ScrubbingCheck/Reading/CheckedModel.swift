/// The app's model as a store carries it, by whose bytes it is known wherever damage put its pages.
struct CheckedModel: Sendable {
  let bytes: [UInt8]

  /// Where the piece of each page behind that of the row begins, by the piece's first eight bytes.
  private let pieces: [UInt64: Int]

  private let length: Int

  /// The longest model, and the most that one is unpacked to, in bytes.
  private static let longest = 16 << 20
  private static let mostUnpacked = 64 << 20

  /// A model; nil where bytes do not unpack to the archive of one.
  init?(_ bytes: [UInt8], _ format: PageFormat) {
    guard bytes.count >= 8, bytes.count <= Self.longest, Self.isArchive(bytes) else { return nil }
    self.bytes = bytes
    length = format.usableSize - 4
    // The row has no other column: its header are its own length and one serial type.
    let type = 12 + 2 * bytes.count
    let header = type < 1 << 14 ? 3 : type < 1 << 21 ? 4 : 5
    let local = format.localLength(of: header + bytes.count, isTableLeaf: true)
    var pieces: [UInt64: Int] = [:]
    for start in stride(from: local - header, to: bytes.count - 7, by: length) {
      pieces[ValueFingerprints.word(bytes.span, start)] = start
    }
    self.pieces = pieces
  }

  /// Whether bytes are packed by DEFLATE, and are a keyed archive with a model in it.
  private static func isArchive(_ bytes: [UInt8]) -> Bool {
    guard let stream = Inflating(limit: mostUnpacked, isRaw: true) else { return false }
    var archive: [UInt8] = []
    _ = stream.read(bytes, from: 0) { piece in
      archive += piece
      return true
    }
    guard archive.starts(with: "bplist00".utf8) else { return false }
    var wanted = ["NSKeyedArchiver", "NSManagedObjectModel", "NSEntityDescription"].map { Array($0.utf8) }
    for index in archive.indices where archive[index] == 0x4e {
      wanted.removeAll { archive[index...].starts(with: $0) }
      if wanted.isEmpty { return true }
    }
    return false
  }

  /// Whether a field of a record is the model, as far as it is on the page.
  func begins(_ field: CheckedPage.Field, _ page: Span<UInt8>) -> Bool {
    field.place == 0 && field.type == Int64(12 + 2 * bytes.count) && isSame(field.range, as: 0, page)
  }

  /// The bytes of an overflow page that are a piece of the model in the original and in the result; nil where they are none.
  func piece(_ original: Span<UInt8>, _ result: Span<UInt8>) -> Range<Int>? {
    guard original.count >= 12, result.count >= original.count,
      let start = pieces[ValueFingerprints.word(original, 4)]
    else { return nil }
    let range = 4..<(4 + min(length, bytes.count - start))
    return isSame(range, as: start, original) && isSame(range, as: start, result) ? range : nil
  }

  private func isSame(_ range: Range<Int>, as start: Int, _ page: Span<UInt8>) -> Bool {
    guard range.upperBound <= page.count, start + range.count <= bytes.count else { return false }
    for (place, index) in range.enumerated() where page[index] != bytes[start + place] { return false }
    return true
  }
}
