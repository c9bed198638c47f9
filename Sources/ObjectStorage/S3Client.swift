package import Backup
import Foundation
package import Platform

/// A thread-safe, synchronous S3 client for one bucket.
///
/// It retries transient errors after random, growing pauses.
package final class S3Client: Sendable {
  package let bucket: String

  package let settings: S3Settings

  let waiting: S3Waiting
  private let signer: Mutex<RequestSigner>
  private let renewal: (@Sendable () -> S3Credentials?)?
  private let pool = CurlPool()

  /// Creates a client without sending a request.
  ///
  /// - Parameter renewal: rereads expired credentials; nil if they are fixed.
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

  /// Rereads the credentials; returns whether they changed.
  private func renewCredentials() -> Bool {
    guard let new = renewal?() else { return false }
    return signer.withLock { signer in
      guard signer.credentials != new else { return false }
      signer = RequestSigner(credentials: new, region: settings.region)
      return true
    }
  }

  package var connections: Int { pool.connections }

  struct Call {
    var method: HTTPRequest.Method

    /// The object's key; nil for the bucket.
    var key: String?

    var query: [(name: String, value: String)] = []
    var fields: [(name: String, value: String)] = []
    var body: ArraySlice<UInt8> = []

    /// The most bytes of the answer's body.
    var limit = 8 << 20

    /// Whether the answer may take long.
    var isWork = false

    /// The action, as an infinitive phrase.
    var operation: String
  }

  /// Sends a request with retries.
  ///
  /// - Parameter accepted: error statuses to return instead of throw.
  func send(_ call: Call, accepting accepted: Set<Int> = []) throws(BackupError) -> HTTPAnswer {
    for attempt in 1... {
      let failure: BackupError
      var asked = 0
      switch once(call) {
      case .success(let answer):
        if answer.isSuccess || accepted.contains(answer.status) { return answer }
        failure = refusal(answer, call)
        if attempt < settings.retries.attempts, Self.mayBeOfCredentials(failure, call), renewCredentials() { continue }
        guard Self.mayPass(answer) else { throw failure }
        asked = answer.fields["retry-after"].flatMap { Int($0) } ?? 0
      case .failure(let error):
        failure = self.failure(error, call)
        guard error.kind == .unreachable || error.kind == .timeOut else { throw failure }
      }
      guard attempt < settings.retries.attempts else { throw failure }
      let pause = waiting.random(settings.retries.pause(after: attempt))
      waiting.pause(max(pause, min(max(asked, 0), settings.retries.longestPauseAsked) * 1000))
    }
    // Unreachable before the counter overflows.
    throw BackupError(.s3Server, operation: call.operation, detail: "it was tried too often")
  }

  private func once(_ call: Call) -> Result<HTTPAnswer, TransportFailure> {
    let request = request(call)
    let fields = signer.withLock { $0 }.fields(of: request, at: waiting.now())
    let query = request.encodedQuery
    let url = "\(settings.endpoint.scheme)://\(request.authority)\(request.path)" + (query.isEmpty ? "" : "?\(query)")
    let options = CurlHandle.Options(
      retries: settings.retries, authorities: settings.authorities, limit: call.limit, isWork: call.isWork)
    let hasBody = request.method == .put || request.method == .post
    return Result { () throws(TransportFailure) in
      try pool.withHandle { handle throws(TransportFailure) in
        try handle.perform(
          request.method.rawValue, url: url, fields: fields, body: hasBody ? .bytes(request.body) : .none, options)
      }
    }
  }

  private func request(_ call: Call) -> HTTPRequest {
    let key = call.key.map { PercentEncoding.encode($0, keepsSlashes: true) } ?? ""
    let endpoint = settings.endpoint
    var request = HTTPRequest(
      method: call.method, authority: endpoint.authority(bucket: settings.usesPathStyle ? nil : bucket),
      path: endpoint.path + (settings.usesPathStyle ? "/\(bucket)" : "") + "/\(key)", query: call.query,
      fields: call.fields, body: call.body)
    if call.key == nil, settings.usesPathStyle { request.path.removeLast() }
    // Amazon's object-lock buckets demand the digest of an empty object too.
    if call.method == .put || !call.body.isEmpty {
      request.fields.append(("content-md5", ContentDigest.md5(call.body)))
    }
    return request
  }

  /// Whether other credentials may help; an answer without body has only its status.
  private static func mayBeOfCredentials(_ failure: BackupError, _ call: Call) -> Bool {
    failure.kind == .s3Credentials || failure.kind == .s3Access || call.method == .head && failure.status == 400
  }

  private static func mayPass(_ answer: HTTPAnswer) -> Bool {
    switch answer.status {
    case 501, 505: false
    case 429, 500...599: true
    // Amazon's codes for an idle connection, and for two conditional writes at once.
    case 400: answer.word == "RequestTimeout"
    case 409: answer.word == "ConditionalRequestConflict" || answer.word == "OperationAborted"
    default: false
    }
  }

  func location(_ key: String?) -> String { "\(S3Address.scheme)\(bucket)" + (key.map { "/" + printable($0) } ?? "") }
}

