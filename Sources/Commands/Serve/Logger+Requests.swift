import HTTPServer
import Logging

extension Logger {
  /// Tells of an answered request at `info`; of its address the first part alone, since what follows may be of a record.
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
