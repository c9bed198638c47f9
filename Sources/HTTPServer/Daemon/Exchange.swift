/// One request on its way in: checked when its header is there, answered when its body is.
final class Exchange {
  /// The target as it stood in the request's line.
  let target: String

  private var request: Request?
  private var length: Int? = 0
  private var excess = 0

  init(target: String) { self.target = target }

  /// Whether the header has been looked at.
  var hasBegun: Bool { request != nil }

  /// Takes the header; a response where the request is refused, and its body not read.
  ///
  /// - Parameter size: the bytes of the header as they came.
  func begin(method: String, version: String, headers: HeaderFields, size: Int, rules: RequestRules) -> Response? {
    do throws(Refusal) {
      try rules.checkSize(size, method: method, target: target, version: version, headers: headers)
      let checked = try rules.check(method: method, target: target, version: version, headers: headers)
      request = Request(checked.method, checked.target, headers: headers)
      length = checked.length
      return nil
    } catch {
      return error.response
    }
  }

  /// Takes a piece of the body; false where it is so much that the connection is better cut.
  func append(_ bytes: [UInt8], rules: RequestRules) -> Bool {
    let room = rules.bodyLimit - (request?.body.count ?? 0)
    guard bytes.count <= room, excess == 0 else {
      // A client only looks for the answer when it has sent everything, so a little more is read and dropped.
      excess += bytes.count
      return excess <= 8 * rules.bodyLimit
    }
    request?.body += bytes
    return true
  }

  /// The answer, when the body is there.
  func finish(_ handler: (Request) -> Response) -> Response {
    guard let request else { return Refusal(.badRequest, "the request has no header").response }
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
}
