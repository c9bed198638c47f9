internal import CZlib

/// Unpacks gzip, zlib or raw DEFLATE.
///
/// The module's only use of zlib's memory interface.
@safe final class Inflating {
  private let stream: UnsafeMutablePointer<z_stream>
  private var left: Int
  private var buffer = [UInt8](repeating: 0, count: 16 << 10)

  /// Fails if out of memory.
  ///
  /// - Parameter isRaw: whether there is no header.
  init?(limit: Int, isRaw: Bool = false) {
    left = limit
    unsafe stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // zlib: 32 more to detect the header, negative for raw.
    let window = isRaw ? -MAX_WBITS : 32 + MAX_WBITS
    let status = unsafe inflateInit2_(stream, window, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { return nil }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  /// Unpacks bytes; true if the stream continues.
  ///
  /// - Parameter visit: receives output, and returns whether to continue.
  func read(_ bytes: [UInt8], from start: Int, visit: ([UInt8]) -> Bool) -> Bool {
    var position = start
    while position < bytes.count, left > 0 {
      let (status, used, count) = step(bytes, from: position)
      position += used
      left -= count
      if count > 0, !visit(Array(buffer[0..<count])) { return false }
      guard status == Z_OK, used > 0 || count > 0 else { return false }
    }
    return left > 0
  }

  private func step(_ input: [UInt8], from position: Int) -> (status: Int32, used: Int, count: Int) {
    unsafe input.withUnsafeBufferPointer { source in
      unsafe buffer.withUnsafeMutableBufferPointer { target in
        // zlib only reads from there.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress?.advanced(by: position))
        unsafe stream.pointee.avail_in = UInt32(source.count - position)
        unsafe stream.pointee.next_out = target.baseAddress
        unsafe stream.pointee.avail_out = UInt32(target.count)
        let status = unsafe CZlib.inflate(stream, Z_NO_FLUSH)
        let used = unsafe source.count - position - Int(stream.pointee.avail_in)
        return unsafe (status, used, target.count - Int(stream.pointee.avail_out))
      }
    }
  }
}