extension S3Client {
  package func keeping() throws(BackupError) -> BucketRetention {
    if let lock = try configuration("object-lock"), lock.name == "ObjectLockConfiguration",
      lock.text("ObjectLockEnabled") == "Enabled"
    {
      return .locked(days: Self.days(lock))
    }
    guard let versioning = try configuration("versioning"), versioning.name == "VersioningConfiguration" else {
      return .unknown
    }
    // Deletion is final under suspended versioning.
    return versioning.text("Status") == "Enabled" ? .versions : .nothing
  }

  /// The default retention (Amazon S3 API Reference, "DefaultRetention").
  private static func days(_ lock: XMLElement) -> Int? {
    guard let rule = lock.all("Rule").first?.all("DefaultRetention").first else { return nil }
    let days = rule.text("Days").flatMap { Int($0) } ?? rule.text("Years").flatMap { Int($0) }.map { $0 &* 365 }
    return days.flatMap { (1...36_500).contains($0) ? $0 : nil }
  }

  /// A section of the bucket's configuration; nil if absent or forbidden.
  private func configuration(_ name: String) throws(BackupError) -> XMLElement? {
    let call = Call(method: .get, query: [(name, "")], operation: "look at the bucket")
    do throws(BackupError) {
      let answer = try send(call, accepting: [403, 404, 405])
      return answer.isSuccess ? XMLElement(answer.body) : nil
    } catch  where error.kind == .s3Unsupported || error.status == 400 { return nil }
  }
}

extension S3Client {
  func refusal(_ answer: HTTPAnswer, _ call: Call) -> BackupError {
    let word = answer.word
    let kind = Self.kind(answer, word)
    var detail = "the server answered \(answer.status)"
    if let word { detail += " \(word)" }
    detail += " for \(location(call.key))"
    var hint: String?
    if kind == .s3Region, let region = answer.fields["x-amz-bucket-region"], region.utf8.count <= 64 {
      hint = "Set AWS_REGION=\(printable(region)): that is where the bucket is."
    }
    return BackupError(
      kind, operation: call.operation, detail: detail, hint: hint, details: .init(status: answer.status, word: word))
  }

  private static func kind(_ answer: HTTPAnswer, _ word: String?) -> BackupErrorKind {
    switch word {
    case "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "InvalidTokenId",
      "TokenRefreshRequired":
      return .s3Credentials
    case "RequestTimeTooSkewed": return .s3Clock
    case "NoSuchBucket": return .s3NoBucket
    case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
      return .s3Region
    case "BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest", "XAmzContentChecksumMismatch": return .s3Checksum
    case "NotImplemented": return .s3Unsupported
    case "RequestTimeout": return .s3TimeOut
    default: break
    }
    switch answer.status {
    case 301, 307, 308: return .s3Region
    case 401: return .s3Credentials
    case 403: return .s3Access
    case 404: return .s3NotFound
    case 409, 412: return .s3Precondition
    case 501: return .s3Unsupported
    case 429, 500...599: return .s3Server
    default: return .s3Answer
    }
  }

  func failure(_ failure: TransportFailure, _ call: Call) -> BackupError {
    let server = "\(settings.endpoint.scheme)://\(settings.endpoint.authority())"
    let (kind, detail): (BackupErrorKind, String) =
      switch failure.kind {
      case .unreachable: (.s3Unreachable, "the connection to \(server) could not be made, or broke")
      case .timeOut: (.s3TimeOut, "\(server) did not answer in time")
      case .certificate: (.s3Certificate, "the certificate of \(server) is not trusted")
      case .tooMuch: (.s3Answer, "\(server) sent more than it was asked for")
      case .unusable, .file: (.s3Answer, "the answer of \(server) cannot be read")
      }
    return BackupError(kind, operation: call.operation, detail: "\(detail) (libcurl \(failure.code))")
  }

