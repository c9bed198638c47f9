import Foundation
package import Platform

/// Signs requests with version 4 of Amazon's signatures.
///
/// (Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header".) The body is part of what is signed.
package struct RequestSigner: Sendable {
  /// What is signed with.
  package let credentials: S3Credentials

  /// The region that the signature is for.
  package let region: String

  /// A signer.
  package init(credentials: S3Credentials, region: String) {
    self.credentials = credentials
    self.region = region
  }

  private static let service = "s3"
  private static let algorithm = "AWS4-HMAC-SHA256"

  /// All fields of a request with its signature, in the order in which they are signed.
  ///
  /// - Parameter date: the moment at which it is signed; servers refuse what is older than some minutes.
  package func fields(of request: HTTPRequest, at date: Timestamp) -> [(name: String, value: String)] {
    let moment = Self.text(date)
    let digest = FileDigest(of: Array(request.body)).hexadecimal
    var fields = request.fields.map { ($0.name.lowercased(), Self.folded($0.value)) }
    fields.append(("host", request.authority))
    fields.append(("x-amz-content-sha256", digest))
    fields.append(("x-amz-date", moment))
    if let token = credentials.sessionToken { fields.append(("x-amz-security-token", token)) }
    fields.sort { $0.0 < $1.0 }
    let names = fields.map(\.0).joined(separator: ";")
    let canonical = [
      request.method.rawValue, request.path, request.encodedQuery,
      fields.map { "\($0.0):\($0.1)\n" }.joined(), names, digest,
    ].joined(separator: "\n")
    let day = String(moment.prefix(8))
    let scope = "\(day)/\(region)/\(Self.service)/aws4_request"
    let text = [Self.algorithm, moment, scope, FileDigest(of: Array(canonical.utf8)).hexadecimal]
      .joined(separator: "\n")
    let signature = Self.code(text, with: key(day)).hexadecimal
    let credential = "\(credentials.accessKey)/\(scope)"
    fields.append(
      ("authorization", "\(Self.algorithm) Credential=\(credential),SignedHeaders=\(names),Signature=\(signature)"))
    return fields.map { (name: $0.0, value: $0.1) }
  }

  /// The key of a day, made of the secret.
  private func key(_ day: String) -> [UInt8] {
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [day, region, Self.service, "aws4_request"] { key = Self.code(part, with: key) }
    return key
  }

  private static func code(_ text: String, with key: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: key)))
  }

  /// A moment as requests have it: `20130524T000000Z`.
  static func text(_ date: Timestamp) -> String { date.rfc3339.filter { $0 != "-" && $0 != ":" } }

  /// A value without spaces at its ends, and with one where there were several.
  private static func folded(_ value: String) -> String {
    value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")
  }
}

/// A request before it is signed.
package struct HTTPRequest: Sendable {
  /// The method.
  package var method: Method

  /// The host, with the port where it is not the usual one.
  package var authority: String

  /// The path from its slash on, encoded.
  package var path: String

  /// The names and values of the query, not encoded.
  package var query: [(name: String, value: String)] = []

  /// The fields, with names in lower case; the host and those of the signature are not among them.
  package var fields: [(name: String, value: String)] = []

  /// The body.
  package var body: ArraySlice<UInt8> = []

  /// A request.
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

  /// The methods that are used.
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case delete = "DELETE"
  }

  /// The query as it is sent and signed: encoded, and sorted by the bytes of names and values.
  package var encodedQuery: String {
    query
      .map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
      .sorted { Array($0.0.utf8).lexicographicallyPrecedes($1.0.utf8) || $0.0 == $1.0 && $0.1 < $1.1 }
      .map { "\($0.0)=\($0.1)" }
      .joined(separator: "&")
  }
}

/// How texts stand in the addresses of requests and are signed.
///
/// (Amazon S3 API Reference, "Signature Calculations for the Authorization Header", UriEncode.)
package enum PercentEncoding {
  /// A text in which every byte of UTF-8 but the unreserved ones is encoded, with upper-case digits.
  ///
  /// - Parameter keepsSlashes: whether slashes stand for themselves, as in the keys of objects.
  package static func encode(_ text: String, keepsSlashes: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    encoded.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if isUnreserved(byte) || keepsSlashes && byte == UInt8(ascii: "/") {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// The text that was encoded; nil where it was not, or gives no valid UTF-8.
  ///
  /// A plus sign stands for a space.
  package static func decode(_ text: String) -> String? {
    var decoded: [UInt8] = []
    var bytes = Array(text.utf8)[...]
    while let byte = bytes.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard bytes.count >= 2, let value = [UInt8](hexadecimal: Array(bytes.prefix(2)))?.first else { return nil }
        decoded.append(value)
        bytes = bytes.dropFirst(2)
      case UInt8(ascii: "+"): decoded.append(UInt8(ascii: " "))
      default: decoded.append(byte)
      }
    }
    return String(utf8: decoded)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
