import Logging
import Migration
import PersistentStore
import Platform
import SystemPackage

/// What an opening does next, with all that it has to know for it.
///
/// An opening is in one of these steps at any time, from `begin` to `opened`; an error ends it. The function of a
/// step's name in `OpeningMachine` carries it out and says which one is next.
enum OpeningStep {
  /// End what earlier runs have left unfinished.
  ///
  /// `fill`, `makeRoom` and `salvage` come back to it where they find, once they have the lock, that another process
  /// has changed the place since it was looked at.
  case begin

  /// Look at the store, and touch nothing.
  case look

  /// Decide, by the verdict and the app's policy, what becomes of the store.
  ///
  /// What only opening or migrating it has shown comes here too, as a verdict on other grounds.
  case judge(Judgement)

  /// Leave a sound store as it is.
  case keep(Judgement)

  /// Make good what a sound store lacks of its own model.
  case repair(Judgement)

  case migrate(Judgement)

  case fill(Judgement)

  /// Move into quarantine what lies at the place: a damaged or incompatible store, or parts of one.
  case makeRoom(Judgement)

  /// Go on with the salvage that a quarantined store waits for, and fill its empty place.
  ///
  /// What is to be told of the store until now is told with what comes of the salvage. Where another process does that
  /// meanwhile, this opening begins anew, and finds and tells what the other one has done.
  case salvage(QuarantinedStore, Judgement, told: [OpeningEvent])

  /// Note that no opening goes on with a salvage, because an empty store has taken the place.
  case stopWaiting(QuarantinedStore, Judgement)

  /// Open the store with SQLite.
  case open(Judgement, StoreOrigin)

  /// Bring the original back, because SQLite refuses to open the store that it was migrated to.
  case takeBack(Judgement, from: FilePath, because: PersistentStoreError)

  case opened(PersistentStore, Judgement, StoreOrigin)
}

extension OpeningStep {
  /// Whether it looks at the store while another process may be exchanging it.
  fileprivate var looksWithoutLock: Bool {
    switch self {
    case .begin, .look, .keep, .repair, .migrate, .open(_, .found): true
    case .judge, .fill, .makeRoom, .salvage, .stopWaiting, .open, .takeBack, .opened: false
    }
  }
}

