import CZlib

/// zlib unpacking a stream of gzip members, behind a type of Swift; zlib's state must stay at one address.
@safe final class GzipStream {
  private let stream: UnsafeMutablePointer<z_stream>
  private var input: [UInt8] = []
  private var offset = 0

  /// Whether the last member was read to its end, with the checksum that it says.
  private(set) var isWhole = false

  /// Whether something is no gzip.
  private(set) var isBroken = false

  /// A stream; nil where memory is short.
  init?() {
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // 16 more than the window's size: gzip headers and trailers, and nothing else.
    guard
      unsafe inflateInit2_(stream, 16 + MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else {
      unsafe stream.deallocate()
      return nil
    }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Gives it the next packed bytes, once it has used up those it had.
  func feed(_ bytes: [UInt8]) {
    input = bytes
    offset = 0
  }

  /// The next unpacked bytes; nil where more packed ones are needed, or nothing more can come.
  func next(_ length: Int) -> [UInt8]? {
    while !isBroken {
      if isWhole {
        // Another member may follow; what else stands behind the last one, such as padding, is none of it.
        guard offset < input.count else { return nil }
        guard input[offset] == 0x1f else {
          offset = input.count
          return nil
        }
        guard unsafe inflateReset(stream) == Z_OK else {
          isBroken = true
          return nil
        }
        isWhole = false
      }
      var output = [UInt8](repeating: 0, count: length)
      var made = 0
      var status = Z_OK
      let available = input.count - offset
      let position = offset
      unsafe input.withUnsafeMutableBufferPointer { source in
        unsafe output.withUnsafeMutableBufferPointer { target in
          unsafe stream.pointee.next_in = source.baseAddress.map { unsafe $0 + position }
          unsafe stream.pointee.avail_in = UInt32(available)
          unsafe stream.pointee.next_out = target.baseAddress
          unsafe stream.pointee.avail_out = UInt32(target.count)
          unsafe status = inflate(stream, Z_NO_FLUSH)
          unsafe made = target.count - Int(stream.pointee.avail_out)
        }
      }
      unsafe offset = input.count - Int(stream.pointee.avail_in)
      if status == Z_STREAM_END {
        isWhole = true
      } else if status != Z_OK && status != Z_BUF_ERROR {
        isBroken = true
      }
      if made > 0 {
        output.removeLast(length - made)
        return output
      }
      // Nothing came and nothing is left of the input: it wants more.
      if !isWhole, offset >= input.count { return nil }
      if !isWhole, status == Z_BUF_ERROR { return nil }
    }
    return nil
  }
}
