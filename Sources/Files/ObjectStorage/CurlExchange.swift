import CCurl

/// What passes in one request: the body that goes, and the fields and the body that come.
///
/// The library calls it on the thread that performs the request, and on no other.
final class CurlExchange {
  private let body: ArraySlice<UInt8>
  private var sent: Int
  private let limit: Int
  private let limitOfRefusal: Int
  private var lines = 0

  private(set) var fields: [String: String] = [:]
  private(set) var received: [UInt8] = []

  /// Whether more came than was asked for.
  private(set) var isExceeded = false

  /// The largest number of header lines that are taken, and of bytes in one.
  private static let mostLines = 200
  private static let longestLine = 16384

  /// The most bytes that are set aside because a server says that they will come.
  private static let mostReserved = 16 << 20

  /// Called when all lines of a header are there.
  private let whenHeaderEnds: () -> Void

  /// - Parameters:
  ///   - limit: the bytes that the body of an answer may have.
  ///   - whenHeaderEnds: called when all lines of a header are there.
  init(sending body: ArraySlice<UInt8>, limit: Int, whenHeaderEnds: @escaping () -> Void) {
    self.whenHeaderEnds = whenHeaderEnds
    self.body = body
    sent = body.startIndex
    self.limit = limit
    limitOfRefusal = max(limit, 64 << 10)
  }

  /// Gives the next bytes of the body.
  func give(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, body.endIndex - sent)
    guard count > 0 else { return 0 }
    unsafe body[sent..<(sent + count)].withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
    sent += count
    return count
  }

  /// Goes back to a place in the body.
  func rewind(to offset: Int) -> Bool {
    guard (0...body.count).contains(offset) else { return false }
    sent = body.startIndex + offset
    return true
  }

  /// Takes bytes of the answer; false where there are too many.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // What tells of a refusal may be longer than what was asked for.
    let limit = status >= 300 ? limitOfRefusal : limit
    guard bytes.count <= limit - received.count else {
      isExceeded = true
      return false
    }
    if received.isEmpty, let length = fields["content-length"].flatMap({ Int($0) }) {
      received.reserveCapacity(max(0, min(length, limit, Self.mostReserved)))
    }
    unsafe received.append(contentsOf: bytes)
    return true
  }

  private var status = 0

  /// Takes a line of the header.
  func take(line bytes: UnsafeRawBufferPointer) -> Bool {
    lines += 1
    guard lines <= Self.mostLines, bytes.count <= Self.longestLine else {
      isExceeded = true
      return false
    }
    let line = unsafe String(decoding: bytes, as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      // Those of an interim answer are not those of the answer.
      fields = [:]
      status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      return true
    }
    guard let colon = line.firstIndex(of: ":") else {
      if line.allSatisfy(\.isNewline) { whenHeaderEnds() }
      return true
    }
    let value = line[line.index(after: colon)...].drop(while: \.isWhitespace)
    var end = value.endIndex
    while end > value.startIndex, value[value.index(before: end)].isWhitespace { end = value.index(before: end) }
    fields[line[..<colon].lowercased()] = String(value[..<end])
    return true
  }
}

/// The exchange that a context of the library is; nil for none.
private func exchange(_ context: UnsafeMutableRawPointer?) -> CurlExchange? {
  unsafe context.map { unsafe Unmanaged<CurlExchange>.fromOpaque($0).takeUnretainedValue() }
}

/// Called by the library with bytes of the answer.
func curlTakeBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.take(buffer) == true ? size * count : 0
}

/// Called by the library with a line of the header.
func curlTakeLine(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.take(line: buffer) == true ? size * count : 0
}

/// Called by the library for bytes of the body.
func curlGiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.give(into: buffer) ?? 0
}

/// Called by the library to go back in the body; 0 where that could be done, else 1.
func curlRewindBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: CInt) -> CInt {
  // SEEK_SET, the only origin that the library uses.
  guard origin == 0, let offset = Int(exactly: offset) else { return 1 }
  return unsafe exchange(context)?.rewind(to: offset) == true ? 0 : 1
}
