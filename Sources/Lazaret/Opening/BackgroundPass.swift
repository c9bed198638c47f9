internal import Dispatch
package import Platform
import SQLiteFormat
package import Salvage
internal import SystemPackage

/// The background work on an opened store: checking every page and noting a recovery kit.
///
/// The opening does not wait for it.
package final class BackgroundPass: Sendable {
  package struct Outcome: Sendable {
    package var check: Check

    package var kit: RecoveryKitNote.Outcome
  }

  package enum Check: Sendable {
    case sound

    /// ``OpeningObserver/foundDamage`` was called, and the next opening checks every page first.
    case damaged(FoundDamage)

    case notDue

    /// The next opening tries again.
    case failed(any ReportableError)
  }

  struct Task: Sendable {
    let place: StoreFileSet
    let home: FilePath
    let appVersion: String?
    let policy: OpeningPolicy
    let surroundings: Surroundings
    let observer: OpeningObserver

    /// Whether the examination already found every page sound.
    let isChecked: Bool

    /// Whether the previous connection left a nonempty log or journal.
    let endedUncleanly: Bool
  }

  private let group = DispatchGroup()
  private let result = Mutex<Outcome?>(nil)

  private static let running = Mutex<[FilePath: BackgroundPass]>([:])

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

  package func wait() -> Outcome {
    group.wait()
    return result.withLock { $0 } ?? Outcome(check: .notDue, kit: .notDue)
  }

  /// Waits for this process's pass, since its connection would keep an opening from moving the store.
  static func waitForRunning(of store: FilePath) {
    let pass = running.withLock { $0[store] }
    _ = pass?.wait()
  }
}

/// Damage in an open store.
package struct FoundDamage: Sendable, Hashable {
  let store: FilePath

  package let flaws: Int

  /// The kinds of flaws, stable words in alphabetical order.
  package let kinds: [String]
}

extension BackgroundPass.Task {
  fileprivate func run() -> BackgroundPass.Outcome {
    let check = check()
    // A kit would record the damage as the intended state.
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
      return .failed(SalvageError(kit: error))
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
    return age < 0 || age >= interval.components.seconds
  }

  private func note(damage: String?) throws {
    try CheckNote(date: surroundings.now().rfc3339, appVersion: appVersion, damage: damage)
      .write(of: place.main, home: home, in: surroundings.fileSystem)
  }
}

package enum RecoveryKitNote {
  package enum Outcome: Sendable {
    case noted(OpeningEvent)

    /// The newest kit is recent, or kits are off.
    case notDue

    /// The store stays open, and the next opening tries again.
    case failed(SalvageError)
  }

  static func note(
    _ store: StoreFileSet, home: FilePath, every interval: Duration, _ surroundings: Surroundings
  ) -> Outcome {
    let folder = KitFolder(for: store.main, home: home, in: surroundings.fileSystem)
    do {
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
      return .failed(SalvageError(kit: error))
    }
  }

  private static func generation(of store: StoreFileSet, _ surroundings: Surroundings) throws(SalvageError) -> String? {
    do throws(FileError) {
      return try QuarantineFolder(beside: store, surroundings: surroundings).lineage(of: store.main)?.generation
    } catch {
      throw SalvageError(error)
    }
  }
}
