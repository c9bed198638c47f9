internal import Foundation
package import Platform

/// Sends requests to one receiver, following its redirections.
struct Requester: Sendable {
  private static let redirectionLimit = 3

  let transport: any UploadTransport
  let receiver: ReceiverAddress
  let token: AccessToken?
  let clock: SendingClock

  /// - Throws: ``TryFailure`` without an answer, or for a foreign redirection.
  func ask(
    _ method: UploadRequest.Method, _ address: ReceiverAddress, fields: [String: String] = [:],
    body: UploadRequest.Body = .none, progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) throws -> UploadResponse {
    guard address.origin == receiver.origin else { throw TryFailure.final(elsewhere()) }
    var request = UploadRequest(method, address, fields: fields, body: body)
    if let token { request.fields["Authorization"] = token.field }
    request.fields["User-Agent"] = "lazaret/\(LibraryVersion.current)"
    for _ in 0...Self.redirectionLimit {
      let response = try wrapping(told) { () throws(TransportError) in try transport.send(request, progress: progress) }
      guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
      let keepsMethod = response.status == 307 || response.status == 308 || [.head, .get, .options].contains(method)
      guard keepsMethod, let location = response["Location"], let next = request.address.resolving(location) else {
        throw TryFailure.final(elsewhere())
      }
      request.address = next
    }
    throw TryFailure.final(elsewhere())
  }

  private func elsewhere() -> SupportBundleError {
    SupportBundleError(
      .redirected,
      detail: "the receiver redirects to another address, and bundles are sent only to the address that was given")
  }

  private func told(_ error: TransportError) -> TryFailure {
    let kind: SupportBundleErrorKind =
      switch error.kind {
      case .connection: .unreachable
      case .untrusted: .untrusted
      case .request: .sendingRequest
      case .file: .bundleChanged
      }
    return TryFailure(error: SupportBundleError(kind, detail: error.detail), isPassing: kind.isEnvironmental)
  }

  // MARK: Answers

  func failure(_ response: UploadResponse, to what: String) -> TryFailure {
    let asked = response["Retry-After"].flatMap { RetryAfter.parse($0, now: clock.now()) }
    let (kind, detail): (SupportBundleErrorKind, String)
    var hint: String?
    switch response.status {
    case 401:
      (kind, detail) = (
        .unauthorized, token == nil ? "the receiver wants a token" : "the receiver does not know the token"
      )
    case 413:
      let limit = response.number("Tus-Max-Size").map { ": it takes at most \($0) bytes" } ?? ""
      (kind, detail) = (.tooLarge, "the receiver takes no bundle of that size\(limit)")
      hint = "Export less of the store, or ask the receiver to take more."
    case 507:
      (kind, detail) = (.quota, "the receiver has no room for it")
      hint = "Ask the receiver, or try again later: lazaret outbox send"
    case 408, 409, 423, 425, 429, 460, 500...599:
      (kind, detail) = (.unreachable, "the receiver has no time for \(what) now (status \(response.status))")
    case 412:
      (kind, detail) = (.refused, "the receiver speaks another version of tus")
      hint = "Ask the receiver for an address of tus 1.0."
    case 400...499:
      (kind, detail) = (.refused, "the receiver refused \(what) (status \(response.status))")
      hint = "Check the address and the token; the receiver can tell why it refused."
    default: return odd("it answered \(what) with status \(response.status)")
    }
    let error = SupportBundleError(kind, detail: detail + said(by: response), hint: hint)
    return kind.isEnvironmental ? .passing(error, asked: asked) : .final(error)
  }

  func odd(_ detail: String, isPassing: Bool = false) -> TryFailure {
    TryFailure(error: SupportBundleError(.answer, detail: detail), isPassing: isPassing)
  }

  /// Returns printable problem details (RFC 9457).
  private func said(by response: UploadResponse) -> String {
    struct Problem: Decodable {
      var title: String?
      var detail: String?
    }
    guard response["Content-Type"]?.lowercased().hasPrefix("application/problem+json") == true,
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body)),
      let words = problem.detail ?? problem.title
    else { return "" }
    let shown = printable(String(words.prefix(200)))
    if let token, token.isSaid(in: shown) { return "" }
    return "; it says: \(shown)"
  }
}

struct TryFailure: Error {
  var error: SupportBundleError

  var isPassing: Bool

  /// The pause that the receiver asks for.
  var asked: Duration?

  static func passing(_ error: SupportBundleError, asked: Duration? = nil) -> TryFailure {
    TryFailure(error: error, isPassing: true, asked: asked)
  }

  static func final(_ error: SupportBundleError) -> TryFailure { TryFailure(error: error, isPassing: false) }
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
  /// The longest accepted pause: a day.
  package static let limit = Duration.seconds(86400)

  /// Returns the time from now; nil if malformed.
  package static func parse(_ field: String, now: Timestamp) -> Duration? {
    let words = field.split(separator: " ")
    if words.count == 1, let digits = words.first, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      guard digits.utf8.count <= 9, let seconds = Int64(digits) else { return limit }
      return min(.seconds(seconds), limit)
    }
    guard let date = HTTPDate.parse(field) else { return nil }
    let seconds = date.secondsSince1970 - now.secondsSince1970
    return min(max(.seconds(seconds), .zero), limit)
  }
}

/// Pauses between tries: random, below a bound that grows from one second to five minutes.
///
/// "Full jitter" keeps the clients of a receiver from returning simultaneously.
public struct RetrySchedule: Sendable {
  /// The first bound.
  public static let first = Duration.seconds(1)

  /// The last bound.
  public static let last = Duration.seconds(300)

  private var generator: SeededGenerator

  /// Creates a schedule; equal seeds give equal pauses.
  public init(seed: UInt64 = UInt64.random(in: 0 ... .max)) { generator = SeededGenerator(seed: seed) }

  /// Returns the bound after a number of consecutive failures, from 1.
  public static func bound(after failures: Int) -> Duration {
    min(last, first * Int64(1 << min(max(failures, 1) - 1, 9)))
  }

  /// Returns a pause after a number of consecutive failures, from 1.
  ///
  /// - Parameter asked: the receiver's minimum.
  public mutating func pause(after failures: Int, asked: Duration? = nil) -> Duration {
    max(Self.bound(after: failures) * Double.random(in: 0...1, using: &generator), asked ?? .zero)
  }
}
