import CZlib
internal import StoreFiles

/// zlib, behind types of Swift; the only place of this module that hands memory to it.
///
/// It is a class because zlib remembers where its state lies.
@safe
final class GzipReader {
  private var stream = unsafe z_stream()

  init?() {
    // 32 more than the window's size: gzip or zlib, told by the header.
    guard
      unsafe inflateInit2_(&stream, 32 + MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
  }

  deinit {
    unsafe inflateEnd(&stream)
  }

  /// Unpacks a piece, handing over what comes out of it; false where it is no packed data or `body` says so.
  ///
  /// - Parameter limit: how many bytes may come out of it at most.
  func unpack(_ input: [UInt8], limit: Int, _ body: ([UInt8]) -> Bool) -> Bool {
    var input = input
    var output = [UInt8](repeating: 0, count: 1 << 16)
    var done = 0
    var isGood = true
    unsafe input.withUnsafeMutableBufferPointer { source in
      unsafe stream.next_in = source.baseAddress
      unsafe stream.avail_in = UInt32(source.count)
      while true {
        let (status, got) = unsafe output.withUnsafeMutableBufferPointer { target in
          unsafe stream.next_out = target.baseAddress
          unsafe stream.avail_out = UInt32(target.count)
          let status = unsafe inflate(&stream, Z_NO_FLUSH)
          return unsafe (status, target.count - Int(stream.avail_out))
        }
        done += got
        if got > 0, !body(Array(output[..<got])) || done > limit {
          isGood = false
          return
        }
        if status == Z_STREAM_END {
          // Members may follow each other.
          guard unsafe stream.avail_in > 0 else { return }
          guard unsafe inflateReset(&stream) == Z_OK else {
            isGood = false
            return
          }
          continue
        }
        guard status == Z_OK || status == Z_BUF_ERROR else {
          isGood = false
          return
        }
        if got == 0 { return }
      }
    }
    return isGood
  }
}
