import HTTPServer
import Inbox
import Lazaret
import Platform
import SystemPackage

/// How the serving process is, for what watches it: whether it can do its work, and what it counts.
struct ServiceState: Sendable {
  /// Something without which nothing can be served.
  enum Part: String, Sendable, CaseIterable {
    /// The folder of the stores.
    case home

    /// The records of the inbox, where there is one.
    case inbox

    /// The object storage with its bundles, where they lie in such.
    case storage

    /// The process itself: it is ending.
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

  /// The parts that do not work, in a fixed order.
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

  /// The reasons for which jobs of the inbox wait for their surroundings, the most frequent first; none where that is not known.
  func hindrances() -> [String] {
    do {
      return try inbox.map { try InboxHindrance.all(of: $0).map(\.code) } ?? []
    } catch {
      // The part that fails is told.
      return []
    }
  }

  /// Whether a client may read the counts: it is this machine, and not through an unknown program on it, or was named.
  func mayRead(_ request: Request) -> Bool {
    guard let client = request.client else { return false }
    return client.isLoopback || readers.contains(client)
  }
}
