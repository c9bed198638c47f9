import HTTPServer
import Inbox
import Lazaret
import Platform
import SystemPackage

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

  let home: FilePath
  let inbox: Inbox?
  let meter: RequestMeter?
  let readers: Set<ClientAddress>
  let work: RunningWork
  let surroundings: Surroundings
  let started: Timestamp

  init(_ options: InspectorOptions, _ work: RunningWork, _ surroundings: Surroundings) {
    home = options.home
    inbox = options.inbox
    meter = options.meter
    readers = options.metricsReaders
    self.work = work
    self.surroundings = surroundings
    started = surroundings.now()
  }

  /// Returns the failing parts in a fixed order.
  func failures() -> [Part] {
    Part.allCases.filter { part in
      switch part {
      case .home:
        do { return try surroundings.fileSystem.status(of: home)?.kind != .directory } catch { return true }
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
      return try inbox.map { try InboxHindrance.all(of: $0).map(\.code) } ?? []
    } catch {
      // The failing part is reported elsewhere.
      return []
    }
  }

  /// Whether a client may read metrics: this machine, unless through an unknown proxy, or a named address.
  func mayRead(_ request: Request) -> Bool {
    guard let client = request.client else { return false }
    return client.isLoopback || readers.contains(client)
  }
}
