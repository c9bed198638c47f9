/// Bytes of known length with random access from any thread.
public protocol ByteSource: Sendable {
  /// The number of bytes at opening.
  var count: Int64 { get }

  /// Reads up to `length` bytes from `offset` into the start of `buffer` and returns their number.
  ///
  /// Short only at the end. `buffer` must have room for `length` bytes; its rest is untouched.
  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int
}

extension ByteSource {
  /// Returns the bytes of a range, clipped to the source.
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
  /// The bytes.
  public var bytes: [UInt8]

  /// Makes a source.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The number of bytes.
  public var count: Int64 { Int64(bytes.count) }

  /// Copies bytes; never fails.
  public func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let start = Int(offset)
    let end = min(bytes.count, start + min(length, bytes.count))
    buffer.replaceSubrange(0..<(end - start), with: bytes[start..<end])
    return end - start
  }
}

/// The SHA-256 of a file's content.
public struct FileDigest: Sendable, Hashable {
  /// The digest in 64 lower-case hexadecimal digits.
  public var hexadecimal: String

  /// Digests bytes in memory.
  public init(of bytes: [UInt8]) {
    self.init(SHA256.hash(data: bytes))
  }

  /// Digests a source in pieces of 1 MiB.
  ///
  /// - Parameter progress: called with the bytes done; an error cancels.
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

package struct RunningDigest: Sendable {
  private var hasher = SHA256()

  package init() {}

  package mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  package mutating func add(_ bytes: ArraySlice<UInt8>) { hasher.update(data: bytes) }

  var value: FileDigest { FileDigest(hasher.finalize()) }

  package var hexadecimal: String { value.hexadecimal }
}
