import CCurl
import Platform

/// A libcurl handle with persistent connections, for one thread at a time.
@safe
final class CurlHandle: @unchecked Sendable {
  private let handle: UnsafeMutableRawPointer

  /// libcurl's error buffer.
  private let words: UnsafeMutablePointer<CChar>

  /// The last socket opened: that of the connection to the only server.
  private let socket: UnsafeMutablePointer<curl_socket_t>

  private static let isPrepared = lazaret_curl_prepare()

  /// Returns nil if libcurl is unusable.
  init?() {
    guard Self.isPrepared, let handle = unsafe lazaret_curl_init() else { return nil }
    unsafe self.handle = handle
    unsafe socket = UnsafeMutablePointer.allocate(capacity: 1)
    unsafe socket.initialize(to: -1)
    unsafe words = UnsafeMutablePointer.allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    unsafe lazaret_curl_cleanup(handle)
    unsafe socket.deallocate()
    unsafe words.deallocate()
  }

  /// The receive buffer that every libcurl version accepts.
  private static let bufferLength = 512 << 10

  private(set) var newConnections = 0

  struct Options: Sendable {
    var retries: S3RetryPolicy
    var authorities: String?

    /// The most bytes of the answer's body.
    var limit: Int

    /// Whether the answer may take long.
    var isWork = false

    /// The longest time from the last byte sent to the end of the answer.
    var answerTime: Duration?

    /// Truncates a longer body instead of failing.
    var cutsOff = false

    /// Receives the count of body bytes sent.
    var progress: @Sendable (Int64) -> Void = { _ in }
  }

  func perform(
    _ method: String, url: String, fields: [(name: String, value: String)], body: CurlExchange.Body, _ options: Options
  ) throws(TransportFailure) -> HTTPAnswer {
    unsafe lazaret_curl_reset(handle)
    unsafe words.pointee = 0
    let socket = unsafe socket
    let exchange = CurlExchange(sending: body, options) { unsafe lazaret_curl_acknowledge(socket.pointee) }
    var list = unsafe nil as UnsafeMutablePointer<curl_slist>?
    defer { unsafe lazaret_curl_free(list) }
    // `Expect` would delay the body, `Content-Type` would be a guess.
    let unwanted = ["Expect:", "Content-Type:", "Accept:", "User-Agent: lazaret"]
    for field in fields.map({ "\($0.name): \($0.value)" }) + unwanted {
      guard let longer = unsafe lazaret_curl_append(list, field) else {
        throw TransportFailure(kind: .unusable, code: Int(CURLE_OUT_OF_MEMORY.rawValue))
      }
      unsafe list = longer
    }
    let context = unsafe Unmanaged.passUnretained(exchange).toOpaque()
    var settings = [
      unsafe lazaret_curl_restrict(handle), unsafe lazaret_curl_set_text(handle, CURLOPT_URL, url),
      unsafe lazaret_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, method), unsafe lazaret_curl_set_fields(handle, list),
      unsafe lazaret_curl_set_socket_place(handle, socket),
      unsafe lazaret_curl_set_receiving(handle, curlTakeBody, curlTakeLine, context),
      unsafe lazaret_curl_set_sending(handle, curlGiveBody, curlRewindBody, context),
      unsafe lazaret_curl_set_progress(handle, curlGoesOn, context), unsafe lazaret_curl_set_error_place(handle, words),
    ]
    let stalling = options.isWork ? options.retries.working : options.retries.stalling
    var numbers: [(CURLoption, Int)] = [
      // Signals would affect other threads.
      (CURLOPT_NOSIGNAL, 1),
      // Dots in keys are literal.
      (CURLOPT_PATH_AS_IS, 1), (CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
      (CURLOPT_CONNECTTIMEOUT_MS, options.retries.connecting), (CURLOPT_LOW_SPEED_TIME, stalling),
      (CURLOPT_LOW_SPEED_LIMIT, options.retries.slowest), (CURLOPT_TIMEOUT_MS, options.retries.whole * 1000),
      (CURLOPT_TCP_KEEPALIVE, 1), (CURLOPT_BUFFERSIZE, Self.bufferLength), (CURLOPT_SSL_VERIFYPEER, 1),
      (CURLOPT_SSL_VERIFYHOST, 2),
    ]
    if method == "HEAD" { numbers.append((CURLOPT_NOBODY, 1)) }
    switch body {
    case .none: break
    case .bytes, .file:
      numbers += [(CURLOPT_UPLOAD, 1), (CURLOPT_UPLOAD_BUFFERSIZE, Self.bufferLength)]
      settings.append(unsafe lazaret_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count)))
    }
    for (option, value) in numbers { settings.append(unsafe lazaret_curl_set_number(handle, option, value)) }
    if let authorities = options.authorities {
      settings.append(unsafe lazaret_curl_set_text(handle, CURLOPT_CAINFO, authorities))
    }
    if let failed = settings.first(where: { $0 != CURLE_OK }) {
      throw TransportFailure(kind: .unusable, code: Int(failed.rawValue))
    }
    let code = withExtendedLifetime(exchange) { unsafe lazaret_curl_perform(handle) }
    newConnections = unsafe lazaret_curl_new_connections(handle)
    let status = unsafe lazaret_curl_status(handle)
    // A refusal during the upload is an answer.
    let isRefusal = status >= 400 && [CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code)
    let isAnswer = exchange.isExceeded ? options.cutsOff : code == CURLE_OK || isRefusal
    guard isAnswer, exchange.hasHeader else { throw failure(code, exchange) }
    return HTTPAnswer(status: status, fields: exchange.fields, body: exchange.received, isCutOff: exchange.isExceeded)
  }

  private func failure(_ code: CURLcode, _ exchange: CurlExchange) -> TransportFailure {
    let kind: TransportFailure.Kind =
      switch code {
      case _ where exchange.bodyFailure != nil: .file
      case _ where exchange.isExceeded || exchange.isHeaderExceeded: .tooMuch
      case CURLE_ABORTED_BY_CALLBACK: .timeOut
      // The connection ended before the header did.
      case CURLE_OK, CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: .unreachable
      case CURLE_OPERATION_TIMEDOUT: .timeOut
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR: .certificate
      case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE,
        CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND:
        .unreachable
      default: .unusable
      }
    return TransportFailure(kind: kind, code: Int(code.rawValue), words: unsafe String(cString: words))
  }
}

