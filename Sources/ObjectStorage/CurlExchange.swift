import CCurl
import Platform

/// What passes in one request: the body that goes, and the fields and the body that come.
///
/// The library calls it on the thread that performs the request, and on no other.
final class CurlExchange {
  /// The body of a request.
  enum Body {
    case none
    case bytes(ArraySlice<UInt8>)
    case file(ReadableFile, size: Int64)

    var count: Int64 {
      switch self {
      case .none: 0
      case .bytes(let bytes): Int64(bytes.count)
      case .file(_, let size): size
      }
    }
  }

  private let body: Body
  private var sent: Int64 = 0
  private let limit: Int
  private let limitOfRefusal: Int
  private let progress: (Int64) -> Void
  private let answerTime: Duration?
  private var (uploaded, lastSent) = (Int64(0), ContinuousClock.now)

  /// Why the body could not be read; nil where it could.
  private(set) var bodyFailure: FileError?

  /// Whether an answer with all lines of its header has come.
  private(set) var hasHeader = false
  private var lines = 0

  private(set) var fields: [String: String] = [:]
  private(set) var received: [UInt8] = []

  /// Whether the body was longer than was asked for.
  private(set) var isExceeded = false

  /// Whether the header was longer than any is.
  private(set) var isHeaderExceeded = false

  /// The largest number of header lines that are taken, and of bytes in one.
  private static let mostLines = 200
  private static let longestLine = 16384

  /// The most bytes that are set aside because a server says that they will come.
  private static let mostReserved = 16 << 20

  /// Called when all lines of a header are there.
  private let whenHeaderEnds: () -> Void

  /// - Parameters:
  ///   - limit: the bytes that the body of an answer may have.
  ///   - answerTime: how long an answer may take from the last byte that was sent, however it trickles in.
  ///   - progress: called with the bytes of the body that were sent.
  ///   - whenHeaderEnds: called when all lines of a header are there.
  init(
    sending body: Body, limit: Int, answerTime: Duration? = nil, progress: @escaping (Int64) -> Void = { _ in },
    whenHeaderEnds: @escaping () -> Void
  ) {
    self.whenHeaderEnds = whenHeaderEnds
    self.body = body
    self.limit = limit
    self.answerTime = answerTime
    self.progress = progress
    limitOfRefusal = max(limit, 64 << 10)
  }

  /// Gives the next bytes of the body; nil where it cannot be read.
  func give(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    let count = Int(min(Int64(buffer.count), body.count - sent))
    guard count > 0 else { return 0 }
    switch body {
    case .none: return 0
    case .bytes(let bytes):
      let start = bytes.startIndex + Int(sent)
      unsafe bytes[start..<(start + count)].withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
    case .file(let file, _):
      do throws(FileError) {
        let bytes = try file.bytes(at: sent, length: count)
        guard bytes.count == count else {
          throw FileError(.changed, operation: "send the file", detail: "it has become shorter")
        }
        unsafe bytes.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
      } catch {
        bodyFailure = error
        return nil
      }
    }
    sent += Int64(count)
    return count
  }

  /// Goes back to a place in the body.
  func rewind(to offset: Int64) -> Bool {
    guard (0...body.count).contains(offset) else { return false }
    sent = offset
    return true
  }

  /// Notes the bytes of the body that were sent so far; false where the answer takes too long.
  func goesOn(uploaded count: Int64) -> Bool {
    if count != uploaded {
      (uploaded, lastSent) = (count, .now)
      progress(count)
    }
    return answerTime.map { .now - lastSent <= $0 } ?? true
  }

  /// Takes bytes of the answer; false where there are too many.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // What tells of a refusal may be longer than what was asked for.
    let limit = status >= 300 ? limitOfRefusal : limit
    guard bytes.count <= limit - received.count else {
      unsafe received.append(contentsOf: bytes.prefix(limit - received.count))
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
      isHeaderExceeded = true
      return false
    }
    let line = unsafe String(decoding: bytes, as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      // Those of an interim answer are not those of the answer.
      fields = [:]
      hasHeader = false
      status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      return true
    }
    guard let colon = line.firstIndex(of: ":") else {
      if line.allSatisfy(\.isNewline) {
        hasHeader = status >= 200
        whenHeaderEnds()
      }
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
  return unsafe exchange(context)?.give(into: buffer) ?? Int(CURL_READFUNC_ABORT)
}

/// Called by the library while a request runs.
func curlGoesOn(
  _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _ uploaded: curl_off_t
) -> CInt {
  unsafe exchange(context)?.goesOn(uploaded: Int64(uploaded)) == true ? 0 : 1
}

/// Called by the library to go back in the body; 0 where that could be done, else 1.
func curlRewindBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: CInt) -> CInt {
  // SEEK_SET, the only origin that the library uses.
  guard origin == 0 else { return 1 }
  return unsafe exchange(context)?.rewind(to: Int64(offset)) == true ? 0 : 1
}
