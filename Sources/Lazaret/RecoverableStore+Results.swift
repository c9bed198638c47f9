public import Foundation
internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
import Platform
internal import SQLiteFormat
internal import Salvage
public import SystemPackage

extension RecoverableStore {
  /// Something that a migration loses, or fails on.
  public struct Loss: Sendable, Hashable {
    /// The entity.
    public let entity: String

    /// The property; nil where whole records are concerned.
    public let property: String?

    /// The records concerned; nil where only carrying it out tells.
    public let records: Int?

    /// What it is, in one sentence without a full stop.
    public let words: String

    /// A finding of the modules below.
    init(_ finding: MigrationPlan.Finding) {
      entity = finding.entity
      property = finding.property
      records = finding.rows
      words = finding.text
    }
  }

  /// What a migration did.
  public struct Migration: Sendable, Hashable {
    /// What a migration would do.
    public struct Plan: Sendable, Hashable {
      /// The steps, such as `V1 → V2`; empty where nothing is to be done or there is no way.
      public let steps: [String]

      /// What would be lost.
      public let losses: [Loss]

      /// What it would fail on; the store would stay as it is.
      public let failures: [Loss]

      /// Why there is no way, each in a plain sentence; empty where there is one.
      public let refusals: [String]

      /// The space in bytes that is needed beside the store meanwhile.
      public let neededBytes: Int64

      /// The space in bytes that is free there.
      public let freeBytes: Int64

      /// Whether there is anything to do.
      public let isNeeded: Bool

      /// Whether it would come to its end.
      public let isPossible: Bool

      /// Whether everything that it would come to is known.
      public let isCertain: Bool

      /// A plan of the modules below.
      init(_ plan: MigrationPlan) {
        steps = plan.steps.map(\.name)
        losses = plan.losses.map(Loss.init)
        failures = plan.failures.map(Loss.init)
        refusals = plan.refusals.map { "\($0.reason): \($0.detail)" }
        neededBytes = plan.neededBytes
        freeBytes = plan.freeBytes
        isNeeded = plan.isNeeded
        isPossible = plan.isPossible
        isCertain = plan.isCertain
      }
    }

    /// The steps that were taken, such as `V1 → V2`; empty where the store was of the current version.
    public let steps: [String]

    /// What records lost in it; empty where nothing was lost.
    public let losses: [Loss]

    /// The records that were left out because the app's version lacks their entity, by entity; they are in the original.
    public let removedRecords: [String: Int]

    /// The original, whole; nil where nothing was done.
    public let original: URL?

    /// What the modules below did.
    init(_ result: Migrator.Result) {
      steps = result.steps.map(\.step)
      losses = result.steps.flatMap(\.losses).map(Loss.init)
      removedRecords = result.steps.map(\.removedRows).reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
      original = result.backup.map { URL(file: $0) }
    }
  }

  /// What a repair did, or would do.
  public struct Repair: Sendable, Hashable {
    /// Whether it was carried out; false for a dry run.
    public let isDone: Bool

    /// What is added or changed, each in one sentence without a full stop.
    public let changes: [String]

    /// What stays as it is, and why.
    public let leftOut: [String]

    /// The records that were set aside.
    public let setAsideRecords: Int

    /// The original, whole; nil where nothing was done.
    public let original: URL?

    /// What the modules below did.
    init(_ result: Migrator.Result) {
      self.init(result.repair, isDone: true, original: result.backup.map { URL(file: $0) })
    }

    /// What the modules below would do.
    init(_ account: RepairAccount?, isDone: Bool, original: URL? = nil) {
      self.isDone = isDone
      changes = account?.changes.map(\.text) ?? []
      leftOut = account?.leftOut.map(\.text) ?? []
      setAsideRecords = account?.setAsideRows ?? 0
      self.original = original
    }
  }

  /// What a salvage recovered, and what it did not.
  public struct Salvage: Sendable, Hashable {
    /// The account of an entity.
    public struct Entity: Sendable, Hashable {
      /// What it is called.
      public let name: String

      /// Records recovered.
      public let recovered: Int64

      /// Those of them that are doubtful.
      public let doubtful: Int64

      /// Records that were found whole and are not in the salvaged store.
      public let setAside: Int64