  /// The error of an answer that breaks the protocol.
  func odd(_ detail: String, _ call: Call) -> BackupError {
    BackupError(.s3Answer, operation: call.operation, detail: "\(detail), for \(location(call.key))")
  }
}

extension S3Client {
  /// The most pages of 1,000 objects.
  private static let mostPages = 1000

  /// An impossible size: Amazon's limit is 50 TB.
  private static let largestObject: Int64 = 1 << 50

  /// Lists a key prefix.
  ///
  /// - Throws: `s3-answer` for malformed or endless pages, and keys without the prefix.
  package func list(_ prefix: String) throws(BackupError) -> S3Listing {
    var listing = S3Listing()
    var token: String?
    for _ in 1...Self.mostPages {
      var call = Call(method: .get, operation: "list the object storage")
      call.query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", prefix)]
      if let token { call.query.append(("continuation-token", token)) }
      let answer = try send(call)
      listing.date = answer.fields["date"].flatMap { HTTPDate.parse($0) }
      guard let page = XMLElement(answer.body), page.name == "ListBucketResult" else {
        throw odd("the answer is no listing", call)
      }
      let decoded = page.keyDecoding()
      for element in page.all("Contents") {
        guard let key = element.text("Key").flatMap(decoded), key.hasPrefix(prefix), key.utf8.count <= 1024,
          let bytes = element.text("Size").flatMap({ Int64($0) }), (0...Self.largestObject).contains(bytes)
        else { throw odd("the listing has an entry that cannot be", call) }
        listing.objects.append(
          S3ObjectFacts(key: key, bytes: bytes, modified: element.text("LastModified").flatMap(Self.date)))
      }
      guard page.text("IsTruncated") == "true" else { return listing }
      let next = page.text("NextContinuationToken")
      guard let next, !next.isEmpty, next.utf8.count <= 4096, next != token else {
        throw odd("the listing does not say where it goes on", call)
      }
      token = next
    }
    throw BackupError(
      .s3Answer, operation: "list the object storage",
      detail: "more than \(Self.mostPages) pages lie under \(location(prefix))",
      hint: "Use a prefix of its own for each store.")
  }

  /// Parses `2009-10-12T17:50:30.000Z`.
  static func date(_ text: String) -> Timestamp? {
    let digits = text.prefix(19)
    return digits.count == 19 && text.hasSuffix("Z") ? Timestamp(digits + "Z") : nil
  }
}

extension XMLElement {
  /// Returns the decoding of the keys of a listing's page.
  func keyDecoding() -> (String) -> String? {
    let isEncoded = text("EncodingType") == "url"
    return { isEncoded ? PercentEncoding.decode($0[...], plusIsSpace: true) : $0 }
  }
}

extension S3Client {
  /// The field by which a writer recognizes its object.
  private static let writerField = "x-amz-meta-lazaret-write"

  /// Writes an object with one request.
  ///
  /// - Throws: `s3-precondition` if the condition fails; `s3-unsupported` if the server lacks conditions.
  package func put(
    _ key: String, _ bytes: ArraySlice<UInt8>, when condition: S3WriteCondition = .none
  ) throws(BackupError) {
    var call = Call(method: .put, key: key, body: bytes, operation: "write to the object storage")
    guard condition == .absent else {
      _ = try send(call)
      return
    }
    let writer = UniversalIdentifier.random().description
    call.fields = [("if-none-match", "*"), (Self.writerField, writer)]
    do throws(BackupError) {
      let answer = try send(call, accepting: [412])
      guard answer.status == 412 else { return }
      // Perhaps only an earlier answer was lost; libcurl also resends by itself on a kept connection that the server
      // closed.
      if try self.writer(of: key) == writer { return }
      throw refusal(answer, call)
    } catch  where error.kind == .s3Unsupported {
      var error = error
      error.detail += "; the server does not write conditionally"
      throw error
    }
  }

  private func writer(of key: String) throws(BackupError) -> String? {
    let call = Call(method: .head, key: key, limit: 0, operation: "look at an object")
    let answer = try send(call, accepting: [404])
    return answer.status == 404 ? nil : answer.fields[Self.writerField]
  }

