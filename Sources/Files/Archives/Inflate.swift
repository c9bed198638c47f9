internal import CZlib

/// zlib, behind types of Swift.
package enum Inflate {
  /// Unpacks one gzip member, which must fill the bytes and unpack to exactly `count` bytes; nil where it does not, or where
  /// its checksum is wrong.
  package static func unpack(member bytes: [UInt8], count: Int) -> [UInt8]? {
    guard bytes.count < Int(UInt32.max), count >= 0, count < Int(Int32.max) else { return nil }
    var stream = unsafe z_stream()
    // 16 more than the window's size: a gzip header and trailer, and nothing else.
    guard
      unsafe inflateInit2_(&stream, 16 + MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { unsafe inflateEnd(&stream) }
    var input = bytes
    // One byte more, so that a member that holds too much is seen.
    var output = [UInt8](repeating: 0, count: count + 1)
    let isWhole = unsafe input.withUnsafeMutableBufferPointer { source in
      unsafe output.withUnsafeMutableBufferPointer { target in
        unsafe stream.next_in = source.baseAddress
        unsafe stream.avail_in = UInt32(source.count)
        unsafe stream.next_out = target.baseAddress
        unsafe stream.avail_out = UInt32(target.count)
        let status = unsafe inflate(&stream, Z_FINISH)
        return unsafe status == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 1
      }
    }
    guard isWhole else { return nil }
    output.removeLast()
    return output
  }
}