/// Opens a store, whatever state it is in, step by step.
///
/// Each step has a function, which returns the next step and the events to tell of what was done. An error ends the
/// opening, as a kill does: every step leaves the place so that the next opening, by looking, goes on from there.
///
/// For a new verdict add a case to `judge`, and a step with its function for what is done about it.
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

  /// The store, as the app names it.
  let path: FilePath
  let observer: OpeningObserver

  /// How often an opening begins: anew each time that another process has changed the place between two of its steps.
  ///
  /// No step leads back but to `begin`, and so an opening ends.
  private static let beginnings = 5

  /// Goes from step to step until the store is open.
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
      // A step that is taken anew may tell the same again: then as it is now.
      events.removeAll { earlier in transition.events.contains { $0.isTheSame(as: earlier) } }
      events += transition.events
      step = transition.next
    }
  }

  /// Takes a step; `opened` is the end, and none.
  private func take(_ step: OpeningStep) throws -> Transition {
    switch step {
    case .begin: try begin()
    case .look: try look()
    case .judge(let judgement): Transition(to: try judge(judgement))
    case .keep(let judgement): try keep(judgement)
    case .repair(let judgement): try repair(judgement)
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

  /// Whether an error says that the store is not there, which may be so only while another process exchanges it; waits until
  /// no process does.
  ///
  /// Every exchange holds the lock of the folder from its first step to its last. What is there after it, or is not, the
  /// opening sees when it begins anew.
  private func waitsForExchange(_ error: any Error) throws -> Bool {
    var told: (any ReportableError)? = error as? any ReportableError
    while let one = told, ![FileError.Kind.notFound, .danglingLink].map(\.rawValue).contains(one.code) {
      told = one.cause
    }
    guard told != nil else { return false }
    do throws(FileError) {
      let folder = try PlaceSearch(path: path, surroundings: surroundings).target().folder
      let lock = try FolderLock(folder, in: fileSystem)
      _ = consume lock
      return true
    } catch {
      // Where there is no folder, or no way to it, the first error is the one to report.
      guard error.kind == .locked else { return false }
      throw error
    }
  }

  // MARK: Finding out

  /// Leads to `look`.
  private func begin() throws -> Transition {
    try observer.report(.examining, at: path)
    return Transition(to: .look, telling: try earlierRuns.finish())
  }

  /// Leads to `judge`.
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

  /// Leads to `keep`, `repair`, `migrate`, `fill` or `makeRoom`.
  ///
  /// - Throws: `LazaretError` where the store stays as it is.
  private func judge(_ judgement: Judgement) throws -> OpeningStep {
    if judgement.examination.isForeign, policy.whenForeign == .refuse, try !isOwn(judgement.place) {
      throw judgement.refusal(at: path)
    }
    switch judgement.examination.verdict {
    case .compatible: return .keep(judgement)
    case .repairable where judgement.migrationError == nil && policy.whenRepairable == .keep: return .keep(judgement)
    case .repairable where judgement.migrationError == nil && policy.whenRepairable == .repair:
      return .repair(judgement)
    case .outdated where judgement.migrationError == nil: return .migrate(judgement)
    case .missing where judgement.examination.health.files.isEmpty: return .fill(judgement)
    case .damaged where judgement.isOfNewerApp: throw judgement.refusal(at: path)
    case .missing, .repairable, .outdated, .incompatible, .damaged:
      let remedy = policy.remedy(for: judgement)
      guard remedy != .refuse else { throw judgement.refusal(at: path) }
      // A sound store of its version would stay too.
      if remedy == .salvage, let obstacle = obstacle(toSalvageOf: judgement) { throw obstacle }
      return .makeRoom(judgement)
    case .unavailable: throw judgement.refusal(at: path)
    }
  }

  /// Follows up what SQLite has met: no verdict rests on the word of one page.
  private func lookAtEveryPage(of judgement: Judgement) throws -> Examination {
    var examiner = try examiner(of: judgement.place, reports: false)
    examiner.depth = .full
    return try examiner.examine(judgement.place, countsRecords: false)
  }

  /// What a judgement leads to by another look at the place, now that this opening holds the folder's lock.
  private func judgeAgain(_ judgement: Judgement) throws -> OpeningStep {
    // A process that was replacing the store by its migrated self has ended: that is finished first.
    if try coordinator.migrator?.isReplacing(judgement.place) == true { return .begin }
    let examiner = try examiner(of: judgement.place, reports: false)
    return try judge(judgement.renewed(by: examiner.examine(judgement.place, countsRecords: true)))
  }

  // MARK: Sound stores

  /// Leads to `open`.
  private func keep(_ judgement: Judgement) throws -> Transition {
    let untold = try quarantine(of: judgement.place).untold()
    earlierRuns.removeLeftovers(of: judgement.place)
    return Transition(to: .open(judgement, .found), telling: untold)
  }

  /// Leads to `open`, or to `judge` where the repair fails for a reason in the store.
  private func repair(_ judgement: Judgement) throws -> Transition {
    // It is the first step of a migration, and here the only one.
    try migrate(judgement)
  }

  /// Leads to `open`, or to `judge` where the migration fails for a reason in the store or in the models.
  private func migrate(_ judgement: Judgement) throws -> Transition {
    let untold = try quarantine(of: judgement.place).untold()
    guard let migration = try migration(of: judgement) else {
      throw LazaretError(.incompatible, judgement.examination, path: path)
    }
    switch try migration.run() {
    case .migrated(let original, let events):
      return Transition(to: .open(judgement, .migrated(from: original, events)), telling: untold)
    case .notNeeded(let events):
      return Transition(to: .open(judgement, .found), telling: untold + events)
    case .failed(let error):
      let judged = try judgement.failed(by: error) { try lookAtEveryPage(of: judgement) }
      return Transition(to: .judge(judged), telling: untold)
    }
  }

  // MARK: Stores that make room

  /// Leads to `open`; where a store waits for its salvage, to `salvage`, or to `stopWaiting` if the policy has none.
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
    // A run may have ended between making room and filling it: its store is told of now.
    let found = try (waiting ?? quarantine.newest()).map { try quarantine.found($0) }
    let told = [found].compactMap(\.self)
    if let waiting, try policy.continuesSalvage(of: waiting, at: path, home: coordinator.home) {
      _ = consume lock
      return Transition(to: .salvage(waiting, judgement, told: told))
    }
    let created = try empty.create(at: place)
    _ = consume lock
    let next = waiting.map { OpeningStep.stopWaiting($0, judgement) } ?? .open(judgement, .installed)
    return Transition(to: next, telling: told + [created])
  }

  /// Leads to `salvage`, or to `open` where the policy has an empty store.
  private func makeRoom(_ judgement: Judgement) throws -> Transition {
    let place = judgement.place
    let quarantine = quarantine(of: place)
    try observer.report(.creating, at: path)
    let empty = try emptyStore()
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard case .makeRoom(let now) = try judgeAgain(judgement) else { return Transition(to: .begin) }
    let main = try place.members(in: fileSystem).first { $0.part == .main && $0.status.kind == .regular }
    // Of a store whose main file is missing, its log or journal may have records.
    let isStore = main != nil || now.examination.verdict == .damaged
    let salvage = isStore ? policy.salvage(of: now, since: surroundings.now()) : nil
    if salvage?.isWanted == true {
      try WaitingSalvage.requireSpace(for: place, coordinator.model, in: fileSystem)
    }
    // Complete, verified and on the disk before anything is moved: a disk too full for it is met first.
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
      stored, because: facts.reason, report: now.migrationError?.reportPath,
      undo: try quarantine.undo(of: stored), at: surroundings.now())
    // What was left over of a store is no reason to forget one that waits.
    let waiting = salvage?.isWanted == true ? stored : isStore ? nil : try quarantine.waiting()
    if let waiting, try policy.continuesSalvage(of: waiting, at: path, home: coordinator.home) {
      _ = consume staged
      _ = consume lock
      return Transition(to: .salvage(waiting, judgement, told: [quarantined]))
    }
    let created = try empty.install(staged)
    _ = consume lock
    return Transition(to: .open(judgement, .installed), telling: [quarantined, created])
  }

  /// Leads to `open`: of what was salvaged, or of an empty store where nothing was.
  ///
  /// Where the salvage itself fails, the store is put back, and the opening ends.
  /// Records that were recovered and could not be migrated are replaced by an empty store only where those of a sound store would be.
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
      _ = consume lock
      throw try salvage.putBack(because: error)
    }
    let events: [OpeningEvent]?
    switch outcome {
    case .usable(let installation, let files, let result):
      events = try salvage.install(installation, files, result)
    case .newer(let examination):
      throw salvage.waitsForNewerApp(examination)
    case .unmigrated(let error):
      guard policy.whenMigrationFails != .refuse else { throw error }
      observer.progress(.init(phase: .creating))
      events = try salvage.giveUp(for: try emptyStore())
    case .nothing(let error):
      if policy.whenSalvageFails == .refuse, let error { throw error }
      observer.progress(.init(phase: .creating))
      events = try salvage.giveUp(for: try emptyStore())
    }
    _ = consume lock
    guard let events else { return Transition(to: .begin) }
    return Transition(to: .open(judgement, .installed), telling: told + events)
  }

  /// Leads to `open`.
  private func stopWaiting(_ stored: QuarantinedStore, _ judgement: Judgement) throws -> Transition {
    let quarantine = quarantine(of: judgement.place)
    let lock = try quarantine.folder.salvageLock(patience: 10_000)
    _ = try quarantine.stopWaiting(stored.id)
    _ = consume lock
    return Transition(to: .open(judgement, .installed))
  }

  // MARK: Opening

  /// Leads to `opened`; where SQLite finds damage, to `judge`, or to `takeBack` if this opening has migrated the store.
  private func open(_ judgement: Judgement, _ origin: StoreOrigin) throws -> Transition {
    switch origin {
    case .found: try observer.report(.opening, at: path)
    // Another store is in the place: the observer cannot cancel that any more.
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

  /// Keeps what SQLite would fold in or remove although it was not understood; a store that was moved or migrated has it still.
  private func keepLog(of judgement: Judgement, _ origin: StoreOrigin) throws -> [OpeningEvent] {
    guard case .found = origin, judgement.examination.health.hasUnreadLog else { return [] }
    do {
      return try KeptLog(place: judgement.place, home: coordinator.home, surroundings: surroundings).keep()
    } catch let error as any ReportableError {
      throw LazaretError(.unavailable, because: error, path: path)
    }
  }

  /// Leads to `judge`.
  private func takeBack(
    _ judgement: Judgement, _ original: FilePath, _ error: PersistentStoreError
  ) throws -> Transition {
    try coordinator.migrator?.takeBack(judgement.place.main, from: original)
    let failure = MigrationError(
      .verificationFailed, operation: "open the migrated store", path: judgement.place.main,
      detail: "it does not open in its place: \(error.detail)")
    return Transition(to: .judge(try judgement.failed(by: failure) { try lookAtEveryPage(of: judgement) }))
  }

  /// The end: removes the mark that something has to be told, and tells everything.
  private func opened(
    _ store: PersistentStore, _ judgement: Judgement, _ origin: StoreOrigin, _ events: [OpeningEvent]
  ) throws -> Opening {
    let mark = PendingNotice(for: judgement.place, in: fileSystem)
    do {
      if try mark.isThere() { try mark.remove() }
    } catch {
      // The next opening tells of it. The first error is the one to report; nothing was written through this
      // connection.
      try? store.close()
      throw error
    }
    return Opening(
      store: store, examination: judgement.examination, events: events,
      notice: .about(events, report: judgement.migrationError?.reportPath),
      backgroundPass: origin.isInstalled ? nil : backgroundPass(over: judgement))
  }
}
