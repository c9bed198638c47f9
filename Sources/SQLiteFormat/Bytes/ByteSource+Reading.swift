internal import Platform

extension ByteSource {
  /// Returns a range's bytes, cut off at the source's end.
  func read(at offset: Int64, length: Int) throws(FormatError) -> [UInt8] {
    do throws(FileError) {
      return try bytes(at: offset, length: length)
    } catch {
      throw FormatError(error)
    }
  }

  /// Fills a reused buffer with a range's bytes, cut off at the source's end.
  func fill(_ buffer: inout [UInt8], at offset: Int64, length: Int) throws(FormatError) {
    let available = Int(max(0, min(Int64(length), count - offset)))
    if buffer.count < available {
      buffer.append(contentsOf: repeatElement(0, count: available - buffer.count))
    } else if buffer.count > available {
      buffer.removeLast(buffer.count - available)
    }
    guard available > 0 else { return }
    do throws(FileError) {
      let got = try read(at: offset, length: available, into: &buffer)
      if got < available { buffer.removeLast(available - max(0, got)) }
    } catch {
      throw FormatError(error)
    }
  }
}
