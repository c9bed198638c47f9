import Cryptography
import Foundation
package import StoreFiles

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
