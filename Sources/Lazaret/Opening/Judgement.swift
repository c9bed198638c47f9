package import Migration
package import PersistentStore
import Platform
package import SystemPackage

struct Judgement {
  enum Grounds {
    case look

    /// SQLite refused, although the examination saw no fault.
    case opening

    /// It failed because of the store or the models.
    case migration(MigrationError)
  }

  let place: StoreFileSet

  /// With the final verdict and reason.
  let examination: Examination

  let grounds: Grounds

  private init(_ place: StoreFileSet, _ examination: Examination, on grounds: Grounds) {
    self.place = place
    self.examination = examination
    self.grounds = grounds
  }

  init(of place: StoreFileSet, seen examination: Examination) { self.init(place, examination, on: .look) }

  var migrationError: MigrationError? { if case .migration(let error) = grounds { error } else { nil } }
}

// MARK: - What is found out later

extension Judgement {
  /// Returns the judgement of damage in SQLite's error; nil for another error.
  ///
  /// - Parameter look: examines every page, which says more than SQLite.
  func damaged(by error: PersistentStoreError, look: () throws -> Examination) rethrows -> Judgement? {
    guard let reason = VerdictReason(damageFoundBy: error) else { return nil }
    return Judgement(place, try damaged(seen: look(), else: reason), on: .opening)
  }

  /// Returns the judgement after a failed migration or repair.
  ///
  /// Damaged or incompatible if that was the reason, or if a repaired store differs from its original; else unchanged.
  ///
  /// - Parameter look: examines every page after damage.
  func failed(by error: MigrationError, look: () throws -> Examination) rethrows -> Judgement {
    let judged =
      if error.meansNoWay {
        examination.with(.incompatible, .notMigratable(error))
      } else if error.kind == .sourceDamaged
        || error.kind == .verificationFailed && examination.verdict == .repairable
      {
        // A repair that changes rows reveals more damage.
        try damaged(seen: look(), else: .migrationFailed(error))
      } else {
        examination.with(examination.verdict, .migrationFailed(error))
      }
    return Judgement(place, judged, on: .migration(error))
  }

  private func damaged(seen: Examination, else reason: VerdictReason) -> Examination {
    seen.verdict == .damaged ? seen : examination.with(.damaged, reason)
  }

  /// Returns the judgement after another examination.
  ///
  /// Findings of opening or migrating, which an examination cannot see, count until a write.
  func renewed(by now: Examination) -> Judgement {
    switch grounds {
    case .opening, .migration:
      if now.isOfSameFile(as: examination) {
        return Judgement(place, now.with(examination.verdict, examination.reason), on: grounds)
      }
      return Judgement(of: place, seen: now)
    case .look: return Judgement(of: place, seen: now)
    }
  }

  /// Whether the store is damaged and newer than the app, which could not open its salvage either.
  var isOfNewerApp: Bool { examination.verdict == .damaged && examination.newer != nil }

  func refusal(at path: FilePath) -> LazaretError {
    let kind: LazaretError.Kind =
      switch examination.verdict {
      case .damaged: examination.isForeignFile ? .foreignFile : isOfNewerApp ? .unavailable : .damaged
      case .incompatible: examination.isForeign ? .foreignStore : .incompatible
      case .outdated: .migrationFailed
      case .repairable: migrationError == nil ? .repairable : .migrationFailed
      case .compatible, .missing, .unavailable: .unavailable
      }
    if let migrationError { return LazaretError(kind, migrationError, path: path, examination: examination) }
    var error = LazaretError(kind, examination, path: path)
    if examination.reason.hint == VerdictReason.salvageHint {
      // This opening could have salvaged the store, but the policy refused.
      error.hint = "The store is as it was."
    }
    if kind == .unavailable, let newer = examination.newer { error.details.code = newer.code }
    return error
  }
}

extension Examination {
  fileprivate func with(_ verdict: Verdict, _ reason: VerdictReason) -> Examination {
    var copy = self
    copy.verdict = verdict
    copy.reason = reason
    return copy
  }

  fileprivate func isOfSameFile(as earlier: Examination) -> Bool {
    let files = [self, earlier].map { $0.health.files.first { $0.part == .main }?.status }
    guard let now = files[0], let then = files[1] else { return false }
    return now.identity == then.identity && now.size == then.size && now.modified == then.modified
  }
}

package struct Opening: Sendable {
  package let store: PersistentStore

  /// The examination at the beginning.
  package let examination: Examination

  /// The actions taken, in order.
  package let events: [OpeningEvent]

  package let notice: OpeningNotice?

  package let backgroundPass: BackgroundPass?

  /// The data lost because the app's version cannot hold it.
  package var losses: [MigrationPlan.Finding] { events.flatMap { $0.migration?.losses ?? [] } }

  package var salvage: OpeningSalvage? { events.last { $0.salvage != nil }?.salvage }

  /// Whether the user lost data or lacks it for now: an empty store, lost or doubtful records, losses of a migration.
  package var isWithLosses: Bool { isWithLosses(besides: { _ in false }) }

  /// Excludes planned losses.
  package func isWithLosses(besides isPlanned: (MigrationPlan.Finding) -> Bool) -> Bool {
    if !losses.allSatisfy(isPlanned) { return true }
    if examination.health.mayLackCommits, examination.verdict != .damaged { return true }
    guard let notice, notice.key != OpeningNotice.repairedKey else { return false }
    guard let salvage else { return true }
    return !(salvage.isInstalled && salvage.isComplete)
  }

  package var quarantinedPath: FilePath? { events.last { $0.kind == .quarantine && $0.id != nil }?.path.path }
}
