import Backup
import Foundation
package import HTTPServer
internal import Lazaret
package import Platform
internal import SQLiteFormat
import SupportBundle

/// Background jobs: salvages, backups, restores.
package final class RunningWork: Sendable {
  private struct Entry {
    var job: Job
    var observer: JobObserver
    var progressSent: ContinuousClock.Instant
  }

  private struct State {
    var entries: [Entry] = []
    var listeners: [EventChannel] = []

    var owners: [ObjectIdentifier: Sessions.Session] = [:]
    var number = 0
    var endings = 0
    var isStopping = false
  }

  /// The most concurrent and remembered jobs.
  private static let maximumRunning = 4
  private static let maximumKept = 50

  /// The most listeners; beyond it the oldest must reconnect.
  private static let maximumListeners = 64

  static let maximumListenersOfSession = 16

  private let state = Mutex(State())
  private let threads = DispatchGroup()
  private let surroundings: Surroundings

  init(surroundings: Surroundings) { self.surroundings = surroundings }

  /// The running and recently ended jobs, newest first.
  package var jobs: [Job] { state.withLock { state in state.entries.reversed().map(\.job) } }

  var isEnding: Bool { state.withLock { $0.isStopping } }

  /// The ended jobs; a page made before the last one is outdated.
  package var endings: Int { state.withLock(\.endings) }

  package func job(_ id: String) -> Job? { state.withLock { state in state.entries.first { $0.job.id == id }?.job } }

  package func job(for store: StoreID) -> Job? {
    state.withLock { state in state.entries.last { $0.job.store == store && $0.job.isRunning }?.job }
  }

  func isWorking(atBundle bundle: String) -> Bool {
    state.withLock { state in state.entries.contains { $0.job.isRunning && $0.job.store?.bundle == bundle } }
  }

  /// Starts a job on its own thread.
  ///
  /// - Parameters:
  ///   - title: the displayed title.
  ///   - store: the affected store, which can have one job at a time.
  ///   - target: the result's page, unless the outcome names another.
  /// - Throws: ``Refusal`` 409 if the store has a job already, 503 if too many run.
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
    WorkThread.start(named: "lazaret.\(kind.rawValue)", in: threads) { [self] in
      let outcome = Result { try body(observer) }
      end(job.id, outcome, isCancelled: observer.isCancelled)
    }
    return job
  }

  /// Asks a job to stop at its next step, leaving stores as they were.
  ///
  /// - Throws: ``Refusal`` 404 for an unknown job, 409 for an ended one.
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

  func endEvents(of session: Sessions.Session) {
    let channels = state.withLock { state in state.listeners.filter { state.owners[ObjectIdentifier($0)] == session } }
    for channel in channels { channel.close() }
  }

  /// Streams all jobs' events to a page: `progress` and `done`.
  package func events(for session: Sessions.Session? = nil) -> Response {
    // The heartbeat is shorter than the server's idle timeout and soon detects closed pages.
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
    // A page with a job missing here was made before the job ended.
    let names = JSON.Value.members(
      ("jobs", .array(running.map { .string($0.id) })), ("endings", .integer(Int64(endings))))
    channel.send(EventChannel.Event(names.text, name: "running"))
    for job in running { channel.send(job.progressEvent) }
    return channel.response
  }

  /// Notifies all browsers of another change.
  func tell(_ name: String) {
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

  package struct Job: Sendable, Hashable, Encodable {
    package enum Kind: String, Sendable, Hashable {
      case salvage, quarantine, backup, proof, restore, install, release, export, send, repair, check
    }

    package enum State: String, Sendable, Hashable { case running, done, failed, cancelled }

    package let id: String

    let kind: Kind

    let title: String

    let store: StoreID?

    let started: Timestamp

    /// The result's page.
    package internal(set) var target: RequestTarget

    package internal(set) var state = State.running

    /// The current step in a word or two.
    package internal(set) var phase = "beginning"

    /// The fraction done, from 0 to 1; nil if unknown.
    package internal(set) var fraction: Double?

    /// The estimated seconds left; nil if unknown.
    package internal(set) var secondsLeft: Double?

    package internal(set) var ended: Timestamp?

    /// The result in a sentence; nil while running.
    package internal(set) var words: String?

    package internal(set) var problem: Problem?

    package var isRunning: Bool { state == .running }

    mutating func take(_ progress: JobObserver.Progress) {
      if phase != "ending" { phase = progress.phase }
      fraction = progress.fraction ?? fraction
      secondsLeft = progress.secondsLeft
    }

    mutating func end(_ outcome: Result<JobOutcome, any Error>, isCancelled: Bool, at time: Timestamp) {
      ended = time
      secondsLeft = nil
      switch outcome {
      case .success(let outcome):
        state = .done
        words = outcome.words
        target = outcome.target ?? target
      case .failure(let thrown):
        let halfway = thrown as? HalfwayError
        let problem = Problem(halfway?.error ?? thrown)
        let wasCancelled = isCancelled && (problem.code == "cancelled" || problem.code == "migration-cancelled")
        state = wasCancelled ? .cancelled : .failed
        self.problem = problem
        words = wasCancelled ? "It was cancelled; everything is as it was." : problem.detail
        guard let halfway else { return }
        words = "\(wasCancelled ? "It was cancelled" : sentence(problem.detail)) \(halfway.words)"
        target = halfway.target
      }
    }

    package func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "id": id, "kind": kind.rawValue, "title": title, "state": state.rawValue, "started": started,
        "location": target, "store": store?.text, "phase": isRunning ? phase : nil,
        "fraction": isRunning ? fraction : nil, "secondsLeft": isRunning ? secondsLeft : nil, "ended": ended,
        "words": words, "error": problem,
      ])
    }

    var progressEvent: EventChannel.Event {
      let data = JSON.Value.members(
        ("job", .string(id)), ("phase", .string(phase)), ("fraction", fraction.map { .real($0) }),
        ("secondsLeft", secondsLeft.map { .real($0) }))
      return EventChannel.Event(data.text, name: "progress")
    }

    var doneEvent: EventChannel.Event {
      let data = JSON.Value.members(
        ("job", .string(id)), ("state", .string(state.rawValue)), ("words", .string(words ?? "")),
        ("store", store.map { .string($0.text) }))
      return EventChannel.Event(data.text, name: "done")
    }
  }
}

