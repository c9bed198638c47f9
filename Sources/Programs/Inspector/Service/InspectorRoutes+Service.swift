import HTTPServer
import StoreFiles

extension InspectorRoutes {
  /// What programs ask that watch the process; without a session, and without a word of any store.
  mutating func addService(_ service: ServiceState) {
    open(
      "/healthz", about: "Whether the process can do its work: 200 and ok, or 503 and the parts that fail.",
      type: "text/plain"
    ) { _ in
      let failures = service.failures()
      guard failures.isEmpty else {
        return .text(
          "failing: \(failures.map(\.rawValue).joined(separator: ", "))\n", status: .serviceUnavailable)
      }
      return .text("ok\n")
    }
    open(
      "/metrics",
      about: "What is counted, in Prometheus' text format; for this machine and the addresses that were named.",
      type: "text/plain"
    ) { request in
      guard service.mayRead(request) else { throw Refusal(.notFound, "there is nothing at this address") }
      var response = Response.text(MetricsText(service).text)
      response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
      return response
    }
  }
}
