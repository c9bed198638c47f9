internal import StoreFiles

/// The first bytes of a file, as if there were no others.
struct FileBeginning: ByteSource {
  let file: ReadableFile
  let count: Int64

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count else { return 0 }
    return try file.read(at: offset, length: Int(min(Int64(length), count - offset)), into: &buffer)
  }
}
