internal import Foundation
internal import StoreFiles

/// Asks one receiver, with one token: follows redirections at that receiver, and tells answers that are failures.
struct Requester: Sendable {
  private static let operation = "send the bundle"
  private static let redirectionLimit = 3

  let transport: any UploadTransport
  let receiver: ReceiverAddress
  let token: AccessToken?
  let clock: SendingClock

  /// Asks, and follows redirections.
  ///
  /// - Throws: ``TryFailure`` where there was no answer, or one that leads elsewhere.
  func ask(
    _ method: UploadRequest.Method, _ address: ReceiverAddress, fields: [String: String] = [:],
    body: UploadRequest.Body = .none, progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) throws -> UploadResponse {
    guard address.origin == receiver.origin else { throw TryFailure.final(elsewhere()) }
    var request = UploadRequest(method, address, fields: fields, body: body)
    if let token { request.fields["Authorization"] = token.field }
    request.fields["User-Agent"] = "lazaret/\(LibraryVersion.current)"
    for _ in 0...Self.redirectionLimit {
      let response = try wrapping(told) { () throws(TransportError) in
        try transport.send(request, progress: progress)
      }
      guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
      let keepsMethod = response.status == 307 || response.status == 308 || [.head, .get, .options].contains(method)
      guard keepsMethod, let location = response["Location"], let next = request.address.resolving(location) else {
        throw TryFailure.final(elsewhere())
      }
      request.address = next
    }
    throw TryFailure.final(elsewhere())
  }

  private func elsewhere() -> SendingError {
    SendingError(
      .redirected, operation: Self.operation,
      detail: "the receiver redirects to another address, and bundles are sent only to the address that was given")
  }

  private func told(_ error: TransportError) -> TryFailure {
    switch error.kind {
    case .connection:
      .passing(SendingError(.unreachable, operation: Self.operation, detail: error.detail))
    case .untrusted:
      .final(SendingError(.untrusted, operation: Self.operation, detail: error.detail))
    case .request:
      .final(SendingError(.request, operation: Self.operation, detail: error.detail))
    case .file:
      .final(SendingError(.changed, operation: Self.operation, detail: error.detail))
    }
  }

  // MARK: Answers

  /// The failure that an answer is.
  func failure(_ response: UploadResponse, to what: String) -> TryFailure {
    let asked = response["Retry-After"].flatMap { RetryAfter.parse($0, now: clock.now()) }
    let words = said(by: response)
    func error(_ kind: SendingError.Kind, _ detail: String, _ hint: String) -> SendingError {
      SendingError(kind, operation: Self.operation, detail: detail + words, hint: hint)
    }
    switch response.status {
    case 401:
      return .final(
        error(
          .unauthorized,
          token == nil ? "the receiver wants a token" : "the receiver does not know the token",
          "Give the token that the receiver gave to you, with --token-file or in LAZARET_TOKEN."))
    case 413:
      let limit = response.number("Tus-Max-Size").map { ": it takes at most \($0) bytes" } ?? ""
      return .final(
        error(
          .tooLarge, "the receiver takes no bundle of that size\(limit)",
          "Export less of the store, or ask the receiver to take more."))
    case 507:
      return .passing(
        error(.quota, "the receiver has no room for it", "Ask the receiver, or try again later: lazaret outbox send"),
        asked: asked)
    case 408, 409, 423, 425, 429, 460, 500...599:
      return .passing(
        error(
          .unreachable, "the receiver has no time for \(what) now (status \(response.status))",
          "It waits in the outbox; go on with: lazaret outbox send"),
        asked: asked)
    case 412:
      return .final(
        error(.refused, "the receiver speaks another version of tus", "Ask the receiver for an address of tus 1.0."))
    case 400...499:
      return .final(
        error(
          .refused, "the receiver refused \(what) (status \(response.status))",
          "Check the address and the token; the receiver can tell why it refused."))
    default:
      return .final(nonsense("it answered \(what) with status \(response.status)"))
    }
  }

  /// An answer that the protocol does not have.
  func nonsense(_ detail: String) -> SendingError {
    SendingError(.answer, operation: Self.operation, detail: detail)
  }

  /// What a receiver says about a refusal (RFC 9457), as far as it can be shown.
  private func said(by response: UploadResponse) -> String {
    struct Problem: Decodable {
      var title: String?
      var detail: String?
    }
    guard response["Content-Type"]?.lowercased().hasPrefix("application/problem+json") == true,
      // A receiver's words are welcome, and not needed.
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body)),
      let words = problem.detail ?? problem.title
    else { return "" }
    let shown = printable(String(words.prefix(200)))
    if let token, token.isSaid(in: shown) { return "" }
    return "; it says: \(shown)"
  }
}
