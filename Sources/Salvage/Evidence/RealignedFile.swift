internal import Platform

/// A file into which bytes were put, or from which some were taken, with each part at the place that it had before.
struct RealignedFile: ByteSource {
  /// Bytes that follow one another, up to the next part.
  struct Part {
    var place: Int64

    /// Where in the file they are.
    var offset: Int64
  }

  /// Why the bytes are not where they should be.
  enum Reason {
    /// Bytes are missing, or too many, within pages.
    case shifted

    /// A carriage return stands before each line feed.
    case lineEnds
  }

  let file: any ByteSource
  let reason: Reason

  /// In the order of their places; the first begins at 0.
  let parts: [Part]

  /// The places of bytes of which nothing tells whether they are right.
  let uncertain: [Range<Int64>]

  let count: Int64

  init(_ file: any ByteSource, _ reason: Reason, _ parts: [Part], uncertain: [Range<Int64>] = []) {
    self.file = file
    self.reason = reason
    self.parts = parts
    self.uncertain = uncertain
    count = file.count - (parts.last.map { $0.offset - $0.place } ?? 0)
  }

  /// Where in the file the byte of a place is.
  func offset(of place: Int64) -> Int64 {
    let part = parts[index(of: place)]
    return part.offset + place - part.place
  }

  private func index(of place: Int64) -> Int {
    var low = 0
    var high = parts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if parts[middle].place <= place { low = middle } else { high = middle }
    }
    return low
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
      if start < 0 || piece.count < Int(next - done) { return start < 0 ? target : target + piece.count }
      done = next
      index += 1
    }
    return Int(end - place)
  }
}

extension ByteSource {
  /// Where in the file on the disk the byte of a place is.
  func fileOffset(of place: Int64) -> Int64 { (self as? RealignedFile)?.offset(of: place) ?? place }
}
