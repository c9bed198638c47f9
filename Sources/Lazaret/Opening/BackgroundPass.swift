internal import Dispatch
package import Platform
import SQLiteFormat
package import Salvage
package import SystemPackage

/// What goes on in the background after a store was opened: every page is looked at, and a recovery kit noted.
///
/// The opening does not wait for it. An app that ends soon after, or that wants to know, waits for its outcome.
package final class BackgroundPass: Sendable {
  /// How it ended.
  package struct Outcome: Sendable {
    /// What looking at every page came to.
    package var check: Check

    /// What noting a recovery kit came to.
    package var kit: RecoveryKitNote.Outcome
  }

  /// What looking at every page came to.
  package enum Check: Sendable {
    case sound

    /// There is damage; ``OpeningObserver/foundDamage`` was told, and the next opening looks at every page before it decides.
    case damaged(FoundDamage)

    /// The last look is not old enough yet.
    case notDue

    /// The store could not be looked at; the next opening tries again.
    case failed(any ReportableError)
  }

  /// What it is to do with which store.
  struct Task: Sendable {
    let place: StoreFileSet
    let home: FilePath
    let appVersion: String?
    let policy: OpeningPolicy
    let surroundings: Surroundings
    let observer: OpeningObserver

    /// Whether the look at the store before it was opened went to every page, and found all of them sound.
    let isChecked: Bool

    /// Whether the connection before was not closed: it has left a log, or a journal, with something in it.
    let endedUncleanly: Bool
  }

  private let group = DispatchGroup()
  private let result = Mutex<Outcome?>(nil)

  /// The passes that are under way, by the path of the store.
  private static let running = Mutex<[FilePath: BackgroundPass]>([:])

  /// Begins on a thread of its own.
  init(_ task: Task) {
    group.enter()
    Self.running.withLock { $0[task.place.main] = self }
    WorkThread.start { [self] in
      let outcome = task.run()
      result.withLock { $0 = outcome }
      Self.running.withLock { if $0[task.place.main] === self { $0[task.place.main] = nil } }
      group.leave()
    }
  }

  /// Waits until it has ended, and tells how.
  package func wait() -> Outcome {
    group.wait()
    return result.withLock { $0 } ?? Outcome(check: .notDue, kit: .notDue)
  }

  /// Waits for a pass over a store that is under way in this process: its connection would be in the way of an opening that
  /// has to move the store.
  static func waitForRunning(of store: FilePath) {
    let pass = running.withLock { $0[store] }
    _ = pass?.wait()
  }
}

/// Damage that was found in a store while the app has it open.
package struct FoundDamage: Sendable, Hashable {
  /// The store.
  package let store: FilePath

  /// How many flaws there are.
  package let flaws: Int

  /// The kinds of flaws, as stable words, in alphabetical order.
  package let kinds: [String]
}

extension BackgroundPass.Task {
  fileprivate func run() -> BackgroundPass.Outcome {
    let check = check()
    // A kit of a damaged store would take the damage for how the store is meant to be.
    if case .damaged = check { return .init(check: check, kit: .notDue) }
    guard let interval = policy.recoveryKitInterval else { return .init(check: check, kit: .notDue) }
    return .init(check: check, kit: RecoveryKitNote.note(place, home: home, every: interval, surroundings))
  }

  private func check() -> BackgroundPass.Check {
    do {
      if isChecked {
        try note(damage: nil)
        return .notDue
      }
      guard let interval = policy.checkInterval, try isDue(after: interval) else { return .notDue }
      let found = try RecoveryKit.check(ofOpen: place.main).findings.damage
      let kinds = found.keys.map(\.rawValue).sorted()
      try note(damage: kinds.first)
      guard !found.isEmpty else { return .sound }
      let damage = FoundDamage(store: place.main, flaws: found.values.reduce(0, +), kinds: kinds)
      observer.foundDamage(damage)
      return .damaged(damage)
    } catch let error as any ReportableError {
      return .failed(error)
    } catch {
      return .failed(
        FileError(.other, operation: "check the store", path: place.main, detail: "an unforeseen failure"))
    }
  }

  private func isDue(after interval: Duration) throws -> Bool {
    if endedUncleanly { return true }
    guard let last = try CheckNote.read(of: place.main, home: home, in: surroundings.fileSystem),
      last.appVersion == appVersion, let date = Timestamp(last.date)
    else { return true }
    let age = surroundings.now().secondsSince1970 - date.secondsSince1970
    // A note of the future is of no use for telling time.
    return age < 0 || age >= interval.components.seconds
  }

  private func note(damage: String?) throws {
    try CheckNote(date: surroundings.now().rfc3339, appVersion: appVersion, damage: damage)
      .write(of: place.main, home: home, in: surroundings.fileSystem)
  }
}

/// The noting of a recovery kit, which a ``BackgroundPass`` does over a store that was opened.
package enum RecoveryKitNote {
  /// How the noting ended.
  package enum Outcome: Sendable {
    /// A kit was written; the event says where.
    case noted(OpeningEvent)

    /// The newest kit is not old enough yet, or none is wanted.
    case notDue

    /// None could be made; the store is open all the same, and the next opening tries again.
    case failed(RecoveryKitError)
  }

  /// Notes a kit where the newest one is old enough.
  static func note(
    _ store: StoreFileSet, home: FilePath, every interval: Duration, _ surroundings: Surroundings
  ) -> Outcome {
    let folder = KitFolder(for: store.main, home: home, in: surroundings.fileSystem)
    do throws(RecoveryKitError) {
      let now = surroundings.now()
      let generation = try generation(of: store, surroundings)
      if try folder.hasKit(of: generation, youngerThan: interval, at: now) { return .notDue }
      var kit = try RecoveryKit(ofOpen: store.main, surroundings: surroundings)
      kit.generation = generation
      let path = try folder.add(kit)
      return .noted(
        OpeningEvent(
          .recoveryKit, at: now, path: path,
          words: "A recovery kit of the store was noted; it holds none of the records' values."))
    } catch {
      return .failed(error)
    }
  }

  private static func generation(
    of store: StoreFileSet, _ surroundings: Surroundings
  ) throws(RecoveryKitError) -> String? {
    do throws(FileError) {
      return try QuarantineFolder(beside: store, surroundings: surroundings).lineage(of: store.main)?.generation
    } catch {
      throw RecoveryKitError(error)
    }
  }
}
