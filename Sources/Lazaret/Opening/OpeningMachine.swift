import Logging
import Migration
import PersistentStore
import Platform
import SystemPackage

/// The next step of an opening, with its input.
///
/// The function of a step's name in `OpeningMachine` runs it and returns the next one; an error ends the opening.
enum OpeningStep {
  /// Finish earlier runs' work.
  ///
  /// `fill`, `makeRoom` and `salvage` return here if another process changed the place before they held the lock.
  case begin

  /// Examine the store.
  case look

  /// Decide by the verdict and the app's policy, also on findings of opening or migrating.
  case judge(Judgement)

  case keep(Judgement)

  /// Migrate, or add missing parts of its own model.
  case migrate(Judgement)

  case fill(Judgement)

  /// Quarantine a damaged or incompatible store, or parts of one.
  case makeRoom(Judgement)

  /// Go on with the pending salvage of a quarantined store, and fill its empty place.
  ///
  /// If another process finishes it meanwhile, this opening begins again and reports that result.
  case salvage(QuarantinedStore, Judgement, told: [OpeningEvent])

  /// Note that no opening continues the salvage, because an empty store is installed.
  case stopWaiting(QuarantinedStore, Judgement)

  case open(Judgement, StoreOrigin)

  /// Put the original back, because SQLite refuses the migrated store.
  case takeBack(Judgement, from: FilePath, because: PersistentStoreError)

  case opened(PersistentStore, Judgement, StoreOrigin)
}

extension OpeningStep {
  /// Whether another process may be exchanging the store during the step.
  fileprivate var looksWithoutLock: Bool {
    switch self {
    case .begin, .look, .keep, .migrate, .open(_, .found): true
    case .judge, .fill, .makeRoom, .salvage, .stopWaiting, .open, .takeBack, .opened: false
    }
  }
}

/// Opens a store in any state, step by step.
///
/// Each step's function returns the next step and the events to report. After every step, and an error or kill, the
/// next opening can go on from the state it finds.
///
/// For a new verdict add a case to `judge`, and a step with its function.
struct OpeningMachine {
  private struct Transition {
    let next: OpeningStep
    let events: [OpeningEvent]

    init(to next: OpeningStep, telling events: [OpeningEvent] = []) {
      self.next = next
      self.events = events
    }
  }

  let coordinator: StoreCoordinator

  let path: FilePath
  let observer: OpeningObserver

  /// The most starts: an opening starts again if another process has changed the place between steps.
  ///
  /// Steps lead back only to `begin`, so an opening ends.
  private static let beginnings = 5

  func run() throws -> Opening {
    var step = OpeningStep.begin
    var events: [OpeningEvent] = []
    var begun = 0
    while true {
      if case .opened(let store, let judgement, let origin) = step {
        return try opened(store, judgement, origin, events)
      }
      if case .begin = step {
        begun += 1
        guard begun <= Self.beginnings else { throw FileError(.changed, operation: "open the store", path: path) }
      }
      let transition: Transition
      do {
        transition = try take(step)
      } catch {
        guard begun < Self.beginnings, step.looksWithoutLock, try waitsForExchange(error) else { throw error }
        transition = Transition(to: .begin)
      }
      // A repeated step may report an event again: keep the latest.
      events.removeAll { earlier in transition.events.contains { $0.isTheSame(as: earlier) } }
      events += transition.events
      step = transition.next
    }
  }

  private func take(_ step: OpeningStep) throws -> Transition {
    switch step {
    case .begin: try begin()
    case .look: try look()
    case .judge(let judgement): Transition(to: try judge(judgement))
    case .keep(let judgement): try keep(judgement)
    case .migrate(let judgement): try migrate(judgement)
    case .fill(let judgement): try fill(judgement)
    case .makeRoom(let judgement): try makeRoom(judgement)
    case .salvage(let stored, let judgement, let told): try salvage(stored, judgement, told)
    case .stopWaiting(let stored, let judgement): try stopWaiting(stored, judgement)
    case .open(let judgement, let origin): try open(judgement, origin)
    case .takeBack(let judgement, let original, let error): try takeBack(judgement, original, error)
    case .opened: Transition(to: step)
    }
  }

