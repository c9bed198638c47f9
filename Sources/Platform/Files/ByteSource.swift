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

/// The first bytes of another source.
package struct SourcePrefix: ByteSource {
  let source: any ByteSource
  package let count: Int64

  /// - Parameter count: at most the source's.
  package init(source: any ByteSource, count: Int64) {
    self.source = source
    self.count = count
  }

  package func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    return try source.read(at: offset, length: Int(min(Int64(length), count - offset)), into: &buffer)
  }
}

/// The SHA-256 of a file's content.
public struct FileDigest: Sendable, Hashable {
  /// The digest in 64 lower-case hexadecimal digits.
  public var hexadecimal: String

  /// Digests bytes in memory.
  public init(of bytes: [UInt8]) { self.init(SHA256.hash(data: bytes)) }

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

/// The digest of a kept file: its SHA-256, or `sparse-` and one without its holes.
///
/// The latter is the SHA-256 of each piece of 64 KiB with a byte other than 0, after its number, and of the file's size;
/// both are 64-bit big-endian numbers.
package struct KeptFileDigest: Hashable {
  private static let prefix = "sparse-"
  private static let pieceLength = 65_536

  package let text: String

  /// - Parameter other: the digest to compare with; nil chooses by the length of the holes.
  package init(of file: ReadableFile, like other: String? = nil, progress: (Int64) throws -> Void = { _ in }) throws {
    guard other?.hasPrefix(Self.prefix) ?? file.hasLongHoles else {
      text = try FileDigest(of: file, progress: progress).hexadecimal
      return
    }
    var digest = RunningDigest()
    var piece = [UInt8](repeating: 0, count: Self.pieceLength)
    var number: Int64 = 0
    while let data = SystemCalls.nextData(in: file.descriptor, from: number * Int64(Self.pieceLength), to: file.count) {
      number = data.lowerBound / Int64(Self.pieceLength)
      while number * Int64(Self.pieceLength) < data.upperBound {
        let got = try file.read(at: number * Int64(Self.pieceLength), length: piece.count, into: &piece)
        if piece[..<got].contains(where: { $0 != 0 }) {
          digest.add(Self.bytes(number))
          digest.add(piece[..<got])
        }
        number += 1
        try progress(min(file.count, number * Int64(Self.pieceLength)))
      }
    }
    digest.add(Self.bytes(file.count))
    text = Self.prefix + digest.hexadecimal
  }

  private static func bytes(_ number: Int64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
  }
}

package struct RunningDigest: Sendable {
  private var hasher = SHA256()

  package init() {}

  package mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

  package mutating func add(_ bytes: ArraySlice<UInt8>) { hasher.update(data: bytes) }

  var value: FileDigest { FileDigest(hasher.finalize()) }

  package var hexadecimal: String { value.hexadecimal }
}
