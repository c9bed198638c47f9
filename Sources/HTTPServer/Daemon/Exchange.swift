internal import Platform

/// An incoming request: checked at its header, answered after its body.
final class Exchange {
  /// The raw target of the request line.
  let target: String

  private let begun = ContinuousClock.now
  private var method = "other"
  private var client: ClientAddress?
  private var request: Request?
  private var length: Int? = 0
  private var excess = 0
  private var stream: Stream?

  fileprivate struct Stream {
    var consumer: any BodyConsumer
    var limit: Int64
    var count: Int64 = 0

    /// The byte count at the last extension of the deadline.
    var counted: Int64 = 0
    var failure: Response?
    var isOver = false

    /// Abandons the consumer; further bytes are dropped.
    mutating func fail(_ response: Response) {
      guard !isOver else { return }
      isOver = true
      failure = response
      consumer.abandon()
    }
  }

  /// The bytes that extend a stream's deadline.
  private static let progress: Int64 = 64 << 10

  /// The most bytes dropped so that a sending client still gets its answer.
  private static let dropLimit = 32 << 20

  init(target: String) { self.target = target }

  var hasBegun: Bool { request != nil }

  var hasBody: Bool { length != 0 }

  var isStreamed: Bool { stream != nil }

  /// Checks the header; returns a response if it is refused.
  ///
  /// - Parameters:
  ///   - size: the received header's bytes.
  ///   - intake: chooses the consumer by request and body length; nil collects the body.
  func begin(
    method: String, version: String, headers: HeaderFields, from peer: ClientAddress? = nil, size: Int,
    rules: RequestRules, proxies: TrustedProxies = TrustedProxies(addresses: []),
    intake: (Request, Int64?) -> BodyIntake?
  ) -> Response? {
    if let known = Method(rawValue: method) { self.method = known.rawValue }
    client = proxies.client(at: peer, headers)
    do throws(Refusal) {
      try rules.checkSize(size, method: method, target: target, version: version, headers: headers)
      let headers = proxies.fields(headers, from: peer)
      let checked = try rules.checkHeader(method: method, target: target, version: version, headers: headers)
      var request = Request(checked.method, checked.target, headers: headers)
      request.client = client
      switch intake(request, checked.length.map(Int64.init)) {
      case nil: try rules.checkLength(checked.length)
      case .refused(let response): return response
      case .stream(let limit, let consumer):
        if let length = checked.length, Int64(length) > limit {
          consumer.abandon()
          throw Refusal(.contentTooLarge, "the body is too large")
        }
        stream = Stream(consumer: consumer, limit: limit)
      }
      self.request = request
      length = checked.length
      return nil
    } catch { return error.response }
  }

  enum Taken {
    case yes

    /// Enough has arrived to extend the deadline.
    case progressed

    /// The connection should be cut.
    case tooMuch
  }

  func append(_ bytes: [UInt8], rules: RequestRules) -> Taken {
    guard stream == nil else { return pass(bytes) }
    let room = rules.bodyLimit - (request?.body.count ?? 0)
    guard bytes.count <= room, excess == 0 else {
      // A client reads the answer only after sending, so drop some excess.
      excess += bytes.count
      return excess <= 8 * rules.bodyLimit ? .yes : .tooMuch
    }
    request?.body += bytes
    return .yes
  }

  private func pass(_ bytes: [UInt8]) -> Taken {
    guard var current = stream else { return .tooMuch }
    defer { stream = current }
    current.count += Int64(bytes.count)
    if !current.isOver {
      if current.count > current.limit {
        current.fail(Refusal(.contentTooLarge, "the body is too large").response)
      } else {
        do {
          try current.consumer.take(bytes)
        } catch {
          // Details are for the log, never the client.
          let refusal = error as? Refusal ?? Refusal(.internalServerError, "the body could not be kept")
          current.fail(refusal.response)
        }
      }
    }
    if current.isOver {
      excess += bytes.count
      return excess <= Self.dropLimit ? .yes : .tooMuch
    }
    guard current.count - current.counted >= Self.progress else { return .yes }
    current.counted = current.count
    return .progressed
  }

  private static let wrongLength = Refusal(.badRequest, "the body has another length than it should")

  func answer(by handler: (Request) -> Response) -> Response {
    guard let request else { return Refusal(.badRequest, "the request has no header").response }
    if var current = stream {
      defer { stream = current }
      if let failure = current.failure { return failure }
      guard !current.isOver else { return Refusal(.badRequest, "the body has ended already").response }
      if let length, Int64(length) != current.count {
        current.fail(Self.wrongLength.response)
        return Self.wrongLength.response
      }
      current.isOver = true
      return current.consumer.answer()
    }
    guard excess == 0 else { return Refusal(.contentTooLarge, "the body is too large").response }
    if let length, length != request.body.count { return Self.wrongLength.response }
    var response = handler(request)
    if request.method == .head, case .chunks(let chunks) = response.body {
      // libmicrohttpd 0.9.75 terminates a chunked body that it does not send, which would pass for the next response.
      chunks.cancel()
      response.body = .bytes([])
    }
    return response
  }

  func answered(_ status: Status) -> RequestMeter.Answer {
    // Later segments may come from a record, unknown words from anywhere.
    let first = request?.target.segments.first ?? ""
    let isWord = first.utf8.count <= 16 && first.utf8.allSatisfy { (0x61...0x7a).contains($0) }
    let area = isWord ? first : "other"
    return RequestMeter.Answer(
      method: method, status: status.rawValue, duration: ContinuousClock.now - begun, area: area, client: client)
  }

  /// Ends the request, abandoning an unfinished stream.
  func end() {
    guard stream?.isOver == false else { return }
    stream?.isOver = true
    stream?.consumer.abandon()
  }
}

package final class RequestMeter: Sendable {
  package struct Answer: Sendable {
    /// The method; `other` if unknown.
    package var method: String

    package var status: Int

    /// From the request line to the start of the answer.
    package var duration: Duration

    /// The first path segment if a short word; empty for `/`, else `other`.
    package var area: String

    package var client: ClientAddress?
  }

  package struct Counts: Sendable {
    package var answers: [Answered: Int] = [:]

    /// The requests within each of ``RequestMeter/bounds``.
    package var withinBounds = [Int](repeating: 0, count: RequestMeter.bounds.count)

    package var total: Duration = .zero

    package var count: Int { answers.values.reduce(0, +) }
  }

  package struct Answered: Sendable, Hashable {
    package var method: String

    package var status: Int

    package init(method: String, status: Int) {
      self.method = method
      self.status = status
    }
  }

  /// The histogram bounds in milliseconds.
  package static let bounds = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

  private let state = Mutex(Counts())
  private let listener: @Sendable (Answer) -> Void

  package init(listener: @escaping @Sendable (Answer) -> Void = { _ in }) { self.listener = listener }

  package var counts: Counts { state.withLock { $0 } }

  func note(_ answer: Answer) {
    state.withLock { counts in
      counts.answers[Answered(method: answer.method, status: answer.status), default: 0] += 1
      counts.total += answer.duration
      for (place, bound) in Self.bounds.enumerated() where answer.duration <= .milliseconds(bound) {
        counts.withinBounds[place] += 1
      }
    }
    listener(answer)
  }
}
