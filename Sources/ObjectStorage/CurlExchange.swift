import CCurl
import Platform

/// The body sent and the answer received by one request.
///
/// libcurl calls it only on the request's thread.
final class CurlExchange {
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

  private(set) var bodyFailure: FileError?

  /// Whether the header is complete.
  private(set) var hasHeader = false
  private var lines = 0

  private(set) var fields: [String: String] = [:]
  private(set) var received: [UInt8] = []

  private(set) var isExceeded = false

  private(set) var isHeaderExceeded = false

  private static let mostLines = 200
  private static let longestLine = 16384

  /// The most bytes reserved by trusting `Content-Length`.
  private static let mostReserved = 16 << 20

  private let whenHeaderEnds: () -> Void

  /// - Parameters:
  ///   - answerTime: the longest time from the last byte sent to the end of the answer.
  ///   - progress: receives the count of body bytes sent.
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

  /// Supplies the next body bytes; nil on a read error.
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

  func rewind(to offset: Int64) -> Bool {
    guard (0...body.count).contains(offset) else { return false }
    sent = offset
    return true
  }

  /// Notes the body bytes sent; false if the answer takes too long.
  func goesOn(uploaded count: Int64) -> Bool {
    if count != uploaded {
      (uploaded, lastSent) = (count, .now)
      progress(count)
    }
    return answerTime.map { .now - lastSent <= $0 } ?? true
  }

  /// Appends body bytes; false past the limit.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // An error document may exceed the requested length.
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

  func take(line bytes: UnsafeRawBufferPointer) -> Bool {
    lines += 1
    guard lines <= Self.mostLines, bytes.count <= Self.longestLine else {
      isHeaderExceeded = true
      return false
    }
    let line = unsafe String(decoding: bytes, as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      // Drop an interim answer's fields.
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

private func exchange(_ context: UnsafeMutableRawPointer?) -> CurlExchange? {
  unsafe context.map { unsafe Unmanaged<CurlExchange>.fromOpaque($0).takeUnretainedValue() }
}

/// libcurl's write callback.
func curlTakeBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.take(buffer) == true ? size * count : 0
}

/// libcurl's header callback.
func curlTakeLine(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.take(line: buffer) == true ? size * count : 0
}

/// libcurl's read callback.
func curlGiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
  return unsafe exchange(context)?.give(into: buffer) ?? Int(CURL_READFUNC_ABORT)
}

/// libcurl's progress callback.
func curlGoesOn(
  _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _ uploaded: curl_off_t
) -> CInt {
  unsafe exchange(context)?.goesOn(uploaded: Int64(uploaded)) == true ? 0 : 1
}

/// libcurl's seek callback; 0 on success.
func curlRewindBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: CInt) -> CInt {
  // libcurl uses only SEEK_SET.
  guard origin == 0 else { return 1 }
  return unsafe exchange(context)?.rewind(to: Int64(offset)) == true ? 0 : 1
}
