internal import CZlib

/// What ``Deflate`` does, with zlib alone: for systems that have no libdeflate, and for apps that do without it.
///
/// Two to three times as slow.
package final class ZlibDeflate {
  private let level: Int32

  /// The levels by which blocks are packed in turn so that they come out as large as at one of gzip's levels: that one.
  package static func levels(likeGzip level: Int) -> [Int] { [level] }

  /// A compressor of a level from 1 to 12; those above 9 are zlib's best.
  package init?(level: Int) { self.level = Int32(min(max(level, 1), 9)) }

  /// Packs bytes as one DEFLATE stream between room for a header and a trailer, which are left zero.
  ///
  /// Empty where it was not possible.
  package func pack(_ bytes: [UInt8], headerLength: Int, trailerLength: Int) -> [UInt8] {
    guard bytes.count < Int(Int32.max) else { return [] }
    var stream = unsafe z_stream()
    return unsafe withUnsafeMutablePointer(to: &stream) { stream in
      let size = unsafe Int32(MemoryLayout<z_stream>.size)
      // A window of less than none: no header and no trailer of zlib's own.
      let begun = unsafe deflateInit2_(
        stream, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
      guard begun == Z_OK else { return [] }
      defer { unsafe deflateEnd(stream) }
      let bound = Int(unsafe deflateBound(stream, UInt(bytes.count)))
      guard bound < Int(UInt32.max) else { return [] }
      var input = bytes
      var output = [UInt8](repeating: 0, count: headerLength + bound + trailerLength)
      let status = unsafe input.withUnsafeMutableBufferPointer { source in
        unsafe output.withUnsafeMutableBufferPointer { target in
          unsafe stream.pointee.next_in = source.baseAddress
          unsafe stream.pointee.avail_in = UInt32(source.count)
          unsafe stream.pointee.next_out = target.baseAddress?.advanced(by: headerLength)
          unsafe stream.pointee.avail_out = UInt32(bound)
          return unsafe deflate(stream, Z_FINISH)
        }
      }
      guard status == Z_STREAM_END else { return [] }
      unsafe output.removeLast(Int(stream.pointee.avail_out))
      return output
    }
  }

  /// Whether a gzip member unpacks to that many bytes and its checksum is right.
  package static func unpacks(member bytes: [UInt8], count: Int) -> Bool {
    Inflate.unpack(member: bytes, count: count) != nil
  }

  /// The CRC-32 of bytes (RFC 1952).
  package static func crc32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    unsafe sum(bytes, from: 0) { unsafe CZlib.crc32($0, $1, $2) }
  }

  /// The Adler-32 of bytes (RFC 1950).
  package static func adler32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    unsafe sum(bytes, from: 1) { unsafe CZlib.adler32($0, $1, $2) }
  }

  /// A checksum of bytes, in pieces that zlib can count.
  private static func sum(
    _ bytes: ArraySlice<UInt8>, from start: UInt, _ add: (UInt, UnsafePointer<UInt8>?, UInt32) -> UInt
  ) -> UInt32 {
    var sum = start
    var rest = bytes
    while !rest.isEmpty {
      let piece = rest.prefix(1 << 30)
      sum = unsafe piece.withUnsafeBufferPointer { unsafe add(sum, $0.baseAddress, UInt32($0.count)) }
      rest = rest.dropFirst(piece.count)
    }
    return UInt32(truncatingIfNeeded: sum)
  }
}

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
