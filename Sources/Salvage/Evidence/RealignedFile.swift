internal import Platform

/// A file with inserted or lost bytes, with each part at its original place.
struct RealignedFile: ByteSource {
  struct Part {
    var place: Int64

    /// The offset in the actual file; its end for removed pages.
    var offset: Int64
  }

  enum Reason {
    /// Bytes lost or inserted.
    case shifted

    /// Whole pages lost or inserted.
    case pages

    /// A carriage return before each line feed.
    case lineEnds
  }

  let file: any ByteSource
  let reason: Reason

  let parts: [Part]

  /// The place of removed pages.
  let hole: Range<Int64>?

  /// The places of possibly wrong bytes.
  let uncertain: [Range<Int64>]

  let count: Int64

  init(_ file: any ByteSource, _ reason: Reason, _ parts: [Part], uncertain: [Range<Int64>] = []) {
    self.file = file
    self.reason = reason
    self.parts = parts
    self.uncertain = uncertain
    hole = zip(parts, parts.dropFirst()).first { $0.0.offset >= file.count }.map { $0.0.place..<$0.1.place }
    count = file.count - (parts.last.map { $0.offset - $0.place } ?? 0)
  }

  func offset(of place: Int64) -> Int64 {
    let part = parts[index(of: place)]
    return part.offset + place - part.place
  }

  private func index(of place: Int64) -> Int {
    max(0, parts.partitioningIndex { $0.place > place } - 1)
  }

  func read(at place: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard place >= 0, place < count, length > 0 else { return 0 }
    let end = min(count, place + Int64(length))
    var index = index(of: place)
    var done = place
    while done < end {
      let next = index + 1 < parts.count ? min(end, parts[index + 1].place) : end
      let start = parts[index].offset + done - parts[index].place
      let piece = try file.bytes(at: max(0, start), length: Int(next - done))
      let target = Int(done - place)
      for byte in piece.indices { buffer[target + byte] = piece[byte] }
      if hole?.contains(done) == true {
        for byte in target..<Int(next - place) { buffer[byte] = 0 }
      } else if start < 0 || piece.count < Int(next - done) {
        return start < 0 ? target : target + piece.count
      }
      done = next
      index += 1
    }
    return Int(end - place)
  }
}

extension ByteSource {
  func fileOffset(of place: Int64) -> Int64 { (self as? RealignedFile)?.offset(of: place) ?? place }
}
