/// The SHA-256 of a file's content.
public struct FileDigest: Sendable, Hashable {
  /// The digest in 64 lower-case hexadecimal digits.
  public var hexadecimal: String

  /// The digest of bytes in memory.
  public init(of bytes: [UInt8]) {
    self.init(SHA256.hash(data: bytes))
  }

  /// The digest of everything a source holds, read in pieces of 1 MiB.
  ///
  /// - Parameter progress: called with the number of bytes done after each piece; what it throws ends the reading.
  public init(of source: some ByteSource, progress: (Int64) throws -> Void = { _ in }) throws {
    var digest = RunningDigest()
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var done: Int64 = 0
    while done < source.count {
      let got = try source.read(at: done, length: buffer.count, into: &buffer)
      if got == 0 { break }
      digest.add(buffer[..<got])
      done += Int64(got)
      try progress(done)
    }
    self = digest.value
  }

  init(_ digest: SHA256.Digest) { hexadecimal = digest.hexadecimal }
}

/// A SHA-256 of bytes that come one after the other.
package struct RunningDigest: Sendable {
  private var hasher = SHA256()

  /// The digest of nothing yet.
  package init() {}

  /// Adds bytes.
  package mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  /// Adds bytes.
  package mutating func add(_ bytes: ArraySlice<UInt8>) { hasher.update(data: bytes) }

  /// The digest of everything so far.
  package var value: FileDigest { FileDigest(hasher.finalize()) }

  /// The same in hexadecimal digits.
  package var hexadecimal: String { value.hexadecimal }
}

/// Bytes of known length that can be read at any offset, any number of times, from any thread.
public protocol ByteSource: Sendable {
  /// The number of bytes when the source was opened.
  var count: Int64 { get }

  /// Reads up to `length` bytes from `offset` into the first places of `buffer`, and returns how many there were.
  ///
  /// Fewer than `length` bytes are read only at the end of the source; none behind it. `buffer` must have room for
  /// `length` bytes; what lies behind the bytes read stays as it was.
  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int
}

extension ByteSource {
  /// The bytes of a range, cut off at the end of the source.
  public func bytes(at offset: Int64, length: Int) throws(FileError) -> [UInt8] {
    let available = max(0, min(Int64(length), count - offset))
    var buffer = [UInt8](repeating: 0, count: Int(available))
    let got = try read(at: offset, length: buffer.count, into: &buffer)
    buffer.removeLast(buffer.count - got)
    return buffer
  }
}

/// A byte source in memory.
public struct MemoryBytes: ByteSource {
  /// All of the bytes.
  public var bytes: [UInt8]

  /// Takes the bytes as they are.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The number of bytes.
  public var count: Int64 { Int64(bytes.count) }

  /// Copies bytes out of memory; never fails.
  public func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let start = Int(offset)
    let end = min(bytes.count, start + min(length, bytes.count))
    buffer.replaceSubrange(0..<(end - start), with: bytes[start..<end])
    return end - start
  }
}