      /// Records lost.
      public let lost: Int64

      /// Whether that number is exact; else it is an estimate, or the least, or where it is 0 not known.
      public let isLostExact: Bool
    }

    /// The account of the pairs of many-to-many relationships, which no record has.
    public struct Pairs: Sendable, Hashable {
      /// Pairs recovered.
      public let recovered: Int64

      /// Pairs that were found and are not in the salvaged store, because a record of theirs is not.
      public let setAside: Int64

      /// Pairs lost.
      public let lost: Int64

      /// Whether that number is exact; else it is an estimate, or the least, or where it is 0 not known.
      public let isLostExact: Bool
    }

    /// The salvaged store; nil where there is none.
    public let url: URL?

    /// The report of it, as a file; nil where there is none.
    public let report: URL?

    /// Whether everything that the store held was recovered, beyond doubt.
    public let isComplete: Bool

    /// Records recovered.
    public let recovered: Int64

    /// Those of them that are doubtful.
    public let doubtful: Int64

    /// Records that were found whole and are not in the salvaged store; they are kept beside it.
    public let setAside: Int64

    /// Records lost.
    public let lost: Int64

    /// Whether the number of lost records is exact; else it is an estimate, or the least, or where it is 0 not known.
    public let isLostExact: Bool

    /// The share of all records that was recovered in percent, rounded down; nil where nothing tells how many there were.
    public let percent: Int?

    /// The pairs of many-to-many relationships; nil where there are none.
    public let pairs: Pairs?

    /// The accounts of the entities.
    public let entities: [Entity]

    /// What came out, in a few plain sentences.
    public let words: String

    /// Why nothing came out that the app could open; nil where something did.
    public let failure: String?
  }
}

extension RecoverableStore.Salvage {
  private init(
    _ count: RecoveryCount, _ entities: [Entity], url: URL?, report: URL?, failure: String? = nil,
    isCounted: Bool = true
  ) {
    self.url = url
    self.report = report
    isComplete = count.isComplete
    recovered = count.recovered
    doubtful = count.doubtful
    setAside = count.setAside
    lost = count.lost
    // Before anything has come out, none is known to be lost, nor not to be.
    isLostExact = isCounted && !count.isEstimate
    percent = count.percent
    pairs = count.pairs.known.map(Pairs.init)
    self.entities = entities
    words = failure ?? (isCounted ? count.words : "It was not salvaged yet.")
    self.failure = failure
  }

  init(_ salvage: OpeningSalvage) {
    self.init(
      salvage.count, salvage.entities.map(Entity.init), url: URL(salvage.store), report: URL(salvage.report),
      failure: salvage.failure?.words, isCounted: salvage.hasResult)
  }

  /// What was salvaged of a quarantined store.
  init(_ salvage: QuarantineSalvage) {
    self.init(
      salvage.result.count, salvage.result.entities.map(Entity.init), url: URL(file: salvage.store),
      report: URL(file: salvage.reportPath), failure: salvage.failure?.words)
  }

  /// What was salvaged of a store in its place.
  init(_ report: SalvageReport, writtenTo path: FilePath) {
    self.init(report.count, report.records.map(Entity.init), url: URL(report.output), report: URL(file: path))
  }
}

extension RecoverableStore.Salvage.Pairs {
  /// The numbers of a salvage.
  init(_ count: PairCount) {
    recovered = count.recovered
    setAside = count.setAside
    lost = count.lost
    isLostExact = count.isLostExact
  }
}

extension RecoverableStore.Salvage.Entity {
  /// The account that a receipt has.
  init(_ entity: Receipt.Salvage.Entity) {
    name = entity.name
    recovered = entity.recovered
    doubtful = entity.doubtful
    setAside = entity.setAside ?? 0
    lost = entity.lost
    isLostExact = entity.lostIsExact
  }

  /// The account that a report has.
  init(_ entity: SalvageReport.Entity) {
    name = entity.name
    recovered = entity.recovered
    doubtful = entity.doubtful
    setAside = entity.setAside
    lost = entity.lost
    isLostExact = entity.isLostExact
  }
}

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
    init(_ opening: Lazaret.Opening) {
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
