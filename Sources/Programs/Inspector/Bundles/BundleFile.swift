import HTTPServer
import StoreCoordination

/// The bytes of a bundle, for a download.
struct BundleFile: RangeReadable {
  let file: ReadableFile

  var count: Int64 { file.count }

  func read(at offset: Int64, length: Int) throws -> [UInt8] { try file.bytes(at: offset, length: length) }
}
