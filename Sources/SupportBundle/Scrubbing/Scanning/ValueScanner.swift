internal import Dispatch
public import Platform
public import SystemPackage

/// Looks for a store's original values in files: as they are, in UTF-16 of either order, in base64 and in hexadecimal digits,
/// and all of that in what a gzip file unpacks to.
///
/// It holds fingerprints of the values under a secret key; what it finds it gives by place and count alone. Numbers are
/// looked for as decimal digits, and in the form that SQLite's records give them where that has six bytes or more: three or
/// four bytes are found by chance in any file, so that those are compared field by field while a store is written.
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

    /// Adds what was found elsewhere.
    public mutating func add(_ other: Findings) {
      count += other.count
      bytes += other.bytes
      places += other.places.prefix(100 - places.count)
    }
  }

  let watched: WatchedValues

  private static let pieceLength = 1 << 18

  /// Looks through a file.
  ///
  /// - Throws: `ScrubbingError` where it cannot be read.
  public func scan(_ path: FilePath, in fileSystem: FileSystem = FileSystem()) throws(ScrubbingError) -> Findings {
    try scan(path, in: fileSystem, allowing: [:])
  }

  /// Looks through a file in which some values may be found at some places.
  func scan(
    _ path: FilePath, in fileSystem: FileSystem, allowing places: [Int64: UInt64]
  ) throws(ScrubbingError) -> Findings {
    let parts = [Part(), Part()]
    let file: ReadableFile
    do throws(FileError) {
      file = try fileSystem.open(path)
      if GzipReader.isGzip(try file.bytes(at: 0, length: 2)) { try scanPacked(file, path, &parts[0].findings) }
    } catch {
      throw ScrubbingError(error)
    }
    // Large files are looked through from the beginning and from the middle at once.
    let middle = file.count < 16 << 20 ? file.count : file.count / 2
    try Pair.run { () throws(ScrubbingError) in
      try scan(file, 0..<middle, path, places, parts[0])
    } _: { () throws(ScrubbingError) in
      try scan(file, middle..<file.count, path, places, parts[1])
    }
    parts[0].findings.add(parts[1].findings)
    return parts[0].findings
  }

  private final class Part {
    var findings = Findings()
  }

  /// Looks through bytes in memory.
  public func scan(_ bytes: [UInt8], named name: FilePath) -> Findings {
    var findings = Findings()
    var window = ScanWindow()
    window.append(bytes[...])
    search(window, in: name, &findings)
    return findings
  }

  /// Looks through a part of a file; what begins in it may end behind it.
  private func scan(
    _ file: ReadableFile, _ range: Range<Int64>, _ path: FilePath, _ places: [Int64: UInt64], _ part: Part
  ) throws(ScrubbingError) {
    do throws(FileError) {
      try scan(file, range, path, places, &part.findings)
    } catch {
      throw ScrubbingError(error)
    }
  }

  private func scan(
    _ file: ReadableFile, _ range: Range<Int64>, _ path: FilePath, _ places: [Int64: UInt64],
    _ findings: inout Findings
  ) throws(FileError) {
    var window = ScanWindow()
    var buffer = [UInt8](repeating: 0, count: Self.pieceLength)
    var offset = range.lowerBound
    let end = min(file.count, range.upperBound + Int64(WatchedValues.longestForm))
    while offset < end {
      let got = try file.read(at: offset, length: Int(min(Int64(buffer.count), end - offset)), into: &buffer)
      if got == 0 { return }
      offset += Int64(got)
      window.append(buffer[..<got])
      search(window, from: range.lowerBound, in: path, allowing: places, &findings)
    }
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
    var unpacked = ScanWindow()
    var buffer = [UInt8](repeating: 0, count: Self.pieceLength)
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
        // What cannot be unpacked was looked through as it is; other programs cannot unpack it either.
        return
      }
    }
  }

  private func search(
    _ window: ScanWindow, from base: Int64 = 0, in path: FilePath, allowing places: [Int64: UInt64] = [:],
    _ findings: inout Findings
  ) {
    findings.bytes += Int64(window.bytes.count - window.seen)
    let span = window.bytes.span
    var offset = max(0, window.seen - WatchedValues.longestForm)
    var block = ScanBlock()
    while let hit = watched.firstHit(span, from: offset, before: span.count, using: &block) {
      offset = hit.range.lowerBound + 1
      if watched.isCommon(hit) { continue }
      // What ends within the part that was seen before was found before.
      guard hit.range.upperBound > window.seen else { continue }
      let place = base + window.offset + Int64(hit.range.lowerBound)
      if places[place] == hit.key { continue }
      findings.count += 1
      guard findings.places.count < 100 else { continue }
      findings.places.append(
        Place(file: PathText(path), offset: place, length: hit.range.count))
    }
  }
}

/// Pieces of a stream, each with the end of the one before, so that nothing that lies across two is missed.
struct ScanWindow {
  private(set) var bytes: [UInt8] = []

  /// How many bytes at the beginning were there before.
  private(set) var seen = 0

  /// The offset of the first byte.
  private(set) var offset: Int64 = 0

  /// Goes on to the next piece.
  mutating func append(_ piece: ArraySlice<UInt8>) {
    let keep = min(bytes.count, 2 * WatchedValues.longestForm)
    offset += Int64(bytes.count - keep)
    bytes.removeFirst(bytes.count - keep)
    bytes.append(contentsOf: piece)
    seen = keep
  }
}

/// Does two pieces of work that have nothing in common, each on a thread of its own.
///
/// The only place of this module where the compiler is told so rather than that it finds out: neither may change what the
/// other one reads.
enum Pair {
  @safe private struct Work: @unchecked Sendable {
    let run: () throws(ScrubbingError) -> Void
  }

  /// Runs both, and throws the error of one that failed.
  static func run(
    _ first: () throws(ScrubbingError) -> Void, _ second: () throws(ScrubbingError) -> Void
  ) throws(ScrubbingError) {
    let failure = withoutActuallyEscaping(first) { first in
      withoutActuallyEscaping(second) { second in
        let works = [Work(run: first), Work(run: second)]
        let failure = Mutex<ScrubbingError?>(nil)
        DispatchQueue.concurrentPerform(iterations: works.count) { index in
          do throws(ScrubbingError) {
            try works[index].run()
          } catch {
            failure.withLock { $0 = $0 ?? error }
          }
        }
        return failure.withLock { $0 }
      }
    }
    if let failure { throw failure }
  }
}
