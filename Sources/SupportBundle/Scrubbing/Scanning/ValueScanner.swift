internal import Dispatch
public import Platform
public import SystemPackage

/// Searches files for a store's original values: plain, in UTF-16 of either order, base64 and hexadecimal, also within
/// gzip files.
///
/// It holds keyed fingerprints and reports only places and counts. Numbers are sought as decimal digits, and in record
/// form if that has six bytes or more: three or four bytes match by chance in any file, so they are compared field by
/// field during writing.
public struct ValueScanner: Sendable {
  /// The place of an original value.
  public struct Place: Sendable, Hashable, Codable {
    /// The file.
    public var file: PathText

    /// The offset in the file or its unpacked content.
    public var offset: Int64

    /// The length of the compared bytes.
    public var length: Int
  }

  /// The result of a scan.
  public struct Findings: Sendable, Hashable, Codable {
    /// The number of places.
    public var count = 0

    /// The first hundred places.
    public var places: [Place] = []

    /// The scanned bytes, including unpacked ones.
    public var bytes: Int64 = 0

    /// Creates an empty result.
    public init() {}

    /// Whether the scan found no value.
    public var isEmpty: Bool { count == 0 }

    /// Adds other findings.
    public mutating func add(_ other: Findings) {
      count += other.count
      bytes += other.bytes
      places += other.places.prefix(100 - places.count)
    }
  }

  let watched: WatchedValues

  private static let pieceLength = 1 << 18

  /// Scans a file.
  ///
  /// - Throws: `FileError` if unreadable.
  public func scan(_ path: FilePath, in fileSystem: FileSystem = FileSystem()) throws -> Findings {
    let parts = [Part(), Part()]
    let file = try fileSystem.open(path)
    if GzipReader.isGzip(try file.bytes(at: 0, length: 2)) { try scanPacked(file, path, &parts[0].findings) }
    let middle = file.count < 16 << 20 ? file.count : file.count / 2
    try Pair.run(
      { try scan(file, 0..<middle, path, &parts[0].findings) },
      { try scan(file, middle..<file.count, path, &parts[1].findings) })
    parts[0].findings.add(parts[1].findings)
    return parts[0].findings
  }

  private final class Part { var findings = Findings() }

  /// Scans bytes in memory.
  public func scan(_ bytes: [UInt8], named name: FilePath) -> Findings {
    var findings = Findings()
    var window = ScanWindow()
    window.append(bytes[...])
    search(window, in: name, &findings)
    return findings
  }

  /// Scans part of a file; matches may end after it.
  private func scan(
    _ file: ReadableFile, _ range: Range<Int64>, _ path: FilePath, _ findings: inout Findings
  ) throws(FileError) {
    var window = ScanWindow()
    var buffer = [UInt8](repeating: 0, count: Self.pieceLength)
    let end = min(file.count, range.upperBound + Int64(WatchedValues.longestForm))
    for offset in stride(from: range.lowerBound, to: end, by: buffer.count) {
      let got = try file.read(at: offset, length: Int(min(Int64(buffer.count), end - offset)), into: &buffer)
      if got == 0 { return }
      window.append(buffer[..<got])
      search(window, from: range.lowerBound, in: path, &findings)
    }
  }

  private func scanPacked(_ file: ReadableFile, _ path: FilePath, _ findings: inout Findings) throws(FileError) {
    // No output is kept; DEFLATE reaches at most 1,032 to 1.
    let limits = UnpackingLimits(bytes: .max, ratio: 1100, entries: 1)
    var reader: GzipReader
    do throws(FileError) {
      reader = try GzipReader(limits: limits, ignoringRest: true)
    } catch {
      throw FileError(.other, operation: "unpack", path: path, detail: error.detail)
    }
    var unpacked = ScanWindow()
    var buffer = [UInt8](repeating: 0, count: Self.pieceLength)
    for offset in stride(from: 0, to: file.count, by: buffer.count) {
      let got = try file.read(at: offset, length: buffer.count, into: &buffer)
      if got == 0 { return }
      do {
        try reader.read(Array(buffer[..<got])) { bytes in
          unpacked.append(bytes)
          search(unpacked, in: path, &findings)
        }
      } catch {
        // The packed bytes were scanned.
        return
      }
    }
  }

  private func search(_ window: ScanWindow, from base: Int64 = 0, in path: FilePath, _ findings: inout Findings) {
    findings.bytes += Int64(window.bytes.count - window.seen)
    let span = window.bytes.span
    var offset = max(0, window.seen - WatchedValues.longestForm)
    var block = ScanBlock()
    while let hit = watched.firstHit(span, from: offset, before: span.count, using: &block) {
      offset = hit.range.lowerBound + 1
      // Found in the previous part.
      guard hit.range.upperBound > window.seen else { continue }
      findings.count += 1
      guard findings.places.count < 100 else { continue }
      let place = base + window.offset + Int64(hit.range.lowerBound)
      findings.places.append(Place(file: PathText(path), offset: place, length: hit.range.count))
    }
  }
}

/// Pieces of a stream that overlap, to find matches across both.
struct ScanWindow {
  private(set) var bytes: [UInt8] = []

  /// The bytes repeated from the previous piece.
  private(set) var seen = 0

  private(set) var offset: Int64 = 0

  mutating func append(_ piece: ArraySlice<UInt8>) {
    let keep = min(bytes.count, 2 * WatchedValues.longestForm)
    offset += Int64(bytes.count - keep)
    bytes.removeFirst(bytes.count - keep)
    bytes.append(contentsOf: piece)
    seen = keep
  }
}

/// Runs two independent tasks concurrently.
///
/// The module's only unchecked concurrency: neither may change data that the other reads.
enum Pair {
  @safe private struct Work: @unchecked Sendable {
    let run: () throws -> Void
  }

  static func run(_ first: () throws -> Void, _ second: () throws -> Void) throws {
    let failure = withoutActuallyEscaping(first) { first in
      withoutActuallyEscaping(second) { second in
        let works = [Work(run: first), Work(run: second)]
        let failure = Mutex<(any Error)?>(nil)
        DispatchQueue.concurrentPerform(iterations: works.count) { index in
          do {
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
