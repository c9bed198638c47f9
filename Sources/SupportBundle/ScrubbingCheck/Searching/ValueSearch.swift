internal import CZlib

/// Searches for the original's values: plain, UTF-16, hexadecimal, base64, and DEFLATE.
package struct ValueSearch: Sendable {
  var fingerprints: ValueFingerprints

  private var unpackingLeft: Int

  private static let mostOfStream = 64 << 20

  private static let leastOfDigits = 16
  private static let leastOfBase64 = 11

  init(_ fingerprints: ValueFingerprints, size: Int64) {
    self.fingerprints = fingerprints
    unpackingLeft = Int(clamping: (256 << 20) + size)
  }

  /// Returns the first value in any form.
  mutating func first(in bytes: [UInt8]) -> Range<Int>? {
    var stream: Inflating?
    return first(in: bytes, from: 0, stream: &stream)
  }

  /// Returns the first value in a piece of a file.
  ///
  /// - Parameters:
  ///   - start: the bytes repeated from the previous piece.
  ///   - stream: the packed stream across pieces.
  mutating func first(in bytes: [UInt8], from start: Int, stream: inout Inflating?) -> Range<Int>? {
    if let open = stream {
      stream = nil
      if inflate(open, bytes, from: start, &stream) { return 0..<min(bytes.count, 8) }
    }
    return plain(bytes.span) ?? forms(bytes) { search, start in search.unpack(bytes, from: start, &stream) }
  }

  /// Searches unpacked bytes, without unpacking again.
  private func firstUnpacked(in bytes: [UInt8]) -> Bool {
    var search = self
    return plain(bytes.span) != nil || search.forms(bytes) { _, _ in false } != nil
  }

  private func plain(_ bytes: Span<UInt8>) -> Range<Int>? {
    let end = bytes.count
    guard end >= 8 else { return nil }
    var word = ValueFingerprints.word(bytes, 0)
    var offset = 0
    while true {
      if let length = fingerprints.match(bytes, at: offset, before: end, word) { return offset..<(offset &+ length) }
      guard offset &+ 8 < end else { return nil }
      word = word >> 8 | UInt64(bytes[offset &+ 8]) << 56
      offset &+= 1
    }
  }

  // MARK: Forms

  private static let base64Mark: UInt8 = 1
  private static let digitMark: UInt8 = 2
  private static let beginMark: UInt8 = 4

  private static let kinds: [UInt8] = (0..<256).map { byte in
    switch UInt8(byte) {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: base64Mark | digitMark
    case 0x47...0x5a, 0x67...0x77, 0x79, 0x7a, 0x2b, 0x2f, 0x2d, 0x5f: base64Mark
    case 0x78: base64Mark | beginMark
    case 0x1f: beginMark
    default: 0
    }
  }

  private mutating func forms(_ bytes: [UInt8], unpack: (inout ValueSearch, Int) -> Bool) -> Range<Int>? {
    let kinds = Self.kinds
    let end = bytes.count
    var (digits, base64, wideEnd) = (0, 0, 0)
    for index in 0..<end {
      let byte = bytes[index]
      let kind = kinds[Int(byte)]
      if kind & Self.digitMark == 0 {
        if index &- digits >= Self.leastOfDigits, isInDigits(bytes, digits..<index) { return digits..<index }
        digits = index &+ 1
      }
      if kind & Self.base64Mark == 0 {
        if index &- base64 >= Self.leastOfBase64, isInBase64(bytes, base64..<index) { return base64..<index }
        base64 = index &+ 1
      }
      if kind & Self.beginMark != 0, unpack(&self, index) { return index..<min(end, index + 8) }
      if byte != 0, index >= wideEnd, index &+ 16 <= end, bytes[index &+ 1] == 0, bytes[index &+ 2] != 0,
        bytes[index &+ 3] == 0, bytes[index &+ 5] == 0, bytes[index &+ 7] == 0
      {
        let range = wide(bytes, from: index)
        wideEnd = range.upperBound
        if isInWide(bytes, range) { return range }
      }
    }
    if end - digits >= Self.leastOfDigits, isInDigits(bytes, digits..<end) { return digits..<end }
    if end - base64 >= Self.leastOfBase64, isInBase64(bytes, base64..<end) { return base64..<end }
    return nil
  }

  /// Returns the extent of single-byte UTF-16.
  private func wide(_ bytes: [UInt8], from start: Int) -> Range<Int> {
    var index = start
    while index &+ 1 < bytes.count, bytes[index] != 0, bytes[index &+ 1] == 0 { index &+= 2 }
    return start..<index
  }

  private func isInWide(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    var text: [UInt8] = []
    text.reserveCapacity(range.count)
    for index in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
      let byte = bytes[index]
      if byte < 0x80 {
        text.append(byte)
      } else {
        text.append(0xc0 | byte >> 6)
        text.append(0x80 | byte & 0x3f)
      }
    }
    // In the other order, the last zero precedes.
    if range.upperBound < bytes.count, bytes[range.upperBound] != 0, bytes[range.upperBound] < 0x80 {
      text.append(bytes[range.upperBound])
    }
    return plain(text.span) != nil
  }

  private func isInDigits(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    (0..<2).contains { skipped in
      let pairs = stride(from: range.lowerBound + skipped, to: range.upperBound - 1, by: 2)
      let text = pairs.map { Self.digit(bytes[$0]) << 4 | Self.digit(bytes[$0 + 1]) }
      return plain(text.span) != nil
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8 { byte < 0x40 ? byte & 0x0f : (byte & 0x0f) + 9 }

  private func isInBase64(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    for skipped in 0..<4 {
      var text: [UInt8] = []
      var (word, bits): (UInt32, UInt32) = (0, 0)
      for index in (range.lowerBound + skipped)..<max(range.lowerBound + skipped, range.upperBound) {
        word = word << 6 | UInt32(Self.six(bytes[index]))
        bits += 6
        if bits >= 8 {
          bits -= 8
          text.append(UInt8(truncatingIfNeeded: word >> bits))
        }
      }
      if plain(text.span) != nil { return true }
    }
    return false
  }

  private static func six(_ byte: UInt8) -> UInt8 {
    switch byte {
    case 0x41...0x5a: byte - 0x41
    case 0x61...0x7a: byte - 0x61 + 26
    case 0x30...0x39: byte - 0x30 + 52
    case 0x2b, 0x2d: 62
    default: 63
    }
  }

  // MARK: Packed values

  /// Whether a packed stream contains a value.
  private mutating func unpack(_ bytes: [UInt8], from start: Int, _ open: inout Inflating?) -> Bool {
    guard start + 8 <= bytes.count, unpackingLeft > 0 else { return false }
    let isPacked =
      bytes[start] == 0x1f
      ? bytes[start + 1] == 0x8b && bytes[start + 2] == 8 && bytes[start + 3] & 0xe0 == 0
      : [0x01, 0x5e, 0x9c, 0xda].contains(bytes[start + 1])
    guard isPacked, let stream = Inflating(limit: min(Self.mostOfStream, unpackingLeft)) else { return false }
    return inflate(stream, bytes, from: start, &open)
  }

  private mutating func inflate(
    _ stream: Inflating, _ bytes: [UInt8], from start: Int, _ open: inout Inflating?
  ) -> Bool {
    var tail: [UInt8] = []
    var (found, left) = (false, unpackingLeft)
    let goesOn = stream.read(bytes, from: start) { output in
      left -= output.count
      let text = tail + output
      found = firstUnpacked(in: text)
      tail = Array(text.suffix(128))
      return !found && left > 0
    }
    unpackingLeft = left
    if goesOn, !found { open = stream }
    return found
  }
}

extension ValueSearch {
  /// Searches for file names of at least eight characters.
  init(names: some Sequence<String>) {
    let names = Array(names)
    var fingerprints = ValueFingerprints(bytes: Int64(clamping: max(1 << 16, 1024 * names.count)))
    for name in names { fingerprints.insert(text: name) }
    self.init(fingerprints, size: 0)
  }

  /// Searches for file checksums by their first eight bytes.
  init(sums: some Sequence<[UInt8]>) {
    let sums = Array(sums)
    var fingerprints = ValueFingerprints(bytes: Int64(clamping: max(1 << 16, 1024 * sums.count)))
    for sum in sums {
      fingerprints.insert(blob: sum.span, 0..<sum.count)
      fingerprints.insert(blob: sum.span, 0..<min(8, sum.count))
    }
    self.init(fingerprints, size: 0)
  }
}

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
