internal import Dispatch
internal import Foundation
internal import Platform
internal import SystemPackage

/// Jobs whose bundles lie apart from this machine.
extension WorkerPool {
  /// Has a job done once whose bundle lies apart from this machine: what was made before is taken, else the bundle is fetched,
  /// worked at in folders of the attempt's own, and what was made is kept before the records say so.
  func attemptShared(_ job: InboxJob, _ bundle: InboxBundle) throws -> InboxJobOutcome? {
    let home = inbox.storage.workHome.appending("\(job.id)-\(job.attempts)")
    defer {
      // What cannot be removed now is removed when the process begins anew.
      try? inbox.surroundings.fileSystem.removeTree(home)
    }
    do {
      let making = try self.making(job, of: bundle)
      let folders = InboxFolders(home: home)
      let lease = JobLease(until: now.secondsSince1970 + options.leaseSeconds)
      if let known = try holding(job, lease, { try inbox.storage.result(of: making) }) {
        return try take(known, for: job, bundle, lease)
      }
      let isFetched = try holding(job, lease) {
        try inbox.storage.fetch(bundle, for: job.kind, into: folders) { [self] in
          !isStopping.withLock { $0 } && !lease.isLost
        }
      }
      guard try isOurs(job, lease) else { return nil }
      guard isFetched else { return Self.cancelled }
      let fileSystem = inbox.surroundings.fileSystem
      let before =
        job.kind == .open
        ? [:] : try BundleArchive.sums(of: folders.bundle(bundle.id), leavingOut: [], in: fileSystem)
      return try attempt(job, bundle, in: folders, making: making, before: before)
    } catch let error as any ReportableError
      where !(error is InboxError) && (error.isEnvironmental || error.code.hasPrefix("s3-"))
    {
      let failure = InboxBundle.Failure(code: error.code, words: Self.sentence(error))
      // The files of this machine are another matter: a bundle may be what is too large for it.
      if error is FileError { return .hindered(failure) }
      // The bundle is not at fault where its storage cannot be used, and its tries are not either.
      return .outage(failure)
    } catch let error as InboxError where error.kind == .missing || error.kind == .altered {
      // A first try may have read amiss. A store that is to be salvaged is unpacked anew, after which this job begins again.
      if job.kind == .salvage, job.counted > 1 { try inbox.makeAnew(bundle) }
      return .tryAgain(InboxBundle.Failure(code: error.code, words: Self.sentence(error)))
    }
  }

  private static func sentence(_ error: any ReportableError) -> String {
    let text = printable(error.detail)
    return text.prefix(1).uppercased() + text.dropFirst() + "."
  }

  /// What came of a job of which the same was made before.
  private func take(
    _ known: StoredResult, for job: InboxJob, _ bundle: InboxBundle, _ lease: JobLease
  ) throws -> InboxJobOutcome? {
    guard try isOurs(job, lease) else { return nil }
    guard try inbox.records.place(known.placedBytes, of: bundle.id, totalBytes: inbox.limits.totalBytes) else {
      try inbox.removePlaced(of: bundle.id)
      return .failed(Self.noRoom)
    }
    return try outcome(known.opened, known.salvaged, of: job, bundle, archive: known.archive)
  }

  /// Does something that may take long and tells nothing of itself, while the lease of a job is gone on with.
  func holding<Value>(_ job: InboxJob, _ lease: JobLease, _ body: () throws -> Value) rethrows -> Value {
    let isOver = Mutex(false)
    let ended = DispatchSemaphore(value: 0)
    WorkThread.start(named: "lazaret.inbox.lease", stackSize: 1 << 20) { [self] in
      var beaten = ContinuousClock.now
      while !isOver.withLock({ $0 }) {
        Thread.sleep(forTimeInterval: 0.02)
        guard beaten.duration(to: .now) > .seconds(options.leaseSeconds) / 4 else { continue }
        beaten = .now
        goOn(with: job, lease)
      }
      ended.signal()
    }
    defer {
      isOver.withLock { $0 = true }
      ended.wait()
    }
    return try body()
  }
}

/// How long a worker may believe that a job is its own.
final class JobLease: Sendable {
  private struct State {
    var ends: Int64
    var isLost = false
  }

  private let state: Mutex<State>

  /// - Parameter ends: in seconds since 1970.
  init(until ends: Int64) { state = Mutex(State(ends: ends)) }

  /// Until when it holds, in seconds since 1970.
  var ends: Int64 { state.withLock { $0.ends } }

  /// Whether another may have the job.
  var isLost: Bool { state.withLock { $0.isLost } }

  /// It was gone on with.
  func extend(until ends: Int64) { state.withLock { $0.ends = ends } }

  /// Another may have the job; it never comes back.
  func lose() { state.withLock { $0.isLost = true } }
}
