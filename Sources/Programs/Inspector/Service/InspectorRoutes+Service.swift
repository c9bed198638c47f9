import HTTPServer
import StoreFiles

extension InspectorRoutes {
  /// What programs ask that watch the process; without a session, and without a word of any store.
  mutating func addService(_ service: ServiceState) {
    open(
      "/healthz",
      about:
        "Whether the process can do its work: 200 and ok, or 503 and the parts that fail; on a second line what jobs of the inbox wait for.",
      type: "text/plain"
    ) { _ in
      let failures = service.failures()
      let hindrances = service.hindrances()
      let waiting = hindrances.isEmpty ? "" : "waiting: \(hindrances.joined(separator: ", "))\n"
      guard failures.isEmpty else {
        return .text(
          "failing: \(failures.map(\.rawValue).joined(separator: ", "))\n\(waiting)", status: .serviceUnavailable)
      }
      return .text("ok\n\(waiting)")
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
