import StoreFiles

/// The first bytes of another source, as many as count.
struct SourcePrefix: ByteSource {
  let source: any ByteSource
  let count: Int64

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    return try source.read(at: offset, length: Int(min(Int64(length), count - offset)), into: &buffer)
  }
}
