import Archives

/// The hashes by which changed pages are found: the CRC-32 and the Adler-32 of each page, 8 bytes.
///
/// They only choose what a delta holds; the SHA-256 of the whole database and of its blocks is what proves it.
///
/// The file begins with 16 bytes: `LAZPAGES`, the version (1) and the page size; then come the two hashes of each page,
/// beginning with page 1. All numbers are little-endian, of 32 bits.
package enum PageHash {
  /// The bytes of the file's header.
  static let headerLength = 16

  /// The bytes of one page's hashes.
  static let length = 8

  /// The file's header.
  package static func header(pageSize: Int) -> [UInt8] {
    var bytes = Array("LAZPAGES".utf8) + [UInt8](repeating: 0, count: 8)
    GzipMember.put(1, at: 8, in: &bytes)
    GzipMember.put(UInt32(truncatingIfNeeded: pageSize), at: 12, in: &bytes)
    return bytes
  }

  /// The hashes of all pages of a block, one behind the other.
  package static func hashes(of block: [UInt8], pageSize: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: block.count / pageSize * length)
    var offset = 0
    for start in stride(from: 0, to: block.count - pageSize + 1, by: pageSize) {
      let page = block[start..<(start + pageSize)]
      GzipMember.put(Deflate.crc32(page), at: offset, in: &result)
      GzipMember.put(Deflate.adler32(page), at: offset + 4, in: &result)
      offset += length
    }
    return result
  }
}
