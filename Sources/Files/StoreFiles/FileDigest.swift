import Cryptography

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
