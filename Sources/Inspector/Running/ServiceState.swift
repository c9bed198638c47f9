import HTTPServer
import Inbox
import Lazaret
import Platform

/// The process's health and metrics.
struct ServiceState: Sendable {
  /// A part required for service.
  enum Part: String, Sendable, CaseIterable {
    case home

    case inbox

    /// The object storage of bundles, if any.
    case storage

    /// The process, which fails when stopping.
    case process
  }

  let options: InspectorOptions
  let work: RunningWork
  let surroundings: Surroundings
  let started: Timestamp

  var inbox: Inbox? { options.inbox }

  /// Returns the failing parts in a fixed order.
  func failures() -> [Part] {
    Part.allCases.filter { part in
      switch part {
      case .home:
        do { return try surroundings.fileSystem.status(of: options.home)?.kind != .directory } catch { return true }
      case .inbox:
        do {
          _ = try inbox?.records.bundleCount()
          return false
        } catch { return true }
      case .storage: return inbox?.storageTrouble != nil
      case .process: return work.isEnding
      }
    }
  }

  /// Returns the environmental reasons why inbox jobs wait, most frequent first.
  func hindrances() -> [String] {
    do {
      return try inbox.map { try BlockedJobs.all(of: $0).map(\.code) } ?? []
    } catch {
      // The failing part is reported elsewhere.
      return []
    }
  }

  /// Whether a client may read metrics: this machine, unless through an unknown proxy, or a named address.
  func mayRead(_ request: Request) -> Bool {
    guard let client = request.client else { return false }
    return client.isLoopback || options.metricsReaders.contains(client)
  }
}

/// The process's metrics in Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
struct MetricsText {
  private(set) var text = ""

  init(_ service: ServiceState) {
    add("lazaret_build_info", .gauge, "The version that runs.", [("{version=\"\(LibraryVersion.current)\"}", "1")])
    add(
      "process_start_time_seconds", "When the process began to serve, in seconds since 1970.",
      service.started.secondsSince1970)
    add(
      "lazaret_running_jobs", "What was begun from a page and is running.",
      Int64(service.work.jobs.count(where: \.isRunning)))
    if let meter = service.options.meter { add(meter.counts) }
    if let inbox = service.inbox { add(inbox) }
  }

  private enum Kind: String { case counter, gauge, histogram }

  private mutating func add(_ name: String, _ help: String, _ value: Int64) {
    add(name, .gauge, help, [("", "\(value)")])
  }

  private mutating func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: String, value: String)])
  {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    for sample in samples { text += "\(name)\(sample.labels) \(sample.value)\n" }
  }

  private mutating func add(_ counts: RequestMeter.Counts) {
    let answers = counts.answers.sorted { ($0.key.method, $0.key.status) < ($1.key.method, $1.key.status) }
    add(
      "lazaret_http_requests_total", .counter, "Requests by method and status.",
      answers.map { ("{method=\"\($0.key.method)\",status=\"\($0.key.status)\"}", "\($0.value)") })
    let name = "lazaret_http_request_duration_seconds"
    text +=
      "# HELP \(name) From a request's line to the begin of its answer.\n# TYPE \(name) \(Kind.histogram.rawValue)\n"
    for (bound, count) in zip(RequestMeter.bounds, counts.withinBounds) {
      text += "\(name)_bucket{le=\"\(Double(bound) / 1000)\"} \(count)\n"
    }
    text += "\(name)_bucket{le=\"+Inf\"} \(counts.count)\n"
    text += "\(name)_sum \(counts.total / .seconds(1))\n\(name)_count \(counts.count)\n"
  }

  /// Counts unreadable inbox records; `/healthz` reports them.
  private mutating func add(_ inbox: Inbox) {
    if inbox.storage.isShared {
      add(
        "lazaret_inbox_storage_reachable", "Whether the bundles' object storage could be used at the latest look.",
        inbox.storageTrouble == nil ? 1 : 0)
    }
    do throws(InboxError) {
      let bundles = try inbox.records.bundleCounts()
      let jobs = try inbox.queue.counts()
      let bytes = try inbox.records.usedBytes()
      let hindrances = try BlockedJobs.all(of: inbox)
      add(
        "lazaret_inbox_bundles", .gauge, "Bundles by state.",
        InboxBundle.State.allCases.map { ("{state=\"\($0.rawValue)\"}", "\(bundles[$0] ?? 0)") })
      add(
        "lazaret_inbox_jobs", .gauge, "Jobs by state.",
        InboxJob.State.allCases.map { ("{state=\"\($0.rawValue)\"}", "\(jobs[$0] ?? 0)") })
      add(
        "lazaret_inbox_hindered_jobs", .gauge, "Jobs that wait for their surroundings, by reason.",
        hindrances.map { ("{reason=\"\($0.code)\"}", "\($0.count)") })
      add("lazaret_inbox_bytes", "Bytes that are kept, of all senders.", bytes)
      add("lazaret_inbox_limit_bytes", "Bytes that may be kept.", inbox.limits.totalBytes)
      add("lazaret_inbox_readable", "Whether the records could be read.", 1)
    } catch {
      add("lazaret_inbox_readable", "Whether the records could be read.", 0)
    }
  }
}