  /// Reads a range, truncated at the object's end.
  ///
  /// - Throws: `s3-not-found`; `s3-answer` if the server sent another range.
  package func get(_ key: String, at offset: Int64, length: Int) throws(BackupError) -> [UInt8] {
    guard offset >= 0, length > 0 else { return [] }
    let last = offset.addingReportingOverflow(Int64(length) - 1)
    let end = last.overflow ? Int64.max : last.partialValue
    let call = Call(
      method: .get, key: key, fields: [("range", "bytes=\(offset)-\(end)")], limit: length,
      operation: "read from the object storage")
    for attempt in 1... {
      let answer = try send(call, accepting: [416])
      if answer.status == 416 { return [] }
      if let bytes = Self.range(answer, offset, length) { return bytes }
      // A body shorter than its header states was cut off.
      guard attempt < settings.retries.attempts else { throw odd("other bytes came than were asked for", call) }
      waiting.pause(waiting.random(settings.retries.pause(after: attempt)))
    }
    return []
  }

  /// The bytes of the answer; nil if it has another range.
  private static func range(_ answer: HTTPAnswer, _ offset: Int64, _ length: Int) -> [UInt8]? {
    // A whole object answers the request only if the range covers it.
    if answer.status == 200 { return offset == 0 && answer.body.count <= length ? answer.body : nil }
    guard answer.status == 206, let field = answer.fields["content-range"], field.hasPrefix("bytes ") else {
      return nil
    }
    let numbers = field.dropFirst("bytes ".count).split(whereSeparator: { $0 == "-" || $0 == "/" }).map { Int64($0) }
    guard numbers.count == 3, let first = numbers[0], let last = numbers[1], let whole = numbers[2],
      first == offset, last >= first, last < whole, last - first + 1 == Int64(answer.body.count),
      last - first + 1 == min(Int64(length), whole - offset)
    else { return nil }
    return answer.body
  }

  /// The object's metadata; nil if missing.
  package func head(_ key: String) throws(BackupError) -> S3ObjectFacts? {
    let call = Call(method: .head, key: key, limit: 0, operation: "look at an object")
    let answer = try send(call, accepting: [404])
    if answer.status == 404 { return nil }
    guard let length = answer.fields["content-length"].flatMap({ Int64($0) }), length >= 0 else {
      throw odd("the answer has no length", call)
    }
    return S3ObjectFacts(
      key: key, bytes: length, modified: answer.fields["last-modified"].flatMap { HTTPDate.parse($0) })
  }

  /// Deletes an object, if any; a versioned bucket only hides it.
  package func delete(_ key: String) throws(BackupError) {
    _ = try send(Call(method: .delete, key: key, operation: "remove from the object storage"), accepting: [404])
  }
}

enum ContentDigest {
  /// The base64 MD5 for `Content-MD5` (RFC 1864).
  ///
  /// It does not protect against intent; the signature covers the SHA-256.
  static func md5(_ bytes: ArraySlice<UInt8>) -> String { Data(Insecure.MD5.hash(data: bytes)).base64EncodedString() }
}

package struct S3ObjectFacts: Sendable, Hashable {
  package var key: String

  package var bytes: Int64

  /// The time of writing by the server's clock, if sent.
  package var modified: Timestamp?
}

package struct S3Listing: Sendable {
  /// Sorted by key.
  package var objects: [S3ObjectFacts] = []

  /// The server's clock at its answer, if sent.
  package var date: Timestamp?
}

package enum S3WriteCondition: Sendable, Hashable {
  /// Replaces an existing object.
  case none

  /// Fails if the key is taken.
  case absent
}

/// The effect of deletion in a bucket.
package enum BucketRetention: Sendable, Hashable {
  case nothing

  /// Deleted objects stay as versions.
  case versions

  /// Objects stay for these days after writing; nil stands for each object's own lock.
  case locked(days: Int?)

  /// The credentials do not allow the query.
  case unknown

  /// A sentence if deletion is not final and that is known.
  package func words(at date: Timestamp) -> String? {
    switch self {
    case .nothing, .unknown: nil
    case .versions:
      "The bucket keeps versions: what is removed is hidden, and takes room until a rule of the bucket expires it."
    case .locked(nil):
      "The bucket locks objects: what is removed is hidden, and stays for as long as each object's lock says."
    case .locked(let days?):
      "The bucket locks objects for \(counted(days, "day")): what is removed is hidden, and can be deleted for good once that has passed since it was written, all of it from \(Self.day(in: days, date)) on, unless an object has a longer lock of its own."
    }
  }

  private static func day(in days: Int, _ date: Timestamp) -> String {
    String(Timestamp(secondsSince1970: date.secondsSince1970 + Int64(days + 1) * 86_400).rfc3339.prefix(10))
  }
}
