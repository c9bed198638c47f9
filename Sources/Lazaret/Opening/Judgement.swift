package import Migration
package import PersistentStore
import Platform
internal import SQLiteFormat
package import SystemPackage

/// What an opening holds of a store: the verdict on it, and what that rests on.
struct Judgement {
  /// What a verdict rests on.
  enum Grounds {
    case look

    /// Opening it: SQLite refused, where the look had seen nothing wrong.
    case opening

    /// Migrating it, which failed for a reason in the store or in the models.
    case migration(MigrationError)
  }

  let place: StoreFileSet

  /// What was found out about it, with the verdict and the reason that count.
  let examination: Examination

  /// What the verdict rests on.
  let grounds: Grounds

  private init(_ place: StoreFileSet, _ examination: Examination, on grounds: Grounds) {
    self.place = place
    self.examination = examination
    self.grounds = grounds
  }

  /// The judgement that a look at a store leads to.
  init(of place: StoreFileSet, seen examination: Examination) { self.init(place, examination, on: .look) }

  /// The error of the migration, where the verdict rests on one.
  var migrationError: MigrationError? {
    if case .migration(let error) = grounds { error } else { nil }
  }
}

// MARK: - What is found out later

extension Judgement {
  /// The store as a damaged one, because SQLite says so when it opens it; nil where the error says something else.
  ///
  /// - Parameter look: looks at every page; what it finds says more than SQLite.
  func damaged(by error: PersistentStoreError, look: () throws -> Examination) rethrows -> Judgement? {
    guard let reason = VerdictReason(damageFoundBy: error) else { return nil }
    return Judgement(place, try damaged(seen: look(), else: reason), on: .opening)
  }

  /// The store after a migration or repair of it has failed: damaged or incompatible where that was the reason, or where what
  /// was repaired is not what it was before; else as it was judged.
  ///
  /// - Parameter look: looks at every page, where the migration has met damage.
  func failed(by error: MigrationError, look: () throws -> Examination) rethrows -> Judgement {
    let judged =
      if error.meansNoWay {
        examination.with(.incompatible, .notMigratable(error))
      } else if error.kind == .sourceDamaged
        || error.kind == .verificationFailed && examination.verdict == .repairable
      {
        // A repair that keeps no rows as they were shows that there is more wrong than was seen.
        try damaged(seen: look(), else: .migrationFailed(error))
      } else {
        examination.with(examination.verdict, .migrationFailed(error))
      }
    return Judgement(place, judged, on: .migration(error))
  }

  private func damaged(seen: Examination, else reason: VerdictReason) -> Examination {
    seen.verdict == .damaged ? seen : examination.with(.damaged, reason)
  }

  /// The judgement after another look at the same place.
  ///
  /// What opening or migrating has shown is not seen by a look; it counts as long as the file has not been written to.
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

  /// Whether the store is damaged and newer than the app, which could not open what is salvaged of it either.
  var isOfNewerApp: Bool { examination.verdict == .damaged && examination.newer != nil }

  /// The error for a store that stays where it is because it is unavailable, or because the policy is to refuse.
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
      // It was opened with the app's model, and told to leave the store where it is.
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

  /// Whether the same file was looked at, not written to since.
  fileprivate func isOfSameFile(as earlier: Examination) -> Bool {
    let files = [self, earlier].map { $0.health.files.first { $0.part == .main }?.status }
    guard let now = files[0], let then = files[1] else { return false }
    return now.identity == then.identity && now.size == then.size && now.modified == then.modified
  }
}

extension MigrationError {
  /// Whether the store has nothing to do with the app's models, so that it is an incompatible one.
  ///
  /// A step that cannot be inferred, or a custom mapping that is missing, stale or without its policy, is not meant:
  /// that is a mistake of the app's, which its next version mends, and a failed migration.
  fileprivate var meansNoWay: Bool { kind == .sourceModelMissing || kind == .otherModel }

  /// Whether the models alone decide, so that trying again changes nothing.
  var isDecidedByModels: Bool { meansNoWay || kind == .wouldLose || kind == .notInferable }
}

/// A store that is open, and how it came to that.
package struct Opening: Sendable {
  /// The open store.
  package let store: PersistentStore

  /// What was found when the opening began.
  package let examination: Examination

  /// What was done, in order; empty for a store that was simply opened.
  package let events: [OpeningEvent]

  /// What to tell the app's user; nil where there is nothing to tell.
  package let notice: OpeningNotice?

  /// What goes on in the background: every page is looked at, and a recovery kit noted; nil where nothing does.
  package let backgroundPass: BackgroundPass?

  /// What records lost in a migration, because the app's version has no place for it; empty where nothing was lost.
  package var losses: [MigrationPlan.Finding] { events.flatMap { $0.migration?.losses ?? [] } }

  /// What was salvaged on the way; nil where nothing was to be.
  package var salvage: OpeningSalvage? { events.last { $0.salvage != nil }?.salvage }

  /// Whether the user has lost something, or does not have it now: an empty store, records that are gone or doubtful, or what
  /// a migration has left behind.
  package var isWithLosses: Bool { isWithLosses(besides: { _ in false }) }

  /// The same without the losses of a migration that were wanted.
  package func isWithLosses(besides isPlanned: (MigrationPlan.Finding) -> Bool) -> Bool {
    if !losses.allSatisfy(isPlanned) { return true }
    if examination.health.mayLackCommits, examination.verdict != .damaged { return true }
    guard let notice, notice.key != OpeningNotice.repairedKey else { return false }
    guard let salvage else { return true }
    return !(salvage.isInstalled && salvage.isComplete)
  }
}

extension Opening {
  /// The store that was quarantined on the way, as a file; nil where none was.
  package var quarantinedPath: FilePath? { events.last { $0.kind == .quarantine && $0.id != nil }?.path.path }
}
