internal import Archives
public import StoreFiles
public import SystemPackage

/// Looks for a store's original values in files: raw, in UTF-16, and in what is packed with gzip.
///
/// It holds fingerprints under a secret key and none of the values; what it finds it gives by place and count alone.
public struct ValueScanner: Sendable {
  /// A place where an original value was found.
  public struct Place: Sendable, Hashable, Codable {
    /// The file.
    public var file: PathText

    /// The offset of its first byte: in the file, or in what it unpacks to.
    public var offset: Int64

    /// The bytes of it that were compared.
    public var length: Int
  }

  /// What was found.
  public struct Findings: Sendable, Hashable, Codable {
    /// How many places there are in all.
    public var count = 0

    /// The first hundred.
    public var places: [Place] = []

    /// The bytes that were looked through, unpacked ones included.
    public var bytes: Int64 = 0

    /// Nothing yet.
    public init() {}

    /// Whether nothing was found.
    public var isEmpty: Bool { count == 0 }
  }

  let watched: WatchedValues

  /// Looks through a file.
  ///
  /// - Throws: `ScrubbingError` where it cannot be read.
  public func scan(_ path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(ScrubbingError) -> Findings {
    var findings = Findings()
    do throws(FileError) {
      let file = try fileSystem.open(path)
      let start = try file.bytes(at: 0, length: 2)
      try pass(file) { piece in
        search(piece, in: path, &findings)
        return true
      }
      if GzipReader.isGzip(start) { try scanPacked(file, path, &findings) }
    } catch {
      throw ScrubbingError(error)
    }
    return findings
  }

  /// Looks through what a file unpacks to, as far as it can be unpacked.
  private func scanPacked(_ file: ReadableFile, _ path: FilePath, _ findings: inout Findings) throws(FileError) {
    // Its size is the file's own affair, as nothing is kept; DEFLATE itself can do no more than 1,032 to 1.
    let limits = UnpackingLimits(bytes: .max, ratio: 1100, entries: 1)
    var reader: GzipReader
    do throws(ArchiveError) {
      reader = try GzipReader(limits: limits, ignoringRest: true)
    } catch {
      throw FileError(.other, operation: "unpack", path: path, detail: error.detail)
    }
    var unpacked = Window()
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    var offset: Int64 = 0
    while offset < file.count {
      let got = try file.read(at: offset, length: buffer.count, into: &buffer)
      if got == 0 { return }
      offset += Int64(got)
      do {
        try reader.read(Array(buffer[..<got])) { bytes in
          unpacked.append(bytes)
          search(unpacked, in: path, &findings)
        }
      } catch {
        // What cannot be unpacked was looked through as it is; nobody else can unpack it either.
        return
      }
    }
  }

  /// Looks through bytes in memory.
  public func scan(_ bytes: [UInt8], named name: FilePath) -> Findings {
    var findings = Findings()
    var window = Window()
    window.append(bytes[...])
    search(window, in: name, &findings)
    return findings
  }

  /// Pieces of a stream, each with the end of the one before.
  private struct Window {
    var bytes: [UInt8] = []

    /// How many bytes at the beginning were there before.
    var seen = 0

    /// The offset of the first byte.
    var offset: Int64 = 0

    mutating func append(_ piece: ArraySlice<UInt8>) {
      let keep = min(bytes.count, 2 * WatchedValues.longest)
      offset += Int64(bytes.count - keep)
      bytes = Array(bytes.suffix(keep)) + piece
      seen = keep
    }
  }

  private func pass(_ file: ReadableFile, _ body: (Window) -> Bool) throws(FileError) {
    var window = Window()
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    var offset: Int64 = 0
    while offset < file.count {
      let got = try file.read(at: offset, length: buffer.count, into: &buffer)
      if got == 0 { return }
      offset += Int64(got)
      window.append(buffer[..<got])
      if !body(window) { return }
    }
  }

  private func search(_ window: Window, in path: FilePath, _ findings: inout Findings) {
    let span = window.bytes.span
    findings.bytes += Int64(window.bytes.count - window.seen)
    var offset = 0
    while let hit = watched.firstHit(span, from: offset, before: span.count) {
      offset = hit.lowerBound + 1
      // What ends within the part that was seen before was found before.
      if hit.upperBound > window.seen { note(hit, window, path, &findings) }
    }
    for squeezed in Self.narrowed(span) {
      var offset = 0
      while let hit = watched.firstHit(squeezed.bytes.span, from: offset, before: squeezed.bytes.count) {
        offset = hit.lowerBound + 1
        let range = (squeezed.start + 2 * hit.lowerBound)..<(squeezed.start + 2 * hit.upperBound)
        if range.upperBound > window.seen { note(range, window, path, &findings) }
      }
    }
  }

  private func note(_ hit: Range<Int>, _ window: Window, _ path: FilePath, _ findings: inout Findings) {
    findings.count += 1
    guard findings.places.count < 100 else { return }
    findings.places.append(
      Place(file: PathText(path), offset: window.offset + Int64(hit.lowerBound), length: hit.count))
  }

  /// Runs of bytes with a zero behind or before each, without the zeros: ASCII in UTF-16 of either order.
  private static func narrowed(_ bytes: Span<UInt8>) -> [(start: Int, bytes: [UInt8])] {
    var runs: [(start: Int, bytes: [UInt8])] = []
    var index = 0
    let end = bytes.count &- 7
    while index < end {
      guard bytes[index &+ 1] == 0, bytes[index &+ 3] == 0, bytes[index] != 0, bytes[index &+ 2] != 0,
        bytes[index &+ 4] != 0, bytes[index &+ 6] != 0
      else {
        index &+= 1
        continue
      }
      var run: [UInt8] = []
      var place = index
      while place < bytes.count, bytes[place] != 0, place &+ 1 >= bytes.count || bytes[place &+ 1] == 0 {
        run.append(bytes[place])
        place &+= 2
      }
      if run.count >= 4 { runs.append((index, run)) }
      index = max(index &+ 1, place &- 1)
    }
    return runs
  }
}
