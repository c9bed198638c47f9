package import Backup
internal import CZstd

/// The module's only use of libzstd's memory interface.
package struct ZstandardLibrary: ZstandardFrames {
  package init() {}

  /// Packs on one thread; nil if out of memory.
  package func packer(level: Int) -> (any ZstandardPacker)? { FramePacker(level: level) }

  /// Unpacks one frame; nil if damaged, not exactly one, or of another size.
  package func unpack(_ frame: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
    // Excludes legacy formats and skippable frames.
    guard frame.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) else { return nil }
    var output = [UInt8](repeating: 0, count: max(1, count))
    let isWhole = unsafe frame.withUnsafeBytes { source in
      unsafe output.withUnsafeMutableBytes { target -> Bool in
        guard unsafe ZSTD_findFrameCompressedSize(source.baseAddress, source.count) == source.count,
          unsafe ZSTD_getFrameContentSize(source.baseAddress, source.count) == UInt64(count)
        else { return false }
        return unsafe ZSTD_decompress(target.baseAddress, count, source.baseAddress, source.count) == count
      }
    }
    guard isWhole else { return nil }
    if output.count > count { output.removeLast(output.count - count) }
    return output
  }

  /// Reads untrusted files; nil if out of memory.
  package func reader() -> (any ZstandardReader)? { StreamReader() }
}

@safe private final class FramePacker: ZstandardPacker {
  private let context: OpaquePointer

  init?(level: Int) {
    guard let context = unsafe ZSTD_createCCtx() else { return nil }
    unsafe self.context = unsafe context
    guard unsafe ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Int32(clamping: level))) == 0,
      unsafe ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) == 0
    else { return nil }
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  func pack(_ bytes: [UInt8]) -> [UInt8] {
    let bound = ZSTD_compressBound(bytes.count)
    var output = [UInt8](repeating: 0, count: bound)
    let made = unsafe bytes.withUnsafeBytes { source in
      unsafe output.withUnsafeMutableBytes { target in
        unsafe ZSTD_compress2(context, target.baseAddress, bound, source.baseAddress, source.count)
      }
    }
    guard ZSTD_isError(made) == 0 else { return [] }
    output.removeLast(bound - made)
    return output
  }
}

/// Unpacks frames in pieces, rejecting windows above 128 MiB as `zstd` does.
@safe private final class StreamReader: ZstandardReader {
  private let context: OpaquePointer
  private var buffer = [UInt8](repeating: 0, count: 128 << 10)
  private var left = 1

  init?() {
    guard let context = unsafe ZSTD_createDCtx() else { return nil }
    unsafe self.context = unsafe context
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  var isWhole: Bool { left == 0 }

  func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws -> Bool {
    var position = 0
    while true {
      var used = 0
      var made = 0
      left = unsafe bytes.withUnsafeBytes { source in
        unsafe buffer.withUnsafeMutableBytes { target in
          var input = unsafe ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: position)
          var output = unsafe ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
          let left = unsafe ZSTD_decompressStream(context, &output, &input)
          (used, made) = unsafe (input.pos, output.pos)
          return left
        }
      }
      guard ZSTD_isError(left) == 0 else { return false }
      let isIdle = used == position && made == 0
      position = used
      if made > 0 { try visit(buffer[..<made]) }
      // A full buffer may be followed by more without new input.
      if isIdle || (position == bytes.count && (left == 0 || made < buffer.count)) { return true }
    }
  }
}