  /// Waits for another process's exchange if the error reports a missing store, and returns whether to begin again.
  ///
  /// Every exchange holds the folder lock from first step to last.
  private func waitsForExchange(_ error: any Error) throws -> Bool {
    var told: (any ReportableError)? = error as? any ReportableError
    while let one = told, ![FileError.Kind.notFound, .danglingLink].map(\.rawValue).contains(one.code) {
      told = one.cause
    }
    guard told != nil else { return false }
    do throws(FileError) {
      let folder = try StoreFileSet.locateTarget(path, in: fileSystem).folder
      let lock = try FolderLock(folder, in: fileSystem)
      lock.release()
      return true
    } catch {
      // Without a reachable folder, report the first error.
      guard error.kind == .locked else { return false }
      throw error
    }
  }

  // MARK: Finding out

  private func begin() throws -> Transition {
    try observer.report(.examining, at: path)
    return Transition(to: .look, telling: try earlierRuns.finish())
  }

  private func look() throws -> Transition {
    let place = try PlaceSearch(path: path, surroundings: surroundings).place()
    if let store = try StoreFileSet.store(withPart: place.main, in: fileSystem) {
      throw FileError(
        .notRegularFile, operation: "open the store", path: path, detail: "it is a part of the store \(quoted(store))",
        hint: "Open that store, which has it as its own.")
    }
    // Its connection would keep this opening from moving the store.
    BackgroundPass.waitForRunning(of: place.main)
    let examination = try examiner(of: place).examine(place, countsRecords: false)
    try place.requireRoomForSQLite(
      to: "open the store", usesLog: examination.health.usesLog ?? coordinator.model.isCoreData)
    coordinator.logger.debug(
      "examined", metadata: ["verdict": "\(examination.verdict)", "reason": "\(examination.reason.code)"])
    return Transition(to: .judge(Judgement(of: place, seen: examination)))
  }

  /// Leads to `keep`, `migrate`, `fill` or `makeRoom`.
  private func judge(_ judgement: Judgement) throws -> OpeningStep {
    if judgement.examination.isForeign, policy.whenForeign == .refuse, try !isOwn(judgement.place) {
      throw judgement.refusal(at: path)
    }
    switch judgement.examination.verdict {
    case .compatible: return .keep(judgement)
    case .repairable where judgement.migrationError == nil && policy.whenRepairable == .keep: return .keep(judgement)
    case .repairable where judgement.migrationError == nil && policy.whenRepairable == .repair:
      return .migrate(judgement)
    case .outdated where judgement.migrationError == nil: return .migrate(judgement)
    case .missing where judgement.examination.health.files.isEmpty: return .fill(judgement)
    case .damaged where judgement.isOfNewerApp: throw judgement.refusal(at: path)
    case .missing, .repairable, .outdated, .incompatible, .damaged:
      let remedy = policy.remedy(for: judgement)
      guard remedy != .refuse else { throw judgement.refusal(at: path) }
      // A sound store of that version would stay too.
      if remedy == .salvage, let obstacle = obstacle(toSalvageOf: judgement) { throw obstacle }
      return .makeRoom(judgement)
    case .unavailable: throw judgement.refusal(at: path)
    }
  }

  /// Examines every page, because one page in SQLite's error does not justify a verdict.
  private func lookAtEveryPage(of judgement: Judgement) throws -> Examination {
    var examiner = try examiner(of: judgement.place, reports: false)
    examiner.depth = .full
    return try examiner.examine(judgement.place, countsRecords: false)
  }

  private func judgeAgain(_ judgement: Judgement) throws -> OpeningStep {
    // Finish another process's replacement by a migrated copy.
    if try coordinator.migrator?.isReplacing(judgement.place) == true { return .begin }
    let examiner = try examiner(of: judgement.place, reports: false)
    return try judge(judgement.renewed(by: examiner.examine(judgement.place, countsRecords: true)))
  }

  // MARK: Sound stores

  private func keep(_ judgement: Judgement) throws -> Transition {
    let untold = try quarantine(of: judgement.place).untold()
    earlierRuns.removeLeftovers(of: judgement.place)
    return Transition(to: .open(judgement, .found), telling: untold)
  }