/// An error after some completed work.
struct HalfwayError: Error {
  var error: any Error

  /// The completed part, continuing the error's sentence.
  var words: String

  var target: RequestTarget
}

package struct JobOutcome: Sendable {
  var words: String

  /// The result's page; nil for the job's own.
  var target: RequestTarget?

  package init(_ words: String, _ target: RequestTarget? = nil) {
    self.words = words
    self.target = target
  }
}

extension RunningWork.Job {
  /// Progress with a cancel button, or the result.
  func html(_ frame: PageFrame, isLinked: Bool = true) -> HTML {
    let name: HTML = isLinked ? "<a href=\"\(target)\">\(title)</a>" : HTML(escaping: title)
    guard isRunning else {
      let tone: HTML.Tone = state == .done ? .good : state == .failed ? .bad : .warn
      let hint: HTML = state == .failed ? problem?.hint.map { "<p class=\"soft\">\($0)</p>" } ?? .empty : .empty
      return .note(tone, "<p><strong>\(name)</strong>: \(words ?? state.rawValue)</p>\(hint)")
    }
    let percent = fraction.map { Int($0 * 100) }
    let value: HTML = fraction.map { "value=\"\(String($0))\"" } ?? .empty
    let left = secondsLeft.map { Words.left($0) }
    let text = [phase, percent.map { "\($0) %" }, left].compactMap(\.self).joined(separator: " · ")
    let cancel = frame.allowsActions ? frame.button("Cancel", .to("work", id, "cancel")) : .empty
    return """
      <div class="note job" data-job="\(id)"><p><strong>\(name)</strong></p>\
      <progress max="1" \(value) aria-label="\(title)"></progress>\
      <p class="row"><span data-job-text aria-live="polite">\(text)</span>\(cancel)</p></div>
      """
  }
}

extension Words {
  static func left(_ seconds: Double) -> String {
    switch seconds {
    case ..<2: "almost done"
    case ..<90: "about \(Int(seconds)) seconds left"
    default: "about \(Int(min(1e9, seconds / 60)) + 1) minutes left"
    }
  }
}

/// Reports a job's progress and receives its cancellation.
package final class JobObserver: Sendable {
  struct Progress: Sendable, Hashable {
    var phase: String

    /// The fraction done, from 0 to 1; nil if unknown.
    var fraction: Double?

    var secondsLeft: Double?
  }

  private struct State {
    var listener: (@Sendable (Progress) -> Void)?
    var highest = 0.0
    var isCancelled = false
  }

  private let state = Mutex(State())

  private let start = ContinuousClock.now

  var listener: (@Sendable (Progress) -> Void)? {
    get { state.withLock(\.listener) }
    set { state.withLock { $0.listener = newValue } }
  }

  package var isCancelled: Bool { state.withLock(\.isCancelled) }

  func cancel() { state.withLock { $0.isCancelled = true } }

  /// Reports a fraction that never shrinks; the time left is estimated by default.
  package func report(_ phase: String, _ fraction: Double?, secondsLeft: Double? = nil) {
    let (listener, share) = state.withLock { state in
      if let fraction { state.highest = max(state.highest, min(1, max(0, fraction))) }
      return (state.listener, fraction == nil ? nil : state.highest)
    }
    let elapsed = start.duration(to: .now) / .seconds(1)
    let left = share.flatMap { elapsed > 0.5 && $0 > 0.03 ? elapsed * (1 - $0) / $0 : nil }
    listener?(Progress(phase: phase, fraction: share, secondsLeft: secondsLeft ?? left))
  }

  /// The observer for quarantine actions.
  var opening: OpeningObserver {
    OpeningObserver { progress in
      let phase = progress.salvagePhase.map { Words.salvage($0) } ?? progress.phase.rawValue
      self.report(phase, progress.fraction, secondsLeft: progress.secondsLeft)
    } isCancelled: {
      self.isCancelled
    }
  }

  /// - Parameter shares: each phase's share of the whole.
  func backup(_ shares: [(phase: BackupPhase, length: Double)]) -> BackupProgress {
    progress(shares) { Words.backup($0) }
  }

  private func progress<Phase: Equatable & Sendable>(
    _ shares: [(phase: Phase, length: Double)], _ words: @escaping @Sendable (Phase) -> String
  ) -> @Sendable (_ phase: Phase, _ done: Int64, _ total: Int64) -> Bool {
    { phase, done, total in
      var start = 0.0
      for share in shares {
        if share.phase == phase {
          let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
          self.report(words(phase), start + part * share.length)
          break
        }
        start += share.length
      }
      return !self.isCancelled
    }
  }

  /// - Parameter writes: whether the bundle is written rather than prepared.
  func export(writes: Bool) -> ExportProgress {
    progress(
      writes
        ? [(.packing, 1)]
        : [(.copying, 0.05), (.examining, 0.1), (.analysing, 0.25), (.scrubbing, 0.4), (.checking, 0.2)]
    ) { (phase: ExportPhase) in phase.words }
  }
}
