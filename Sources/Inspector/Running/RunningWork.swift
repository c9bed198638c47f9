import Foundation
package import HTTPServer
import Platform
import SQLiteFormat

/// Work that goes on while pages are looked at: salvages, backups, restores; how far it is, and what came of it.
package final class RunningWork: Sendable {
  private struct Entry {
    var job: Job
    var observer: JobObserver
    var progressSent: ContinuousClock.Instant
  }

  private struct State {
    var entries: [Entry] = []
    var listeners: [EventChannel] = []

    /// Whose the listeners are, by the channel.
    var owners: [ObjectIdentifier: Sessions.Session] = [:]
    var number = 0
    var endings = 0
    var isStopping = false
  }

  /// The most jobs at a time, and the most ended ones that are remembered.
  private static let maximumRunning = 4
  private static let maximumKept = 50

  /// The most browsers that are told of events; of more, the first is left to ask again.
  private static let maximumListeners = 64

  /// The most of them in one session.
  static let maximumListenersOfSession = 16

  private let state = Mutex(State())
  private let threads = DispatchGroup()
  private let surroundings: Surroundings

  init(surroundings: Surroundings) { self.surroundings = surroundings }

  /// What is running and what has ended lately, newest first.
  package var jobs: [Job] { state.withLock { state in state.entries.reversed().map(\.job) } }

  /// Whether it is ending, so that nothing new is begun.
  var isEnding: Bool { state.withLock { $0.isStopping } }

  /// How many jobs have ended since the inspector began: a page that was made before the last of them shows old numbers.
  package var endings: Int { state.withLock(\.endings) }

  /// The job of an identifier; nil where it is not known any more.
  package func job(_ id: String) -> Job? {
    state.withLock { state in state.entries.first { $0.job.id == id }?.job }
  }

  /// What is running for a store; nil for nothing.
  package func job(for store: StoreID) -> Job? {
    state.withLock { state in state.entries.last { $0.job.store == store && $0.job.isRunning }?.job }
  }

  /// Whether something is running for a store that arrived in a bundle.
  func isWorking(atBundle bundle: String) -> Bool {
    state.withLock { state in state.entries.contains { $0.job.isRunning && $0.job.store?.bundle == bundle } }
  }

  /// Begins a job, on a thread of its own.
  ///
  /// - Parameters:
  ///   - kind: what kind of work it is.
  ///   - title: what is done, in words.
  ///   - store: the store it is done to; only one job at a time has it.
  ///   - target: the page that shows what comes of it, unless its outcome names another.
  ///   - body: does it; tells how far it is, and says what came of it.
  /// - Throws: ``Refusal`` 409 where the store has a job already, 503 where too many are running.
  package func start(
    _ kind: Job.Kind, _ title: String, store: StoreID?, target: RequestTarget,
    _ body: @escaping @Sendable (JobObserver) throws -> JobOutcome
  ) throws(Refusal) -> Job {
    let observer = JobObserver()
    let now = surroundings.now()
    let result = state.withLock { state -> Result<Job, Refusal> in
      let running = state.entries.filter(\.job.isRunning)
      if state.isStopping { return .failure(Refusal(.serviceUnavailable, "the inspector is ending")) }
      if let store, running.contains(where: { $0.job.store == store }) {
        return .failure(Refusal(.conflict, "something is being done to this store already"))
      }
      guard running.count < Self.maximumRunning else {
        return .failure(Refusal(.serviceUnavailable, "enough is running already; wait until something is done"))
      }
      state.number += 1
      let job = Job(id: "job-\(state.number)", kind: kind, title: title, store: store, started: now, target: target)
      state.entries.append(Entry(job: job, observer: observer, progressSent: .now))
      while state.entries.count > Self.maximumKept, let ended = state.entries.firstIndex(where: { !$0.job.isRunning }) {
        state.entries.remove(at: ended)
      }
      return .success(job)
    }
    let job = try result.get()
    observer.listener = { [weak self] progress in self?.report(progress, of: job.id) }
    threads.enter()
    WorkThread.start(named: "lazaret.\(kind.rawValue)") { [self] in
      let outcome = Result { try body(observer) }
      end(job.id, outcome, isCancelled: observer.isCancelled)
      threads.leave()
    }
    return job
  }

  /// Asks a job to end; it does at its next step, and leaves everything as it was.
  ///
  /// - Throws: ``Refusal`` 404 where there is no such job, 409 where it has ended already.
  package func cancel(_ id: String) throws(Refusal) -> Job {
    let found = state.withLock { state -> (Job, JobObserver)? in
      guard let index = state.entries.firstIndex(where: { $0.job.id == id }) else { return nil }
      if state.entries[index].job.isRunning { state.entries[index].job.phase = "ending" }
      return (state.entries[index].job, state.entries[index].observer)
    }
    guard let (job, observer) = found else { throw Refusal(.notFound, "there is no such job") }
    guard job.isRunning else { throw Refusal(.conflict, "it has ended already") }
    observer.cancel()
    return job
  }

  /// Ends everything and waits for it.
  package func stop() {
    let (observers, listeners) = state.withLock { state in
      state.isStopping = true
      return (state.entries.map(\.observer), state.listeners)
    }
    for observer in observers { observer.cancel() }
    for listener in listeners { listener.close() }
    threads.wait()
  }

  // MARK: Events

  /// Ends the events of a session that is over.
  package func endEvents(of session: Sessions.Session) {
    let channels = state.withLock { state in
      state.listeners.filter { state.owners[ObjectIdentifier($0)] == session }
    }
    for channel in channels { channel.close() }
  }

  /// The events of everything that is running, for one page of a session: `progress` and `done`.
  package func events(for session: Sessions.Session? = nil) -> Response {
    // More often than the server ends a connection on which nothing happens; and a page that was left is found out soon.
    let channel = EventChannel(heartbeatMilliseconds: 4_000)
    let (running, endings) = state.withLock { state in
      state.listeners.removeAll(where: \.isClosed)
      state.listeners.append(channel)
      let open = Set(state.listeners.map { ObjectIdentifier($0) })
      state.owners = state.owners.filter { open.contains($0.key) }
      state.owners[ObjectIdentifier(channel)] = session
      let own = session == nil ? [] : state.listeners.filter { state.owners[ObjectIdentifier($0)] == session }
      if own.count > Self.maximumListenersOfSession, let first = own.first {
        state.listeners.removeAll { $0 === first }
        first.close()
      }
      if state.listeners.count > Self.maximumListeners { state.listeners.removeFirst().close() }
      return (state.entries.map(\.job).filter(\.isRunning), state.endings)
    }
    // A page that shows a job which is not named here was made before its end.
    let names = JSON.Value.members(
      ("jobs", .array(running.map { .string($0.id) })), ("endings", .integer(Int64(endings))))
    channel.send(EventChannel.Event(names.text, name: "running"))
    for job in running { channel.send(job.progressEvent) }
    return channel.response
  }

  /// Tells every browser that something has changed that is no job of theirs.
  package func tell(_ name: String) {
    let listeners = state.withLock { state in
      state.listeners.removeAll(where: \.isClosed)
      return state.listeners
    }
    for listener in listeners { listener.send(EventChannel.Event("{}", name: name)) }
  }

  private func report(_ progress: JobObserver.Progress, of id: String) {
    let now = ContinuousClock.now
    let told = state.withLock { state -> (Job, [EventChannel])? in
      guard let index = state.entries.firstIndex(where: { $0.job.id == id }), state.entries[index].job.isRunning else {
        return nil
      }
      state.entries[index].job.take(progress)
      guard state.entries[index].progressSent.duration(to: now) > .milliseconds(100) else { return nil }
      state.entries[index].progressSent = now
      return (state.entries[index].job, state.listeners)
    }
    guard let (job, listeners) = told else { return }
    for listener in listeners { listener.send(job.progressEvent) }
  }

  private func end(_ id: String, _ outcome: Result<JobOutcome, any Error>, isCancelled: Bool) {
    let now = surroundings.now()
    let told = state.withLock { state -> (Job, [EventChannel])? in
      guard let index = state.entries.firstIndex(where: { $0.job.id == id }) else { return nil }
      state.entries[index].job.end(outcome, isCancelled: isCancelled, at: now)
      state.endings += 1
      state.listeners.removeAll(where: \.isClosed)
      return (state.entries[index].job, state.listeners)
    }
    guard let (job, listeners) = told else { return }
    for listener in listeners { listener.send(job.doneEvent) }
  }
}