  /// Leads to `open`, or to `judge` if store or models are at fault.
  private func migrate(_ judgement: Judgement) throws -> Transition {
    let untold = try quarantine(of: judgement.place).untold()
    guard let migration = try migration(of: judgement) else {
      throw LazaretError(.incompatible, judgement.examination, path: path)
    }
    switch try migration.run() {
    case .migrated(let original, let events):
      return Transition(to: .open(judgement, .migrated(from: original, events)), telling: untold)
    case .notNeeded(let events): return Transition(to: .open(judgement, .found), telling: untold + events)
    case .failed(let error):
      let judged = try judgement.failed(by: error) { try lookAtEveryPage(of: judgement) }
      return Transition(to: .judge(judged), telling: untold)
    }
  }

  // MARK: Stores that make room

  /// Leads to `open`; for a pending salvage to `salvage`, or to `stopWaiting` if the policy wants none.
  private func fill(_ judgement: Judgement) throws -> Transition {
    let place = judgement.place
    let quarantine = quarantine(of: place)
    try observer.report(.creating, at: path)
    let empty = try emptyStore()
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard case .fill = try judgeAgain(judgement), try place.members(in: fileSystem).isEmpty else {
      return Transition(to: .begin)
    }
    let waiting = try quarantine.waiting()
    // Report the quarantine of an earlier run that ended early.
    let found = try (waiting ?? quarantine.newest()).map { quarantine.found($0) }
    let told = [found].compactMap(\.self)
    if let waiting, try policy.continuesSalvage(of: waiting, at: path) {
      lock.release()
      return Transition(to: .salvage(waiting, judgement, told: told))
    }
    let created = try empty.create(at: place)
    lock.release()
    let next = waiting.map { OpeningStep.stopWaiting($0, judgement) } ?? .open(judgement, .installed)
    return Transition(to: next, telling: told + [created])
  }

  /// Leads to `salvage`, or to `open` if the policy wants an empty store.
  private func makeRoom(_ judgement: Judgement) throws -> Transition {
    let place = judgement.place
    let quarantine = quarantine(of: place)
    try observer.report(.creating, at: path)
    let empty = try emptyStore()
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard case .makeRoom(let now) = try judgeAgain(judgement) else { return Transition(to: .begin) }
    let main = try place.members(in: fileSystem).first { $0.part == .main && $0.status.kind == .regular }
    // A log or journal alone may still hold records.
    let isStore = main != nil || now.examination.verdict == .damaged
    let salvage = isStore ? policy.salvage(of: now, since: surroundings.now()) : nil
    if salvage?.isWanted == true { try WaitingSalvage.requireSpace(for: place, coordinator.model, in: fileSystem) }
    // The new store is on disk before any move, so that a full disk fails early.
    let access = try main.flatMap { try fileSystem.access(to: $0.path) }
    let staged = try empty.stage(at: place, access: access)
    var facts = QuarantineCase(now.examination, appVersion: coordinator.appVersion)
    facts.salvage = salvage
    let stored = try quarantine.add(because: facts) { done, total in
      try observer.report(.quarantining, at: path, completed: done, of: total)
    }
    coordinator.logger.notice(
      "quarantined a store", metadata: ["id": "\(stored.id)", "reason": "\(facts.reason.code)"])
    let quarantined = OpeningEvent.quarantined(
      stored, because: facts.reason, report: now.migrationError?.reportPath, at: surroundings.now())
    // Leftovers without records must not displace a pending salvage.
    let waiting = salvage?.isWanted == true ? stored : isStore ? nil : try quarantine.waiting()
    if let waiting, try policy.continuesSalvage(of: waiting, at: path) {
      staged.discard()
      lock.release()
      return Transition(to: .salvage(waiting, judgement, told: [quarantined]))
    }
    let created = try empty.install(staged)
    lock.release()
    return Transition(to: .open(judgement, .installed), telling: [quarantined, created])
  }

