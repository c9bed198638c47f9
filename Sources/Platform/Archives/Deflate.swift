#if canImport(CDeflate)
  internal import CDeflate

  /// libdeflate, behind types of Swift; the only place of this module that hands memory to it.
  ///
  /// Used by one thread at a time.
  @safe package final class Deflate {
    private let compressor: OpaquePointer

    /// The levels by which blocks are packed in turn so that they come out as large as at one of gzip's levels.
    ///
    /// At 6 libdeflate packs databases by half a percent smaller than gzip does, and at 5 by half a percent larger in two
    /// thirds of the time.
    package static func levels(likeGzip level: Int) -> [Int] { level == 6 ? [6, 5] : [level] }

    /// A compressor of a level from 1 to 12; nil where memory is short.
    package init?(level: Int) {
      guard let compressor = unsafe libdeflate_alloc_compressor(CInt(clamping: level)) else { return nil }
      unsafe self.compressor = unsafe compressor
    }

    deinit { unsafe libdeflate_free_compressor(compressor) }

    /// Packs bytes as one DEFLATE stream between room for a header and a trailer, which are left zero.
    ///
    /// Empty where it was not possible.
    package func pack(_ bytes: [UInt8], headerLength: Int, trailerLength: Int) -> [UInt8] {
      let bound = unsafe libdeflate_deflate_compress_bound(compressor, bytes.count)
      var output = [UInt8](repeating: 0, count: headerLength + bound + trailerLength)
      let made = unsafe bytes.withUnsafeBytes { source in
        unsafe output.withUnsafeMutableBytes { target in
          unsafe libdeflate_deflate_compress(
            compressor, source.baseAddress, source.count, target.baseAddress?.advanced(by: headerLength), bound)
        }
      }
      guard made > 0 else { return [] }
      output.removeLast(bound - made)
      return output
    }

    /// Whether a gzip member unpacks to that many bytes and its checksum is right.
    ///
    /// Two to three times as fast as ``Inflate``, and enough for what has just been packed: the digest of the content was taken
    /// of the very bytes that the checksum is of.
    package static func unpacks(member bytes: [UInt8], count: Int) -> Bool {
      guard let decompressor = unsafe libdeflate_alloc_decompressor() else { return false }
      defer { unsafe libdeflate_free_decompressor(decompressor) }
      var output = [UInt8](repeating: 0, count: max(1, count))
      var made = 0
      let result = unsafe bytes.withUnsafeBytes { source in
        unsafe output.withUnsafeMutableBytes { target in
          unsafe libdeflate_gzip_decompress(
            decompressor, source.baseAddress, source.count, target.baseAddress, count, &made)
        }
      }
      return result == LIBDEFLATE_SUCCESS && made == count
    }

    /// The CRC-32 of bytes (RFC 1952).
    package static func crc32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
      unsafe bytes.withUnsafeBytes { unsafe libdeflate_crc32(0, $0.baseAddress, $0.count) }
    }

    /// The Adler-32 of bytes (RFC 1950).
    package static func adler32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
      unsafe bytes.withUnsafeBytes { unsafe libdeflate_adler32(1, $0.baseAddress, $0.count) }
    }
  }
#else
  /// What packs where libdeflate is not: zlib.
  package typealias Deflate = ZlibDeflate
#endif