struct HTTPAnswer: Sendable {
  let status: Int

  /// The header by lower-case name; the last of repeated fields.
  let fields: [String: String]

  let body: [UInt8]

  var isCutOff = false

  var isSuccess: Bool { (200...299).contains(status) }

  /// A refusal's error code, such as `NoSuchKey`.
  var word: String? {
    guard let root = XMLElement(body), root.name == "Error", let word = root.text("Code"), word.utf8.count <= 64,
      !word.isEmpty, word.utf8.allSatisfy({ $0 < 128 && Character(Unicode.Scalar($0)).isLetter })
    else { return nil }
    return word
  }
}

struct TransportFailure: Error {
  enum Kind: Sendable { case unreachable, timeOut, certificate, tooMuch, unusable, file }

  let kind: Kind

  let code: Int

  /// libcurl's message, which may name the host.
  var words = ""
}

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
  private let options: CurlHandle.Options
  private var sent: Int64 = 0
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

  init(sending body: Body, _ options: CurlHandle.Options, whenHeaderEnds: @escaping () -> Void) {
    self.whenHeaderEnds = whenHeaderEnds
    self.body = body
    self.options = options
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
      options.progress(count)
    }
    return options.answerTime.map { .now - lastSent <= $0 } ?? true
  }

  /// Appends body bytes; false past the limit.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // An error document may exceed the requested length.
    let limit = status >= 300 ? max(options.limit, 64 << 10) : options.limit
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
    var value = line[line.index(after: colon)...].drop(while: \.isWhitespace)
    while value.last?.isWhitespace == true { value.removeLast() }
    fields[line[..<colon].lowercased()] = String(value)
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
) -> CInt { unsafe exchange(context)?.goesOn(uploaded: Int64(uploaded)) == true ? 0 : 1 }

/// libcurl's seek callback; 0 on success.
func curlRewindBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: CInt) -> CInt {
  // libcurl uses only SEEK_SET.
  guard origin == 0 else { return 1 }
  return unsafe exchange(context)?.rewind(to: Int64(offset)) == true ? 0 : 1
}
