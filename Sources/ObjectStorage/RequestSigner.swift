package import Platform

/// AWS Signature Version 4, with a signed body.
///
/// (Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header".)
package struct RequestSigner: Sendable {
  let credentials: S3Credentials

  let region: String

  package init(credentials: S3Credentials, region: String) {
    self.credentials = credentials
    self.region = region
  }

  private static let service = "s3"
  private static let algorithm = "AWS4-HMAC-SHA256"

  /// Returns the signed header fields in order.
  ///
  /// - Parameter date: the signing time; servers refuse signatures some minutes old.
  package func fields(of request: HTTPRequest, at date: Timestamp) -> [(name: String, value: String)] {
    let moment = Self.text(date)
    let digest = FileDigest(of: Array(request.body)).hexadecimal
    var fields = request.fields.map { (name: $0.name.lowercased(), value: Self.folded($0.value)) }
    fields.append(("host", request.authority))
    fields.append(("x-amz-content-sha256", digest))
    fields.append(("x-amz-date", moment))
    if let token = credentials.sessionToken { fields.append(("x-amz-security-token", token)) }
    fields.sort { $0.name < $1.name }
    let names = fields.map(\.name).joined(separator: ";")
    let canonical = [
      request.method.rawValue, request.path, request.encodedQuery,
      fields.map { "\($0.name):\($0.value)\n" }.joined(), names, digest,
    ].joined(separator: "\n")
    let day = String(moment.prefix(8))
    let scope = "\(day)/\(region)/\(Self.service)/aws4_request"
    let text = [Self.algorithm, moment, scope, FileDigest(of: Array(canonical.utf8)).hexadecimal]
      .joined(separator: "\n")
    let signature = Self.code(text, with: key(day)).hexadecimal
    let credential = "\(credentials.accessKey)/\(scope)"
    fields.append(
      ("authorization", "\(Self.algorithm) Credential=\(credential),SignedHeaders=\(names),Signature=\(signature)"))
    return fields
  }

  private func key(_ day: String) -> [UInt8] {
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [day, region, Self.service, "aws4_request"] { key = Self.code(part, with: key) }
    return key
  }

  private static func code(_ text: String, with key: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: key)))
  }

  /// The form `20130524T000000Z`.
  static func text(_ date: Timestamp) -> String { date.rfc3339.filter { $0 != "-" && $0 != ":" } }

  /// Trims a value and collapses its spaces.
  private static func folded(_ value: String) -> String {
    value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")
  }
}

package struct HTTPRequest: Sendable {
  var method: Method

  /// The host, with a non-default port.
  var authority: String

  /// The encoded path with its leading slash.
  var path: String

  var query: [(name: String, value: String)] = []

  /// Fields with lower-case names, without host and signature.
  package var fields: [(name: String, value: String)] = []

  var body: ArraySlice<UInt8> = []

  package init(
    method: Method, authority: String, path: String, query: [(name: String, value: String)] = [],
    fields: [(name: String, value: String)] = [], body: ArraySlice<UInt8> = []
  ) {
    self.method = method
    self.authority = authority
    self.path = path
    self.query = query
    self.fields = fields
    self.body = body
  }

  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case delete = "DELETE"
  }

  /// The query as sent and signed: encoded, sorted by the bytes of names and values.
  package var encodedQuery: String {
    query.map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }.sorted {
      Array($0.0.utf8).lexicographicallyPrecedes($1.0.utf8) || $0.0 == $1.0 && $0.1 < $1.1
    }.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }
}
