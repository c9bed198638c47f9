internal import StoreFiles
internal import SystemPackage

/// The copying of a write-ahead log under salts of our own: SQLite draws them at random, and generated stores are to have
/// the same bytes each time.
///
/// The checksums of the header and of every frame are made anew (SQLite's file format, section 4.2).
struct LogCopy {
  private let fileSystem: FileSystem
  private let salts: [UInt8]

  init(_ fileSystem: FileSystem, salt: UInt64) {
    self.fileSystem = fileSystem
    salts = (0..<8).map { UInt8(truncatingIfNeeded: salt >> UInt64(8 * $0)) }
  }

  /// Copies a log that holds anything; memory is bounded by one page.
  func copy(_ source: FilePath, to target: FilePath) throws {
    // Where nothing was left to write, there is no log.
    guard let status = try fileSystem.status(of: source), status.size > 0 else { return }
    let original = try fileSystem.open(source)
    let copy = try fileSystem.create(target)
    var header = [UInt8](repeating: 0, count: 32)
    guard try original.read(at: 0, length: 32, into: &header) == 32 else {
      throw FileError(.other, operation: "copy the log", path: source, detail: "it has no header")
    }
    // The lowest bit of the magic number says in which order the checksums read their words.
    let isBigEndian = header[3] & 1 == 1
    let pageSize = Self.number(header[8..<12])
    guard (512...65536).contains(pageSize) else {
      throw FileError(.other, operation: "copy the log", path: source, detail: "its page size is not one of SQLite's")
    }
    header.replaceSubrange(16..<24, with: salts)
    var sums = Sums()
    sums.add(header[0..<24], isBigEndian: isBigEndian)
    header.replaceSubrange(24..<32, with: sums.bytes)
    try copy.write(header)
    var frame = [UInt8](repeating: 0, count: 24 + pageSize)
    var offset: Int64 = 32
    while try original.read(at: offset, length: frame.count, into: &frame) == frame.count {
      frame.replaceSubrange(8..<16, with: salts)
      sums.add(frame[0..<8], isBigEndian: isBigEndian)
      sums.add(frame[24...], isBigEndian: isBigEndian)
      frame.replaceSubrange(16..<24, with: sums.bytes)
      try copy.write(frame)
      offset += Int64(frame.count)
    }
    try copy.commit()
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  private struct Sums {
    var first: UInt32 = 0
    var second: UInt32 = 0

    var bytes: [UInt8] {
      [first, second].flatMap { sum in (0..<4).map { UInt8(truncatingIfNeeded: sum >> UInt32(24 - 8 * $0)) } }
    }

    mutating func add(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) {
      func word(_ index: Int) -> UInt32 {
        (0..<4).reduce(0) { sum, place in
          let byte = UInt32(bytes[index + place])
          return sum | byte << UInt32(isBigEndian ? 24 - 8 * place : 8 * place)
        }
      }
      var index = bytes.startIndex
      while index + 8 <= bytes.endIndex {
        first = first &+ word(index) &+ second
        second = second &+ word(index + 4) &+ first
        index += 8
      }
    }
  }
}
