internal import Dispatch
internal import Foundation
internal import Platform
internal import SystemPackage

/// Jobs on bundles in shared storage.
extension WorkerPool {
  /// Attempts a job on a shared bundle.
  ///
  /// It uses an earlier result, or fetches the bundle, works in its own folders, and stores the result before the
  /// records refer to it.
  func attemptShared(_ job: InboxJob, _ bundle: InboxBundle) throws -> InboxJobOutcome? {
    let home = inbox.storage.workHome.appending("\(job.id)-\(job.attempts)")
    defer {
      // The next start removes the rest.
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
      // Local files differ: the bundle may be too large for this machine.
      if error is FileError { return .hindered(failure) }
      // Storage failures are not the bundle's fault, and the attempt does not count.
      return .outage(failure)
    } catch let error as InboxError where error.kind == .missing || error.kind == .altered {
      // The first attempt may have misread. Unpacking the store again restarts this job.
      if job.kind == .salvage, job.counted > 1 { try inbox.makeAnew(bundle) }
      return .tryAgain(InboxBundle.Failure(code: error.code, words: Self.sentence(error)))
    }
  }

  private static func sentence(_ error: any ReportableError) -> String {
    let text = printable(error.detail)
    return text.prefix(1).uppercased() + text.dropFirst() + "."
  }

  /// Uses an earlier result of the same input.
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

  /// Extends the lease during slow work.
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

final class JobLease: Sendable {
  private struct State {
    var ends: Int64
    var isLost = false
  }

  private let state: Mutex<State>

  /// - Parameter ends: in seconds since 1970.
  init(until ends: Int64) { state = Mutex(State(ends: ends)) }

  /// The lease's end, in seconds since 1970.
  var ends: Int64 { state.withLock { $0.ends } }

  var isLost: Bool { state.withLock { $0.isLost } }

  func extend(until ends: Int64) { state.withLock { $0.ends = ends } }

  /// Ends the lease permanently.
  func lose() { state.withLock { $0.isLost = true } }
}
