import Cryptography

/// The hashes by which changed pages are found, and by which the pages of a chain are checked: the first 16 bytes of the
/// SHA-256 of each page.
///
/// The file begins with 16 bytes: `LAZPAGES`, the version (2) and the page size, little-endian, of 32 bits; then comes the hash
/// of each page, beginning with page 1.
package enum PageHash {
  /// The bytes of the file's header.
  static let headerLength = 16

  /// The bytes of one page's hash.
  static let length = 16

  /// The file's header.
  package static func header(pageSize: Int) -> [UInt8] {
    var bytes = Array("LAZPAGES".utf8) + [UInt8](repeating: 0, count: 8)
    GzipMember.put(2, at: 8, in: &bytes)
    GzipMember.put(UInt32(truncatingIfNeeded: pageSize), at: 12, in: &bytes)
    return bytes
  }

  /// The hashes of all pages of a block, one behind the other.
  package static func hashes(of block: [UInt8], pageSize: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(block.count / pageSize * length)
    for start in stride(from: 0, to: block.count - pageSize + 1, by: pageSize) {
      result += SHA256.hash(data: block[start..<(start + pageSize)]).prefix(length)
    }
    return result
  }
}
