package import Dispatch
internal import Foundation
internal import Platform
import SupportBundle
package import SystemPackage

/// An inbox's parallel worker processes, with one job each.
package final class WorkerPool: Sendable {
  package struct Options: Sendable {
    /// The parallel workers; 0 leaves all work to other processes.
    package var count = 1

    /// The file of secret keys.
    package var identity: FilePath?

    package var models: [FilePath] = []

    /// The model versions, oldest first.
    package var versionOrder: [String]?

    /// The limits per worker.
    package var resources = WorkLimits()

    /// The most unpacked bytes per bundle.
    package var unpackedBytes: Int64 = 8 << 30

    /// The most unpacked bytes per packed byte.
    package var unpackedRatio: Int64 = 400

    /// The most files per bundle.
    package var unpackedEntries = 100_000

    /// The seconds of a lease without renewal.
    var leaseSeconds: Int64 = 60

    /// Whether this process receives and holds the lock; others only work.
    package var receives = true

    /// The interval of checks for arrivals and removals.
    package var pause = Duration.seconds(15)

    /// The retention rules, applied by the receiving process; nil keeps all.
    package var retention: InboxRetention?

    package var onPruning: (@Sendable (InboxPruning) -> Void)?

    /// Called with an error that prevents a part of the work, and with nil once it recovers.
    package var onTrouble: (@Sendable (Part, (any Error)?) -> Void)?

    package enum Part: String, Sendable, CaseIterable {
      case jobs

      /// Turning uploads into stored bundles.
      case receiving

      /// Removing expired, leftover and no longer kept files.
      case removing
    }

    package init() {}
  }

  let inbox: Inbox
  let options: Options
  private let runner: any WorkRunner
  private let owner: String
  let isStopping = Mutex(false)
  private let threads = DispatchGroup()
  private let wake: WorkerWake

  /// The error code that prevents each part of the work.
  private let troubles = Mutex<[Options.Part: String]>([:])

  /// Consecutive jobs that ended in an outage.
  private let outages = Mutex(0)

  package init(_ inbox: Inbox, options: Options, runner: any WorkRunner) {
    self.inbox = inbox
    self.options = options
    self.runner = runner
    wake = WorkerWake(count: max(1, options.count))
    // Only one process receives, so leases under its name at start are a dead one's. Others' names are unique over
    // time.
    let host = ProcessInfo.processInfo.hostName
    owner =
      options.receives
      ? inbox.frontEnd.map { "front end:\($0)" } ?? "machine:" + host
      : "worker:\(host):\(UniversalIdentifier.random())"
  }

  private var queue: any JobQueue { inbox.queue }
  var now: Timestamp { inbox.surroundings.now() }

  /// Starts working, first on jobs of a process that died.
  ///
  /// A receiving caller holds the inbox's lock.
  package func start() throws {
    try queue.release(owner: owner, at: now)
    inbox.changes.listen { [wake] in wake.signal() }
    for number in 0..<max(1, options.count) {
      WorkThread.start(named: "lazaret.inbox.\(number)", in: threads) { [self] in work() }
    }
    guard options.receives else { return }
    if inbox.storage.isShared { repeatedly(.receiving) { [inbox] in try inbox.goOn() } }
    repeatedly(.removing, removal())
  }

  /// Repeats a part of the work on its own thread, independent of jobs.
  private func repeatedly(_ part: Options.Part, _ body: @escaping @Sendable () throws -> Void) {
    WorkThread.start(named: "lazaret.inbox.\(part.rawValue)", in: threads) { [self] in
      while !isEnding {
        trying(part, body)
        rest(for: options.pause)
      }
    }
  }

  /// The most bundles removed per round.
  private static let mostPruned = 1000

  /// The periodic removal of expired, leftover and no longer kept files.
  private func removal() -> @Sendable () throws -> Void {
    let next = Mutex((cleaning: ContinuousClock.now, pruning: ContinuousClock.now))
    return { [self] in
      if next.withLock({ $0.cleaning <= .now }) {
        next.withLock { $0.cleaning = .now + .seconds(600) }
        try inbox.expireUploads()
        try inbox.storage.removeLeftovers(inbox.records)
      }
      if let retention = options.retention, next.withLock({ $0.pruning <= .now }) {
        let pruning = try inbox.prune(retention, limit: Self.mostPruned) { [self] in isEnding }
        // Continue soon unless there were failures.
        let isWhole = pruning.removed.count < Self.mostPruned || !pruning.failures.isEmpty
        next.withLock { $0.pruning = .now + .seconds(isWhole ? 3600 : 0) }
        options.onPruning?(pruning)
      }
    }
  }

  private var isEnding: Bool { isStopping.withLock { $0 } }

  /// Runs `body`; reports each new error once, then the loop retries.
  private func trying(_ part: Options.Part, _ body: () throws -> Void) {
    do {
      try body()
      if troubles.withLock({ $0.removeValue(forKey: part) }) != nil { options.onTrouble?(part, nil) }
    } catch {
      let words = (error as? any ReportableError)?.code ?? "unforeseen"
      let isNew = troubles.withLock { $0.updateValue(words, forKey: part) != words }
      if isNew { options.onTrouble?(part, error) }
    }
  }

  /// Stops the workers and waits for them; the next start repeats their jobs.
  package func stop() {
    isStopping.withLock { $0 = true }
    for _ in 0..<max(1, options.count) { wake.signal() }
    threads.wait()
  }

  private func work() {
    while !isEnding {
      var hasWorked = false
      // On any error, a started job returns when its lease ends.
      trying(.jobs) {
        guard options.count > 0, let job = try queue.lease(by: owner, for: options.leaseSeconds, at: now) else {
          return
        }
        hasWorked = true
        try work(at: job)
      }
      if hasWorked {
        waitInOutage()
      } else {
        wake.wait(atMost: .milliseconds(1000))
      }
    }
  }

  /// Waits up to a minute, growing: other jobs would fail too.
  private func waitInOutage() {
    let faults = outages.withLock { $0 }
    guard faults > 0 else { return }
    rest(for: .seconds(min(60, 1 << min(faults - 1, 6))))
  }

  private func rest(for pause: Duration) {
    let end = ContinuousClock.now + pause
    while ContinuousClock.now < end, !isEnding { Thread.sleep(forTimeInterval: 0.2) }
  }

  /// Runs one job if any is due, and returns whether; for tests.
  package func workOnce() throws -> Bool {
    guard let job = try queue.lease(by: owner, for: options.leaseSeconds, at: now) else { return false }
    try work(at: job)
    return true
  }

  private func work(at job: InboxJob) throws {
    guard let bundle = try inbox.records.bundle(job.bundle) else {
      try queue.remove(of: job.bundle)
      return
    }
    inbox.changes.tell()
    guard let outcome = try ended(job, bundle) else { return }
    outages.withLock { if case .outage = outcome { $0 += 1 } else { $0 = 0 } }
    guard let state = try queue.end(job, outcome, at: now) else { return }
    if !inbox.storage.isShared {
      // The job's lock is released; the next start removes the rest.
      try? inbox.surroundings.fileSystem.removeTree(inbox.folders.work(job.bundle))
    }
    if state == .failed, try inbox.records.bundle(job.bundle)?.state == .refused {
      try inbox.removePlaced(of: job.bundle)
    }
    inbox.changes.tell()
  }

  /// Attempts a job; an error is an outcome too.
  private func ended(_ job: InboxJob, _ bundle: InboxBundle) throws -> InboxJobOutcome? {
    do {
      return inbox.storage.isShared ? try attemptShared(job, bundle) : try attempt(job, bundle, in: inbox.folders)
    } catch let error as any ReportableError {
      let failure = InboxBundle.Failure(code: error.code, words: printable(error.detail) + ".")
      // Errors of this process's records or files are not the bundle's fault: it is not read here.
      let isOurs = (error as? FileError)?.kind.subject == .fileSystem || (error as? InboxError)?.kind == .records
      return error.isEnvironmental || isOurs ? .outage(failure) : worth(job, failure)
    }
  }

  /// Attempts a job once; nil if the lease was lost meanwhile.
  ///
  /// - Parameters:
  ///   - making: the input of a result to store; nil if the files stay in place.
  ///   - before: the SHA-256 of earlier files.
  func attempt(
    _ job: InboxJob, _ bundle: InboxBundle, in folders: InboxFolders, making: BundleMaking? = nil,
    before: [String: String] = [:]
  ) throws -> InboxJobOutcome? {
    let placed = try inbox.records.placed(of: bundle.id) ?? 0
    // Opening replaces the earlier results.
    let room =
      try inbox.records.room(of: bundle.sender, totalBytes: inbox.limits.totalBytes)
      + (job.kind == .open ? placed : 0)
    guard room >= Self.leastRoom else { return .failed(Self.noRoom) }
    try inbox.surroundings.fileSystem.makeDirectory(folders.work(bundle.id))
    let order = order(job, bundle, room, folders)
    let watch = RoomWatch(
      inbox, bundle.id, in: folders, room: room, before: try inbox.workingBytes(of: bundle.id, in: folders))
    let lease = JobLease(until: now.secondsSince1970 + options.leaseSeconds)
    let result: WorkResult?
    do throws(InboxError) {
      result = try run(job, order, watch, lease)
    } catch {
      guard try isOurs(job, lease) else { return nil }
      return try settled(of: bundle, in: folders) ? failed(error, job, order) : .failed(Self.noRoom)
    }
    // The lease is lost: another worker may have the bundle.
    guard try isOurs(job, lease) else { return nil }
    guard try settled(of: bundle, in: folders), !watch.isOver else { return .failed(Self.noRoom) }
    guard let result else { return Self.cancelled }
    if let failed = failure(result, order) { return failed }
    guard let making else { return try outcome(result.opened, result.salvaged, of: job, bundle, archive: nil) }
    // A model has changed meanwhile, so the digest does not match the result.
    guard try self.making(job, of: bundle) == making else { return Self.modelsChanged }
    let made = MadeResult(
      folders: folders, opened: result.opened, salvaged: result.salvaged,
      placedBytes: try inbox.placedBytes(of: bundle.id, in: folders), before: before)
    return try holding(job, lease) { () throws -> InboxJobOutcome? in
      guard made.opened?.isPlausible != false else { return Self.senseless }
      let stored = try inbox.storage.keep(made, of: making)
      guard try isOurs(job, lease) else { return nil }
      return try outcome(stored.opened, stored.salvaged, of: job, bundle, archive: stored.archive)
    }
  }

  static let cancelled = InboxJobOutcome.putBack(.init(code: "cancelled", words: "The inbox was ended meanwhile."))

  private static let modelsChanged = InboxJobOutcome.putBack(
    .init(code: InboxError.Kind.worker.rawValue, words: "The models were changed meanwhile."))

  private func run(
    _ job: InboxJob, _ order: WorkOrder, _ watch: RoomWatch, _ lease: JobLease
  ) throws(InboxError) -> WorkResult? {
    var beaten = ContinuousClock.now
    return try runner.run(order) {
      guard beaten.duration(to: .now) > .seconds(options.leaseSeconds) / 4 else { return }
      beaten = .now
      goOn(with: job, lease)
    } isCancelled: { [self] in
      isStopping.withLock { $0 } || watch.isOver || lease.isLost
    }
  }

  /// The input of a job, with the current models.
  func making(_ job: InboxJob, of bundle: InboxBundle) throws -> BundleMaking {
    // Only salvaging depends on models.
    let models =
      job.kind == .salvage
      ? try BundleMaking.mark(of: options.models, order: options.versionOrder, in: inbox.surroundings.fileSystem) : ""
    return try BundleMaking(job.kind, of: bundle, models: models)
  }

  /// Extends the lease; false if it is lost.
  func isOurs(_ job: InboxJob, _ lease: JobLease) throws(InboxError) -> Bool {
    if lease.isLost { return false }
    return try queue.extend(job, for: options.leaseSeconds, at: now)
  }

  func goOn(with job: InboxJob, _ lease: JobLease) {
    let start = now.secondsSince1970
    do {
      if try queue.extend(job, for: options.leaseSeconds, at: now) {
        lease.extend(until: start + options.leaseSeconds)
      } else {
        lease.lose()
      }
    } catch {
      // The records are unavailable: another worker may take the job after the lease's end.
      if lease.ends < now.secondsSince1970 { lease.lose() }
    }
  }

  private func failed(_ error: InboxError, _ job: InboxJob, _ order: WorkOrder) -> InboxJobOutcome {
    if error.kind == .fileSize, order.resources.fileBytes < options.resources.fileBytes { return .failed(Self.noRoom) }
    let failure = InboxBundle.Failure(code: error.code, words: printable(error.detail) + ".")
    return error.isEnvironmental ? .hindered(failure) : worth(job, failure)
  }

  /// Records the size of results; without room removes them and returns false.
  private func settled(of bundle: InboxBundle, in folders: InboxFolders) throws -> Bool {
    let placed = try inbox.placedBytes(of: bundle.id, in: folders)
    if try inbox.records.place(placed, of: bundle.id, totalBytes: inbox.limits.totalBytes) { return true }
    try inbox.removePlaced(of: bundle.id)
    return false
  }

  /// The least room to start with: every bundle unpacks to more.
  private static let leastRoom: Int64 = 64 << 10

  static let noRoom = InboxBundle.Failure(
    code: InboxError.Kind.room.rawValue,
    words: "What it unpacks to, or what is salvaged of it, is more than the sender's quota or the inbox leaves.")

  /// Allows one retry, in case of a machine fault: a bundle that kills a worker mostly does so again.
  private func worth(_ job: InboxJob, _ failure: InboxBundle.Failure) -> InboxJobOutcome {
    job.counted < 2 ? .tryAgain(failure) : .failed(failure)
  }

  private func order(_ job: InboxJob, _ bundle: InboxBundle, _ room: Int64, _ folders: InboxFolders) -> WorkOrder {
    var resources = options.resources
    resources.fileBytes = min(resources.fileBytes, UInt64(RoomWatch.working(room)))
    return WorkOrder(
      kind: job.kind, home: PathText(folders.root.removingLastComponent()), bundle: bundle.id, sender: bundle.sender,
      date: bundle.date, isEncrypted: bundle.isEncrypted,
      identity: bundle.isEncrypted ? options.identity.map { PathText($0) } : nil,
      models: options.models.map { PathText($0) }, versionOrder: options.versionOrder,
      quarantineID: bundle.quarantineID, unpackedBytes: min(options.unpackedBytes, room),
      unpackedRatio: options.unpackedRatio, unpackedEntries: entries(room), resources: resources,
      result: PathText(folders.work(bundle.id).appending("\(job.id).json")))
  }

  /// Whether the room, not the general limit, was exceeded.
  private func isForLackOfRoom(_ failure: WorkResult.Failure, _ order: WorkOrder) -> Bool {
    guard failure.code == "archive-too-large" else { return false }
    return order.unpackedBytes < options.unpackedBytes && failure.words.contains("\(order.unpackedBytes) bytes")
      || order.unpackedEntries < options.unpackedEntries && failure.words.contains("\(order.unpackedEntries) files")
  }

  /// The files that fit into the room, at a file system block each.
  private func entries(_ room: Int64) -> Int { Int(min(Int64(options.unpackedEntries), room / Inbox.leastBytes)) }

  private func failure(_ result: WorkResult, _ order: WorkOrder) -> InboxJobOutcome? {
    guard let failure = result.failure else { return nil }
    if isForLackOfRoom(failure, order) { return .failed(Self.noRoom) }
    let told = InboxBundle.Failure(
      code: String(failure.code.prefix(100)), words: String(printable(failure.words).prefix(600)))
    // A worker of a killed server still has it.
    if failure.code == FileError.Kind.locked.rawValue { return .putBack(told) }
    guard failure.isEnvironmental else { return .failed(told) }
    return ContentFault.codes.contains(failure.code) ? .tryAgain(told) : .hindered(told)
  }

  private static let senseless = InboxJobOutcome.failed(
    .init(code: InboxError.Kind.worker.rawValue, words: "The worker's result makes no sense."))

  /// Records a job's results.
  ///
  /// - Parameter archive: nil in the home.
  func outcome(
    _ opened: WorkResult.Opened?, _ salvaged: WorkResult.Salvaged?, of job: InboxJob, _ bundle: InboxBundle,
    archive: InboxBundle.Archive?
  ) throws -> InboxJobOutcome {
    guard job.kind == .open else {
      guard let salvaged, salvaged.isPlausible else { return Self.senseless }
      if let archive {
        // A salvage of other contents does not count.
        try inbox.records.change(bundle.id) { if $0.opened == bundle.opened { $0.salvaged = archive } }
      }
      try inbox.records.noteSalvage(of: bundle.id, before: salvaged.before, after: salvaged.after)
      return .done
    }
    guard let opened, opened.isPlausible else { return Self.senseless }
    var bundle = bundle
    if let archive {
      try inbox.records.change(bundle.id) { current in
        if current.opened != archive { current.salvaged = nil }
        current.opened = archive
        current.note(opened)
        bundle = current
      }
    } else {
      bundle.note(opened)
      try inbox.records.save(bundle)
    }
    if let fingerprint = bundle.fingerprint {
      try inbox.records.note(
        InboxSighting(
          bundle: bundle.id, store: Self.mark(of: bundle), fingerprint: fingerprint,
          appVersion: bundle.facts?.versions.app, date: bundle.date))
    }
    if bundle.quarantineID != nil {
      if archive == nil { try inbox.catalogueStores() }
      // It may differ from the store salvaged before.
      try queue.restart(.salvage, of: bundle.id, at: now)
    }
    return .done
  }

  /// Identifies a bundle's store by its name in the owner's quarantine and its size, if known.
  private static func mark(of bundle: InboxBundle) -> String {
    guard let facts = bundle.facts, let id = facts.quarantineID else { return bundle.id }
    let parts = [bundle.sender, facts.app ?? "", facts.store, id, String(facts.bytes)]
    return FileDigest(ofTexts: parts).hexadecimal
  }
}

extension InboxBundle {
  fileprivate mutating func note(_ opened: WorkResult.Opened) {
    level = opened.level
    app = opened.app
    store = opened.store
    files = opened.files
    fileCount = opened.fileCount
    facts = opened.facts
    account = opened.account
    quarantineID = opened.quarantineID
    fingerprint = opened.facts.map { DamageFingerprint($0) }
    failure = nil
    state = opened.quarantineID == nil ? .unpacked : .quarantined
  }
}

/// Wakes a pool's waiting threads, each once for any number of changes.
package final class WorkerWake: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let pending = Mutex(0)
  private let count: Int

  /// - Parameter count: the number of waiting threads.
  package init(count: Int) { self.count = count }

  /// Wakes a thread unless all are signalled already.
  package func signal() {
    let isNew = pending.withLock { pending in
      guard pending < count else { return false }
      pending += 1
      return true
    }
    if isNew { semaphore.signal() }
  }

  /// Waits for a signal or the timeout; returns whether it was signalled.
  @discardableResult package func wait(atMost time: DispatchTimeInterval) -> Bool {
    guard semaphore.wait(timeout: .now() + time) == .success else { return false }
    pending.withLock { $0 -= 1 }
    return true
  }
}
