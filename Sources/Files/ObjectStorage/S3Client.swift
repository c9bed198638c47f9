import Compatibility
import Failures
import Foundation
import StoreFiles

/// A client of the S3 protocol for one bucket.
///
/// All its functions can be called from several threads at once, and wait for the answer. Requests that failed for a
/// reason that may pass are sent again, after pauses of random lengths that become longer.
package final class S3Client: Sendable {
  /// The bucket.
  package let bucket: String

  /// How the server is reached.
  package let settings: S3Settings

  let waiting: S3Waiting
  private let signer: Mutex<RequestSigner>
  private let renewal: (@Sendable () -> S3Credentials?)?
  private let pool = CurlPool()

  /// A client; nothing is sent yet.
  ///
  /// - Parameter renewal: reads the credentials anew, as where those that were read ended meanwhile; nil where they stay.
  package init(
    _ bucket: String, _ settings: S3Settings, waiting: S3Waiting = .machine,
    renewal: (@Sendable () -> S3Credentials?)? = nil
  ) {
    self.renewal = renewal
    self.bucket = bucket
    self.settings = settings
    self.waiting = waiting
    signer = Mutex(RequestSigner(credentials: settings.credentials, region: settings.region))
  }

  /// Reads the credentials anew.
  ///
  /// - Returns: whether they are others now.
  private func renewCredentials() -> Bool {
    guard let new = renewal?() else { return false }
    return signer.withLock { signer in
      guard signer.credentials != new else { return false }
      signer = RequestSigner(credentials: new, region: settings.region)
      return true
    }
  }

  /// How many connections were made so far.
  package var connections: Int { pool.connections }

  /// A request, apart from where it goes.
  struct Call {
    var method: HTTPRequest.Method

    /// The key of the object; nil for the bucket itself.
    var key: String?

    var query: [(name: String, value: String)] = []
    var fields: [(name: String, value: String)] = []
    var body: ArraySlice<UInt8> = []

    /// The bytes that the body of the answer may have.
    var limit = 8 << 20

    /// Whether the server may need long for the answer.
    var isWork = false

    /// What is being done, as an infinitive phrase.
    var operation: String
  }

  /// Sends a request until an answer comes that is final.
  ///
  /// - Parameter accepted: the refusals that are given back, and not thrown, by their status.
  func send(_ call: Call, accepting accepted: Set<Int> = []) throws(S3Error) -> HTTPAnswer {
    for attempt in 1... {
      let result = try once(call)
      let failure: S3Error
      var asked = 0
      switch result {
      case .success(let answer):
        if answer.isSuccess || accepted.contains(answer.status) {
          return answer
        }
        failure = refusal(answer, call)
        if attempt < settings.patience.attempts, Self.mayBeOfCredentials(failure, call), renewCredentials() { continue }
        guard Self.mayPass(answer) else { throw failure }
        asked = answer.fields["retry-after"].flatMap { Int($0) } ?? 0
      case .failure(let error):
        failure = self.failure(error, call)
        guard error.kind == .unreachable || error.kind == .timeOut else { throw failure }
      }
      guard attempt < settings.patience.attempts else { throw failure }
      let pause = waiting.random(settings.patience.pause(after: attempt))
      waiting.pause(max(pause, min(max(asked, 0), settings.patience.longestPauseAsked) * 1000))
    }
    // The loop ends by itself only after more attempts than there are numbers.
    throw S3Error(.server, operation: call.operation, detail: "it was tried too often")
  }

  private func once(_ call: Call) throws(S3Error) -> Result<HTTPAnswer, TransportFailure> {
    let request = request(call)
    let fields = signer.withLock { $0 }.fields(of: request, at: waiting.now())
    let query = request.encodedQuery
    let url =
      "\(settings.endpoint.scheme)://\(request.authority)\(request.path)" + (query.isEmpty ? "" : "?\(query)")
    let options = CurlHandle.Options(
      patience: settings.patience, authorities: settings.authorities, limit: call.limit, isWork: call.isWork)
    do throws(TransportFailure) {
      return .success(
        try pool.withHandle { handle throws(TransportFailure) in
          try handle.perform(request.method, url: url, fields: fields, body: request.body, options)
        })
    } catch {
      return .failure(error)
    }
  }

  private func request(_ call: Call) -> HTTPRequest {
    let key = call.key.map { PercentEncoding.encode($0, keepsSlashes: true) } ?? ""
    let endpoint = settings.endpoint
    var request = HTTPRequest(
      method: call.method, authority: endpoint.authority(bucket: settings.usesPathStyle ? nil : bucket),
      path: endpoint.path + (settings.usesPathStyle ? "/\(bucket)" : "") + "/\(key)")
    if call.key == nil, settings.usesPathStyle { request.path.removeLast() }
    request.query = call.query
    request.fields = call.fields
    request.body = call.body
    // Amazon's buckets that lock what is written want the digest of an empty object too.
    if call.method == .put || !call.body.isEmpty {
      request.fields.append(("content-md5", ContentDigest.md5(call.body)))
    }
    return request
  }

  /// Whether other credentials may help; of an answer without a body the status alone tells.
  private static func mayBeOfCredentials(_ failure: S3Error, _ call: Call) -> Bool {
    failure.kind == .credentials || failure.kind == .access || call.method == .head && failure.status == 400
  }

  /// Whether a refusal may pass by itself.
  private static func mayPass(_ answer: HTTPAnswer) -> Bool {
    switch answer.status {
    case 501, 505: false
    case 429, 500...599: true
    // Amazon's word for a connection through which nothing came; and for two conditional writes at once.
    case 400: answer.word == "RequestTimeout"
    case 409: answer.word == "ConditionalRequestConflict" || answer.word == "OperationAborted"
    default: false
    }
  }

  /// Where a request goes, for people.
  func location(_ key: String?) -> String {
    "\(S3Address.scheme)\(bucket)" + (key.map { "/" + printable($0) } ?? "")
  }
}
