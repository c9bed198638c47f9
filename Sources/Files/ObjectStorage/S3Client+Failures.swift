import Failures

/// What refusals and failures of the transport are told as.
extension S3Client {
  /// What an answer that is no success says.
  func refusal(_ answer: HTTPAnswer, _ call: Call) -> S3Error {
    let word = answer.word
    let kind = Self.kind(answer, word)
    var detail = "the server answered \(answer.status)"
    if let word { detail += " \(word)" }
    detail += " for \(location(call.key))"
    var hint: String?
    if kind == .region, let region = answer.fields["x-amz-bucket-region"], region.utf8.count <= 64 {
      hint = "Set AWS_REGION=\(printable(region)): that is where the bucket is."
    }
    return S3Error(
      kind, operation: call.operation, detail: detail, hint: hint, details: .init(status: answer.status, word: word))
  }

  private static func kind(_ answer: HTTPAnswer, _ word: String?) -> S3ErrorKind {
    switch word {
    case "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "InvalidTokenId",
      "TokenRefreshRequired":
      return .credentials
    case "RequestTimeTooSkewed": return .clock
    case "NoSuchBucket": return .noBucket
    case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
      return .region
    case "BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest", "XAmzContentChecksumMismatch": return .checksum
    case "NotImplemented": return .unsupported
    case "RequestTimeout": return .timeOut
    default: break
    }
    switch answer.status {
    case 301, 307, 308: return .region
    case 401: return .credentials
    case 403: return .access
    case 404: return .notFound
    case 409, 412: return .precondition
    case 501: return .unsupported
    case 429, 500...599: return .server
    default: return .answer
    }
  }

  /// What a request says to which no answer came.
  func failure(_ failure: TransportFailure, _ call: Call) -> S3Error {
    let server = "\(settings.endpoint.scheme)://\(settings.endpoint.authority())"
    let (kind, detail): (S3ErrorKind, String) =
      switch failure.kind {
      case .unreachable: (.unreachable, "the connection to \(server) could not be made, or broke")
      case .timeOut: (.timeOut, "\(server) did not answer in time")
      case .certificate: (.certificate, "the certificate of \(server) is not trusted")
      case .tooMuch: (.answer, "\(server) sent more than it was asked for")
      case .unusable: (.answer, "the answer of \(server) cannot be read")
      }
    return S3Error(kind, operation: call.operation, detail: "\(detail) (libcurl \(failure.code))")
  }

  /// An answer that the protocol does not allow.
  func odd(_ detail: String, _ call: Call) -> S3Error {
    S3Error(.answer, operation: call.operation, detail: "\(detail), for \(location(call.key))")
  }
}
