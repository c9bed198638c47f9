import HTTPServer
import Logging

extension Logger {
  /// Logs an answered request at `info`, with only the first path component, since the rest may concern a record.
  func note(_ answer: RequestMeter.Answer) {
    info(
      "request",
      metadata: [
        "method": "\(answer.method)", "area": "\(answer.area)", "status": "\(answer.status)",
        "milliseconds": "\((answer.duration / .milliseconds(1)).rounded())",
        "client": "\(answer.client?.description ?? "unknown")",
      ])
  }
}