  /// Leads to `open`, with the salvaged store, or an empty one if the salvage produced none.
  ///
  /// If the salvage itself fails, the store is put back. An empty store replaces records that could not be migrated
  /// only if the policy replaces a sound store with such records.
  private func salvage(
    _ stored: QuarantinedStore, _ judgement: Judgement, _ told: [OpeningEvent]
  ) throws -> Transition {
    let salvage = salvage(of: stored, from: judgement.place)
    let lock = try salvage.lock()
    guard try salvage.isNeeded() else { return Transition(to: .begin) }
    let outcome: WaitingSalvage.Outcome
    do {
      outcome = try salvage.run(triesAgain: policy.whenSalvageFails == .refuse)
    } catch let error as any ReportableError
      where !error.isEnvironmental && error.code != LazaretErrorKind.cancelled.code
    {
      lock.release()
      throw try salvage.putBack(because: error)
    }
    let events: [OpeningEvent]?
    switch outcome {
    case .usable(let installation, let files, let result): events = try salvage.install(installation, files, result)
    case .newer(let examination): throw salvage.waitsForNewerApp(examination)
    case .unmigrated(let error):
      guard policy.whenMigrationFails != .refuse else { throw error }
      observer.progress(.init(phase: .creating))
      events = try salvage.giveUp(for: try emptyStore())
    case .nothing(let error):
      if policy.whenSalvageFails == .refuse, let error { throw error }
      observer.progress(.init(phase: .creating))
      events = try salvage.giveUp(for: try emptyStore())
    }
    lock.release()
    guard let events else { return Transition(to: .begin) }
    return Transition(to: .open(judgement, .installed), telling: told + events)
  }

  private func stopWaiting(_ stored: QuarantinedStore, _ judgement: Judgement) throws -> Transition {
    let quarantine = quarantine(of: judgement.place)
    let lock = try quarantine.folder.salvageLock(patience: 10_000)
    _ = try quarantine.stopWaiting(stored.id)
    lock.release()
    return Transition(to: .open(judgement, .installed))
  }

  // MARK: Opening

  /// Leads to `opened`; on damage to `judge`, or to `takeBack` if this opening migrated the store.
  private func open(_ judgement: Judgement, _ origin: StoreOrigin) throws -> Transition {
    switch origin {
    case .found: try observer.report(.opening, at: path)
    // The store is replaced, so the observer can no longer cancel.
    case .migrated: observer.progress(.init(phase: .opening))
    case .installed:
      observer.progress(.init(phase: .opening))
      try forgetCheck(of: judgement.place)
    }
    let kept = try keepLog(of: judgement, origin)
    do throws(PersistentStoreError) {
      let store = try PersistentStore(
        opening: judgement.place.main, model: coordinator.currentModel, options: coordinator.storeOptions)
      return Transition(to: .opened(store, judgement, origin), telling: kept + origin.events)
    } catch {
      let damaged = try judgement.damaged(by: error) { try lookAtEveryPage(of: judgement) }
      guard let damaged else { throw error }
      switch origin {
      case .found: return Transition(to: .judge(damaged), telling: kept)
      case .migrated(let original, _): return Transition(to: .takeBack(judgement, from: original, because: error))
      case .installed: throw error
      }
    }
  }

  /// Keeps a log, not understood, that SQLite would fold in or remove; moved or migrated originals still have theirs.
  private func keepLog(of judgement: Judgement, _ origin: StoreOrigin) throws -> [OpeningEvent] {
    guard case .found = origin, judgement.examination.health.hasUnreadLog else { return [] }
    do {
      return try KeptLog(place: judgement.place, home: coordinator.home, surroundings: surroundings).keep()
    } catch let error as any ReportableError {
      throw LazaretError(.unavailable, because: error, path: path)
    }
  }

  private func takeBack(
    _ judgement: Judgement, _ original: FilePath, _ error: PersistentStoreError
  ) throws -> Transition {
    try coordinator.migrator?.takeBack(judgement.place.main, from: original)
    let failure = MigrationError(
      .verificationFailed, operation: "open the migrated store", path: judgement.place.main,
      detail: "it does not open in its place: \(error.detail)")
    return Transition(to: .judge(try judgement.failed(by: failure) { try lookAtEveryPage(of: judgement) }))
  }

  private func opened(
    _ store: PersistentStore, _ judgement: Judgement, _ origin: StoreOrigin, _ events: [OpeningEvent]
  ) throws -> Opening {
    let mark = PendingNotice(for: judgement.place, in: fileSystem)
    do {
      if try mark.isThere() { try mark.remove() }
    } catch {
      // The next opening reports it; this connection wrote no data.
      try? store.close()
      throw error
    }
    return Opening(
      store: store, examination: judgement.examination, events: events,
      notice: .about(events, report: judgement.migrationError?.reportPath),
      backgroundPass: origin.isInstalled ? nil : backgroundPass(over: judgement))
  }
}
