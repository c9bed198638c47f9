import Platform
import SQLiteFormat

/// A database that begins behind other bytes of its file.
struct EmbeddedDatabase: ByteSource {
  private let file: any ByteSource

  let offset: Int64
  let count: Int64

  /// How much of a file is searched, in bytes.
  private static let searchLength = Int64(256 << 20)

  private init(_ file: any ByteSource, from offset: Int64, count: Int64) {
    self.file = file
    self.offset = offset
    self.count = count
  }

  func read(at place: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    try file.read(at: offset + place, length: max(0, min(length, Int(clamping: count - place))), into: &buffer)
  }

  /// Looks for the largest database of a file that begins with none, and whose bytes are no other format's; nil for none.
  init?(in file: any ByteSource) throws(FileError) {
    let head = try file.bytes(at: 0, length: FileKind.sampleLength)
    let kind = FileKind(firstBytes: head)
    guard kind != .database, !kind.isForeign, kind != .writeAheadLog, kind != .rollbackJournal,
      DatabaseHeader(head)?.hasUsualFractions != true
    else { return nil }
    var best: (offset: Int64, pages: UInt32, size: Int)?
    var end: Int64 = 0
    for start in stride(from: Int64(0), to: min(file.count, Self.searchLength), by: 1 << 20) {
      let bytes = try file.bytes(at: start, length: 1 << 20 + DatabaseHeader.length)
      for place in Self.headers(in: bytes) {
        let offset = start + Int64(place)
        // What lies within a database that was found is a value of it.
        guard offset >= end, let header = DatabaseHeader(Array(bytes[place...].prefix(DatabaseHeader.length))),
          header.hasUsualFractions, let size = header.pageSize
        else { continue }
        end = offset + Int64(header.pageCount) * Int64(size)
        if header.pageCount > best?.pages ?? 0 { best = (offset, header.pageCount, size) }
      }
    }
    guard let best, best.offset > 0 else { return nil }
    let before = EmbeddedDatabase(file, from: 0, count: best.offset)
    // Behind pages of the same size, where a page begins, it is a value of a database whose own header is lost.
    if best.offset % Int64(best.size) == 0, try HeaderlessDatabase(before, header: nil)?.pageSize == best.size {
      return nil
    }
    self.init(file, from: best.offset, count: file.count - best.offset)
  }

  private static func headers(in bytes: [UInt8]) -> [Int] {
    let magic = DatabaseHeader.magic
    var places: [Int] = []
    var index = 0
    while index + DatabaseHeader.length <= bytes.count {
      if bytes[index] == magic[0], bytes[index...].starts(with: magic) { places.append(index) }
      index += 1
    }
    return places
  }
}
