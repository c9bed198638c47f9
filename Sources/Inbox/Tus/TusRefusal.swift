internal import HTTPServer
internal import Platform

/// A refusal as a JSON problem (RFC 9457).
struct TusRefusal: Error {
  var status: Status
  var code: String
  var words: String
  var headers = HeaderFields()

  init(_ status: Status, _ code: String, _ words: String, headers: HeaderFields = HeaderFields()) {
    self.status = status
    self.code = code
    self.words = words
    self.headers = headers
  }

  /// Converts any error; environmental ones without paths.
  init(_ error: any Error) {
    switch error {
    case let error as TusRefusal: self = error
    case let error as Refusal:
      self.init(error.status, "refused", sentence(error.words), headers: error.headers)
    case let error as FileError where error.kind == .noSpace:
      self.init(.insufficientStorage, error.code, "The disk of the receiver is full.")
    case let error as any ReportableError where error.isEnvironmental:
      self.init(
        .serviceUnavailable, error.code, "The receiver cannot keep it now.", headers: ["Retry-After": "60"])
    case let error as any ReportableError:
      self.init(.internalServerError, error.code, "The receiver could not keep it.")
    default: self.init(.internalServerError, "unforeseen-error", "The receiver could not keep it.")
    }
  }

  var response: Response {
    let problem: JSON.Value = [
      "status": .integer(Int64(status.rawValue)), "code": .string(code), "title": .string(status.reason),
      "detail": .string(words),
    ]
    var response = Response.json(problem.text + "\n", status: status)
    response.headers.set("Content-Type", "application/problem+json; charset=utf-8")
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }
}

private func sentence(_ words: String) -> String {
  words.prefix(1).uppercased() + words.dropFirst() + (words.hasSuffix(".") ? "" : ".")
}
