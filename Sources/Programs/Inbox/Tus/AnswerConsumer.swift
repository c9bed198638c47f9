internal import HTTPServer

/// Takes a body of no bytes, and answers.
final class AnswerConsumer: BodyConsumer {
  private let response: Response

  init(_ response: Response) { self.response = response }

  func take(_ bytes: [UInt8]) throws {}

  func finish() -> Response { response }

  func abandon() {}
}
