public import Foundation
internal import StoreCoordination
public import SystemPackage

extension RecoverableStore {
  /// A store that is ready to be opened, and how it came to that.
  public struct Opening: Sendable {
    /// The store's main file; nothing of this library has it open any more, apart from a check in the background.
    public let path: FilePath

    /// What was found when the opening began.
    public let condition: Condition

    /// What was done, in order; empty for a store that was as it should be.
    public let events: [Event]

    /// What to tell the app's user; nil where there is nothing to tell.
    public let notice: Notice?

    /// Whether the user has lost something, or does not have it now: an empty store, records that are gone or doubtful, or
    /// what a migration has left behind.
    public let isWithLosses: Bool

    /// What records lost in a migration, because the app's version has no place for it.
    public let losses: [Loss]

    /// What was salvaged on the way; nil where nothing was to be.
    public let salvage: Salvage?

    /// The store that was moved into quarantine on the way; nil where none was.
    public let quarantined: URL?

    private let pass: BackgroundPass?

    /// The store's main file.
    public var url: URL { URL(file: path) }

    /// Waits until the check in the background has ended, for an app that ends soon after.
    ///
    /// - Returns: the damage that it found; nil where there was none, or where no check was due.
    @discardableResult
    public func waitForCheck() async throws -> Damage? {
      guard let pass else { return nil }
      return try await work { _ in
        switch pass.wait().check {
        case .damaged(let damage): Damage(damage)
        case .sound, .notDue: nil
        case .failed(let error): throw error
        }
      }
    }

    /// An opening that has come to its end.
    init(_ opening: StoreCoordination.Opening) {
      path = opening.store.path
      condition = Condition(opening.examination)
      events = opening.events.map(Event.init)
      notice = opening.notice.map { Notice($0, opening.events) }
      isWithLosses = opening.isWithLosses
      losses = opening.losses.map(Loss.init)
      salvage = opening.salvage.map(Salvage.init)
      quarantined = opening.quarantinedPath.map { URL(file: $0) }
      pass = opening.backgroundPass
    }
  }

  /// One thing that was done to get a store ready.
  public struct Event: Sendable, Hashable {
    /// What kind of thing.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// An earlier run, or another process, had begun or done something of this.
      case recovery

      /// The store as it was before was kept.
      case backup

      /// What the store lacked of its own model was added.
      case repair

      /// The store was migrated to the app's version.
      case migration

      /// The store was moved into quarantine.
      case quarantine

      /// The quarantined store was salvaged; or nothing came out.
      case salvage

      /// An empty store was created.
      case create

      /// A recovery kit of the store was noted.
      case recoveryKit = "recovery-kit"
    }

    /// What was done.
    public let kind: Kind

    /// When.
    public let date: Date?

    /// The file that it produced: the quarantined store, the backup or the new store.
    public let url: URL?

    /// What happened, in one plain sentence.
    public let words: String

    /// What the quarantined store or the backup is called; nil for anything else.
    public let id: String?

    /// An event, as the modules below tell it.
    init(_ event: OpeningEvent) {
      kind =
        switch event.kind {
        case .recovery: .recovery
        case .backup: .backup
        case .repair: .repair
        case .migration: .migration
        case .quarantine: .quarantine
        case .salvage: .salvage
        case .create: .create
        case .recoveryKit: .recoveryKit
        }
      date = Date(rfc3339: event.date)
      url = URL(event.path)
      words = event.words
      id = event.id
    }
  }

  /// Damage that was found in a store while the app has it open.
  public struct Damage: Sendable, Hashable {
    /// The store.
    public let url: URL

    /// How many flaws there are.
    public let flaws: Int

    /// The kinds of flaws, as stable words.
    public let kinds: [String]

    /// Damage, as the modules below tell it.
    init(_ damage: FoundDamage) {
      url = URL(file: damage.store)
      flaws = damage.flaws
      kinds = damage.kinds
    }
  }

  /// What a store is, and what can be done with it.
  public struct Condition: Sendable {
    /// What can be done with a store, in one word.
    public enum Verdict: String, Sendable, Hashable, CaseIterable {
      /// It opens with the app's model as it is.
      case compatible

      /// It is sound, and lacks something of its own model that can be added.
      case repairable

      /// It was written with an earlier model, from which it can be migrated.
      case outdated

      /// It is sound, but no way leads from it to the app's model.
      case incompatible

      /// It is damaged, or is no store at all.
      case damaged

      /// Nothing is wrong with it, but it is unavailable: locked, forbidden, or newer than the app.
      case unavailable

      /// There is no store.
      case missing
    }

    /// The records of an entity, or the rows of a table.
    public struct Entity: Sendable, Hashable {
      /// The entity, or the table where no entity is known.
      public let name: String

      /// How many there are; nil where they were not counted, or cannot be.
      public let records: Int64?
    }

    /// What can be done with it.
    public let verdict: Verdict

    /// A stable word for the reason, such as `locked`.
    public let code: String

    /// The reason, in a plain sentence.
    public let words: String

    /// What to do about it.
    public let hint: String

    /// The version it was written with, where it is one of the app's.
    public let modelVersion: String?

    /// Its entities, with how many records each has.
    public let entities: [Entity]

    /// What is wrong or remarkable, each in a plain sentence.
    public let remarks: [String]

    init(_ examination: Examination) {
      verdict =
        switch examination.verdict {
        case .compatible: .compatible
        case .repairable: .repairable
        case .outdated: .outdated
        case .incompatible: .incompatible
        case .damaged: .damaged
        case .unavailable: .unavailable
        case .missing: .missing
        }
      code = examination.reason.code
      words = examination.reason.words
      hint = examination.reason.hint
      modelVersion = examination.modelVersion
      entities = examination.entities.map { Entity(name: $0.name, records: $0.rows) }
      remarks = examination.health.notes.map(\.words)
    }
  }
}
