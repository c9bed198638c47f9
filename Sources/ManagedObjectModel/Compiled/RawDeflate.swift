internal import CZlib

/// DEFLATE without header, as in model caches.
///
/// It alone passes memory to C in this module.
package enum RawDeflate {
  private static let chunk = 64 << 10

  /// Returns nil for damaged or truncated streams, or beyond `limit` bytes.
  package static func unpack(_ bytes: [UInt8], limit: Int) -> [UInt8]? {
    var stream = unsafe z_stream()
    guard
      unsafe inflateInit2_(&stream, -MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { unsafe inflateEnd(&stream) }
    return unsafe run(&stream, over: bytes, limit: limit) { unsafe inflate($0, Z_NO_FLUSH) }
  }

  /// Packs bytes; nil if out of memory.
  ///
  /// - Parameter level: from 1 to 9.
  package static func pack(_ bytes: [UInt8], level: Int = 9) -> [UInt8]? {
    var stream = unsafe z_stream()
    guard
      unsafe deflateInit2_(
        &stream, Int32(clamping: level), Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { unsafe deflateEnd(&stream) }
    return unsafe run(&stream, over: bytes, limit: .max) { unsafe deflate($0, Z_FINISH) }
  }

  /// Runs zlib; nil on failure or beyond `limit` bytes.
  private static func run(
    _ stream: inout z_stream, over bytes: [UInt8], limit: Int, step: (UnsafeMutablePointer<z_stream>) -> Int32
  ) -> [UInt8]? {
    var input = bytes
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: chunk)
    let isWhole = unsafe input.withUnsafeMutableBufferPointer { source in
      unsafe stream.next_in = source.baseAddress
      unsafe stream.avail_in = UInt32(clamping: source.count)
      while true {
        let (status, made) = unsafe buffer.withUnsafeMutableBufferPointer { target in
          unsafe stream.next_out = target.baseAddress
          unsafe stream.avail_out = UInt32(clamping: target.count)
          let status = unsafe step(&stream)
          return unsafe (status, target.count - Int(stream.avail_out))
        }
        guard output.count + made <= limit else { return false }
        output += buffer[..<made]
        if status == Z_STREAM_END { return true }
        // Without progress the stream is truncated.
        guard status == Z_OK, made > 0 else { return false }
      }
    }
    return isWhole ? output : nil
  }
}
