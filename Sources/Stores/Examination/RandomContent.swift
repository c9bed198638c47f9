import SQLiteFormat
import StoreFiles

/// Whether a file holds nothing but bytes without a pattern, as encryption makes them.
enum RandomContent {
  /// The bytes of a piece, enough for the values to be counted.
  private static let pieceLength = 4096

  private static let pieceLimit: Int64 = 64

  /// Whether every piece looked at, spread evenly from an offset to the end of the file, looks random.
  ///
  /// A single piece with a pattern, such as zeros, is enough for the answer no, and so are fewer than 1024 bytes.
  static func fills(_ file: some ByteSource, from start: Int64) throws(FileError) -> Bool {
    let last = max(start, file.count - Int64(pieceLength))
    let count = min(pieceLimit, (file.count - start + Int64(pieceLength) - 1) / Int64(pieceLength))
    guard count > 0 else { return false }
    for index in 0..<count {
      let offset = count == 1 ? start : start + (last - start) / (count - 1) * index
      guard FileKind.looksRandom(try file.bytes(at: offset, length: pieceLength)) else { return false }
    }
    return true
  }
}
