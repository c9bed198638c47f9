internal import Platform

/// One request on its way in: checked when its header is there, answered when its body is.
final class Exchange {
  /// The target as it stood in the request's line.
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

    /// How many bytes had come when the client was last given time for more.
    var counted: Int64 = 0
    var failure: Response?
    var isOver = false
  }

  /// Within the time that a body has, at least so many bytes of a stream must come.
  private static let progress: Int64 = 64 << 10

  /// The most bytes that are read and dropped so that a client that sends on still gets its answer.
  private static let dropLimit = 32 << 20

  init(target: String) { self.target = target }

  /// Whether the header has been looked at.
  var hasBegun: Bool { request != nil }

  /// Whether a body is to come.
  var hasBody: Bool { length != 0 }

  /// Whether the body goes to a consumer.
  var isStreamed: Bool { stream != nil }

  /// Takes the header; a response where the request is refused, and its body not read.
  ///
  /// - Parameters:
  ///   - peer: the other end of the connection.
  ///   - size: the bytes of the header as they came.
  ///   - intake: says for a request, and the length of its body, who takes the body; nil where it is collected.
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
      case nil:
        try rules.checkLength(checked.length)
      case .refused(let response):
        return response
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
    } catch {
      return error.response
    }
  }

  /// What became of a piece of the body.
  enum Taken {
    case yes

    /// It was taken, and enough has come since for the client to get more time.
    case progressed

    /// There is so much that the connection is better cut.
    case tooMuch
  }

  /// Takes a piece of the body.
  func append(_ bytes: [UInt8], rules: RequestRules) -> Taken {
    guard stream == nil else { return pass(bytes) }
    let room = rules.bodyLimit - (request?.body.count ?? 0)
    guard bytes.count <= room, excess == 0 else {
      // A client only looks for the answer when it has sent everything, so a little more is read and dropped.
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
        } catch let refusal as Refusal {
          current.fail(refusal.response)
        } catch {
          // What went wrong is for the log, and never for the client.
          current.fail(Refusal(.internalServerError, "the body could not be kept").response)
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

  /// The answer, when the body is there.
  func finish(_ handler: (Request) -> Response) -> Response {
    guard let request else { return Refusal(.badRequest, "the request has no header").response }
    if var current = stream {
      defer { stream = current }
      if let failure = current.failure { return failure }
      guard !current.isOver else { return Refusal(.badRequest, "the body has ended already").response }
      if let length, Int64(length) != current.count {
        current.fail(Refusal(.badRequest, "the body has another length than it should").response)
        return current.failure ?? Refusal(.badRequest, "the body has another length than it should").response
      }
      current.isOver = true
      return current.consumer.finish()
    }
    guard excess == 0 else { return Refusal(.contentTooLarge, "the body is too large").response }
    if let length, length != request.body.count {
      return Refusal(.badRequest, "the body has another length than it should").response
    }
    var response = handler(request)
    if request.method == .head, case .chunks(let chunks) = response.body {
      // libmicrohttpd 0.9.75 ends a chunked body that it does not send, which the next response would be taken for.
      chunks.cancel()
      response.body = .bytes([])
    }
    return response
  }

  /// What is told of an answer.
  func answered(_ status: Status) -> RequestMeter.Answer {
    // What stands further behind in an address may be of a record, and what is no word of ours may be anything.
    let first = request?.target.segments.first ?? ""
    let isWord = first.utf8.count <= 16 && first.utf8.allSatisfy { (0x61...0x7a).contains($0) }
    let area = isWord ? first : "other"
    return RequestMeter.Answer(
      method: method, status: status.rawValue, duration: ContinuousClock.now - begun, area: area, client: client)
  }

  /// The request is over, whether it was answered or not.
  func end() {
    guard stream?.isOver == false else { return }
    stream?.isOver = true
    stream?.consumer.abandon()
  }
}

extension Exchange.Stream {
  /// Ends the taking; what is still to come is dropped.
  fileprivate mutating func fail(_ response: Response) {
    guard !isOver else { return }
    isOver = true
    failure = response
    consumer.abandon()
  }
}

/// Counts the requests of a server by what was answered, and how long that took.
package final class RequestMeter: Sendable {
  /// What is known of an answered request.
  package struct Answer: Sendable {
    /// The method; `other` for one that is not known.
    package var method: String

    /// The status of the answer.
    package var status: Int

    /// From the request's line to the begin of the answer.
    package var duration: Duration

    /// The first part of the path, where it is a short word; empty for `/`, and `other` for anything else.
    package var area: String

    /// Where it came from, where that is known.
    package var client: ClientAddress?
  }

  /// The counts at one moment.
  package struct Counts: Sendable {
    /// Requests by method and status.
    package var answers: [Answered: Int] = [:]

    /// Requests that took at most so long, for each of ``RequestMeter/bounds``.
    package var withinBounds = [Int](repeating: 0, count: RequestMeter.bounds.count)

    /// How long all of them took.
    package var total: Duration = .zero

    /// The number of all of them.
    package var count: Int { answers.values.reduce(0, +) }
  }

  /// A method and the status that was answered.
  package struct Answered: Sendable, Hashable {
    /// The method.
    package var method: String

    /// The status.
    package var status: Int

    /// A method and a status.
    package init(method: String, status: Int) {
      self.method = method
      self.status = status
    }
  }

  /// The bounds of the times that are told apart, in milliseconds.
  package static let bounds = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

  private let state = Mutex(Counts())
  private let listener: @Sendable (Answer) -> Void

  /// - Parameter listener: told of each answer, on the thread that gives it.
  package init(listener: @escaping @Sendable (Answer) -> Void = { _ in }) { self.listener = listener }

  /// The counts so far.
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
