import Platform
import SQLiteFormat

/// A database that starts after other bytes of its file.
struct EmbeddedDatabase: ByteSource {
  private let file: any ByteSource

  let offset: Int64
  let count: Int64

  private static let searchLength = Int64(256 << 20)

  private init(_ file: any ByteSource, from offset: Int64, count: Int64) {
    self.file = file
    self.offset = offset
    self.count = count
  }

  func read(at place: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    try file.read(at: offset + place, length: max(0, min(length, Int(clamping: count - place))), into: &buffer)
  }

  /// Finds a file's largest database past its start, unless it is of another format.
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
        // A header inside a found database is one of its values.
        guard offset >= end, let header = DatabaseHeader(Array(bytes[place...].prefix(DatabaseHeader.length))),
          header.hasUsualFractions, let size = header.pageSize
        else { continue }
        end = offset + Int64(header.pageCount) * Int64(size)
        if header.pageCount > best?.pages ?? 0 { best = (offset, header.pageCount, size) }
      }
    }
    guard let best, best.offset > 0 else { return nil }
    let before = EmbeddedDatabase(file, from: 0, count: best.offset)
    // At a page boundary after pages of the same size, it is a value of a database without a header.
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
