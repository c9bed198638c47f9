import CCurl

/// A libcurl handle with persistent connections, for one thread at a time.
@safe
final class CurlHandle: @unchecked Sendable {
  private let handle: UnsafeMutableRawPointer

  /// libcurl's error buffer.
  private let words: UnsafeMutablePointer<CChar>

  /// The last socket opened: that of the connection to the only server.
  private let socket: UnsafeMutablePointer<curl_socket_t>

  private static let isPrepared = lazaret_curl_prepare() == 0

  /// Returns nil if libcurl is unusable.
  init?() {
    guard Self.isPrepared, let handle = unsafe curl_easy_init() else { return nil }
    unsafe self.handle = handle
    unsafe socket = UnsafeMutablePointer.allocate(capacity: 1)
    unsafe socket.initialize(to: -1)
    unsafe words = UnsafeMutablePointer.allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    unsafe curl_easy_cleanup(handle)
    unsafe socket.deallocate()
    unsafe words.deallocate()
  }

  /// The receive buffer that every libcurl version accepts.
  private static let bufferLength = 512 << 10

  private(set) var newConnections = 0

  struct Options: Sendable {
    var patience: S3Patience
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
    _ method: String, url: String, fields: [(name: String, value: String)], body: CurlExchange.Body,
    _ options: Options
  ) throws(TransportFailure) -> HTTPAnswer {
    unsafe curl_easy_reset(handle)
    unsafe words.pointee = 0
    let socket = unsafe socket
    let exchange = CurlExchange(
      sending: body, limit: options.limit, answerTime: options.answerTime, progress: options.progress
    ) {
      unsafe lazaret_curl_acknowledge(socket.pointee)
    }
    var list = unsafe nil as UnsafeMutablePointer<curl_slist>?
    defer { unsafe curl_slist_free_all(list) }
    // `Expect` would delay the body, `Content-Type` would be a guess.
    let unwanted = ["Expect:", "Content-Type:", "Accept:", "User-Agent: lazaret"]
    for field in fields.map({ "\($0.name): \($0.value)" }) + unwanted {
      guard let longer = unsafe curl_slist_append(list, field) else {
        throw TransportFailure(kind: .unusable, code: Int(CURLE_OUT_OF_MEMORY.rawValue))
      }
      unsafe list = longer
    }
    let context = unsafe Unmanaged.passUnretained(exchange).toOpaque()
    var settings = [
      unsafe lazaret_curl_restrict(handle),
      unsafe lazaret_curl_set_text(handle, CURLOPT_URL, url),
      unsafe lazaret_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, method),
      unsafe lazaret_curl_set_fields(handle, list),
      unsafe lazaret_curl_set_socket_place(handle, socket),
      unsafe lazaret_curl_set_receiving(handle, curlTakeBody, curlTakeLine, context),
      unsafe lazaret_curl_set_sending(handle, curlGiveBody, curlRewindBody, context),
      unsafe lazaret_curl_set_progress(handle, curlGoesOn, context),
      unsafe lazaret_curl_set_error_place(handle, words),
    ]
    let stalling = options.isWork ? options.patience.working : options.patience.stalling
    var numbers: [(CURLoption, Int)] = [
      // Signals would affect other threads.
      (CURLOPT_NOSIGNAL, 1),
      // Dots in keys are literal.
      (CURLOPT_PATH_AS_IS, 1),
      (CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
      (CURLOPT_CONNECTTIMEOUT_MS, options.patience.connecting),
      (CURLOPT_LOW_SPEED_TIME, stalling),
      (CURLOPT_LOW_SPEED_LIMIT, options.patience.slowest),
      (CURLOPT_TIMEOUT_MS, options.patience.whole * 1000),
      (CURLOPT_TCP_KEEPALIVE, 1),
      (CURLOPT_BUFFERSIZE, Self.bufferLength),
      (CURLOPT_SSL_VERIFYPEER, 1),
      (CURLOPT_SSL_VERIFYHOST, 2),
    ]
    if method == "HEAD" { numbers.append((CURLOPT_NOBODY, 1)) }
    switch body {
    case .none: break
    case .bytes, .file:
      numbers += [(CURLOPT_UPLOAD, 1), (CURLOPT_UPLOAD_BUFFERSIZE, Self.bufferLength)]
      settings.append(
        unsafe lazaret_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count)))
    }
    for (option, value) in numbers { settings.append(unsafe lazaret_curl_set_number(handle, option, value)) }
    if let authorities = options.authorities {
      settings.append(unsafe lazaret_curl_set_text(handle, CURLOPT_CAINFO, authorities))
    }
    if let failed = settings.first(where: { $0 != CURLE_OK }) {
      throw TransportFailure(kind: .unusable, code: Int(failed.rawValue))
    }
    let code = withExtendedLifetime(exchange) { unsafe curl_easy_perform(handle) }
    newConnections = unsafe lazaret_curl_new_connections(handle)
    let status = unsafe lazaret_curl_status(handle)
    // A refusal during the upload is an answer.
    let isRefusal = status >= 400 && [CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code)
    let isAnswer = exchange.isExceeded ? options.cutsOff : code == CURLE_OK || isRefusal
    guard isAnswer, exchange.hasHeader else { throw failure(code, exchange) }
    return HTTPAnswer(
      status: status, fields: exchange.fields, body: exchange.received, isCutOff: exchange.isExceeded)
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
  enum Kind: Sendable {
    case unreachable
    case timeOut
    case certificate
    case tooMuch
    case unusable
    case file
  }

  let kind: Kind

  let code: Int

  /// libcurl's message, which may name the host.
  var words = ""
}
