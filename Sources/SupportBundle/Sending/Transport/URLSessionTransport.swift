#if canImport(Darwin)
  internal import Platform
  internal import Foundation
  internal import SystemPackage

  /// Sends requests with Foundation's `URLSession`.
  ///
  /// One session per value, without cookies, cache or redirections; certificates are always verified. A request is not
  /// interrupted once its body is being sent; callers stop between parts.
  public final class URLSessionTransport: UploadTransport {
    private let session: URLSession
    private let flights: TransportFlights

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - idleSeconds: the timeout without traffic.
    ///   - answerSeconds: the timeout of the answer after the last sent byte.
    ///   - totalSeconds: the timeout of the whole request.
    public init(idleSeconds: Double = 60, answerSeconds: Double = 180, totalSeconds: Double = 86_400) {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpCookieStorage = nil
      configuration.httpShouldSetCookies = false
      configuration.httpCookieAcceptPolicy = .never
      configuration.urlCache = nil
      configuration.urlCredentialStorage = nil
      configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
      configuration.timeoutIntervalForRequest = idleSeconds
      configuration.timeoutIntervalForResource = totalSeconds
      configuration.httpMaximumConnectionsPerHost = 1
      flights = TransportFlights(patience: .seconds(answerSeconds))
      session = URLSession(configuration: configuration, delegate: flights, delegateQueue: nil)
    }

    deinit {
      // An abandoned task needs its session.
      if flights.hasGivenUp { Self.kept.withLock { $0.append(session) } } else { session.finishTasksAndInvalidate() }
    }

    private static let kept = Mutex<[URLSession]>([])

    /// Sends a request and waits for its answer.
    public func send(
      _ request: UploadRequest, progress: @escaping @Sendable (Int64) -> Void
    ) throws(TransportError) -> UploadResponse {
      try request.requireNoProxy()
      var message = URLRequest(url: request.address.url)
      message.httpMethod = request.method.rawValue
      message.httpShouldHandleCookies = false
      for (name, value) in request.fields { message.setValue(value, forHTTPHeaderField: name) }
      let task: URLSessionTask
      switch request.body {
      case .none:
        task = session.dataTask(with: message)
      case .bytes(let bytes):
        guard bytes.count <= UploadRequest.partLimit else {
          throw TransportError(.request, "a body in memory has at most \(UploadRequest.partLimit) bytes")
        }
        message.setValue("\(bytes.count)", forHTTPHeaderField: "Content-Length")
        task =
          bytes.isEmpty
          ? session.dataTask(with: message) : session.uploadTask(with: message, from: Data(bytes))
      case .file(let path, let size):
        message.setValue("\(size)", forHTTPHeaderField: "Content-Length")
        task = session.uploadTask(with: message, fromFile: URL(fileURLWithPath: path.string))
      }
      return try flights.fly(task, progress: progress)
    }
  }

  private final class TransportFlights: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private struct Flight {
      var response: UploadResponse?
      var body: [UInt8] = []
      var isCutOff = false
      var error: TransportError?
      var sent = ContinuousClock.now
      let progress: @Sendable (Int64) -> Void
      let landed = DispatchSemaphore(value: 0)
    }

    private let flights = Mutex<[Int: Flight]>([:])
    private let patience: Duration
    private let givenUp = Mutex(false)

    init(patience: Duration) { self.patience = patience }

    var hasGivenUp: Bool { givenUp.withLock { $0 } }

    func fly(
      _ task: URLSessionTask, progress: @escaping @Sendable (Int64) -> Void
    ) throws(TransportError) -> UploadResponse {
      let flight = Flight(progress: progress)
      let number = task.taskIdentifier
      flights.withLock { $0[number] = flight }
      task.resume()
      while flight.landed.wait(timeout: .now() + .milliseconds(250)) == .timedOut {
        guard let sent = flights.withLock({ $0[number]?.sent }), .now - sent > patience else { continue }
        flights.withLock { $0[number]?.error = TransportError(.connection, "its answer took too long") }
        givenUp.withLock { $0 = true }
        break
      }
      guard let ended = flights.withLock({ $0.removeValue(forKey: number) }) else {
        throw TransportError(.connection, "the answer was lost")
      }
      if var response = ended.response, ended.error == nil || ended.isCutOff {
        response.body = ended.body
        response.isCutOff = ended.isCutOff
        return response
      }
      throw ended.error ?? TransportError(.connection, "the connection ended without an answer")
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      keep(response, of: task)
      completionHandler(nil)
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      keep(response, of: dataTask)
      // Only short answers are read.
      let isTooLong =
        dataTask.originalRequest?.httpMethod != "HEAD" && response.expectedContentLength > UploadResponse.bodyLimit
      if isTooLong { flights.withLock { $0[dataTask.taskIdentifier]?.isCutOff = true } }
      completionHandler(isTooLong ? .cancel : .allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      let isTooLong = flights.withLock { flights in
        let number = dataTask.taskIdentifier
        guard let count = flights[number]?.body.count else { return false }
        flights[number]?.body += data.prefix(UploadResponse.bodyLimit - count)
        guard data.count > UploadResponse.bodyLimit - count, flights[number]?.isCutOff == false else { return false }
        flights[number]?.isCutOff = true
        return true
      }
      if isTooLong { dataTask.cancel() }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      let progress = flights.withLock { flights in
        flights[task.taskIdentifier]?.sent = .now
        return flights[task.taskIdentifier]?.progress
      }
      progress?(totalBytesSent)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      if let response = task.response { keep(response, of: task) }
      let landed = flights.withLock { flights in
        if let error, flights[task.taskIdentifier]?.error == nil {
          flights[task.taskIdentifier]?.error = Self.told(error)
        }
        return flights[task.taskIdentifier]?.landed
      }
      landed?.signal()
    }

    private func keep(_ response: URLResponse, of task: URLSessionTask) {
      guard let response = response as? HTTPURLResponse else { return }
      var fields: [String: String] = [:]
      for (name, value) in response.allHeaderFields {
        guard let name = name as? String, let value = value as? String else { continue }
        fields[name] = value
      }
      flights.withLock { flights in
        if flights[task.taskIdentifier]?.response == nil {
          flights[task.taskIdentifier]?.response = UploadResponse(response.statusCode, fields: fields)
        }
      }
    }

    private static func told(_ error: any Error) -> TransportError {
      guard let error = error as? URLError else { return TransportError(.connection, "the connection broke") }
      switch error.code {
      case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
        .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired:
        return TransportError(.untrusted, "its certificate is not to be trusted")
      case .secureConnectionFailed, .unknown: return told(unknown: error)
      case .timedOut: return TransportError(.connection, "it took too long")
      case .cannotFindHost, .dnsLookupFailed: return TransportError(.connection, "there is no such host, or no network")
      case .cannotConnectToHost: return TransportError(.connection, "nothing answers there")
      case .notConnectedToInternet: return TransportError(.connection, "there is no network")
      case .networkConnectionLost: return TransportError(.connection, "the connection was lost")
      case .badURL, .unsupportedURL: return TransportError(.request, "the address cannot be used")
      case .fileDoesNotExist, .noPermissionsToReadFile, .cannotOpenFile:
        return TransportError(.file, "the file cannot be read")
      default: return told(unknown: error)
      }
    }

    /// Classifies an error without a code: on Linux only libcurl's text distinguishes an untrusted certificate from a
    /// broken connection.
    private static func told(unknown error: URLError) -> TransportError {
      let words = error.localizedDescription.lowercased()
      if words.contains("certificate") { return TransportError(.untrusted, "its certificate is not to be trusted") }
      let isCut = ["eof", "reset", "syscall", "timed out", "failure:"].contains { words.contains($0) }
      let isTLS = ["ssl routines", "handshake", "wrong version", "tls alert"].contains { words.contains($0) }
      if error.code == .secureConnectionFailed || isTLS, !isCut {
        return TransportError(.untrusted, "no secure connection came about")
      }
      return TransportError(.connection, "the connection failed (\(error.code.rawValue))")
    }
  }
#endif
