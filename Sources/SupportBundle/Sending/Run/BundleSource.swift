internal import Platform
internal import SystemPackage

/// A bundle read and hashed in parts: if changed since the preview, the last part is not sent.
struct BundleSource {
  private static let piece = 1 << 20

  let file: ReadableFile
  private var digest = RunningDigest()
  private var position: Int64 = 0
  /// The digest before the last part, which may be sent again.
  private var before = (digest: RunningDigest(), position: Int64(0))

  init(_ path: FilePath, in fileSystem: FileSystem) throws {
    file = try fileSystem.open(path)
  }

  /// - Parameter isStopped: polled while hashing the bytes before the offset.
  mutating func part(at offset: Int64, count: Int, isStopped: () -> Bool) throws -> [UInt8] {
    try advance(to: offset, isStopped)
    before = (digest, position)
    let bytes = try file.bytes(at: offset, length: count)
    digest.add(bytes)
    position += Int64(bytes.count)
    return bytes
  }

  /// The checksum, once exactly the whole file was read.
  var sum: String? {
    guard position == file.count else { return nil }
    return digest.hexadecimal
  }

  mutating func advance(to offset: Int64, _ isStopped: () -> Bool) throws {
    if offset < position {
      if offset >= before.position { (digest, position) = before } else { (digest, position) = (RunningDigest(), 0) }
    }
    var buffer = [UInt8](repeating: 0, count: Self.piece)
    while position < offset {
      let got = try file.read(at: position, length: Int(min(Int64(Self.piece), offset - position)), into: &buffer)
      guard got > 0 else { throw FileError(.changed, operation: "read the bundle", path: file.path) }
      digest.add(buffer[..<got])
      position += Int64(got)
      if isStopped() { throw SendingError.cancelled(file.path) }
    }
  }
}
