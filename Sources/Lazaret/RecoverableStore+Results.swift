public import Foundation
internal import Migration
internal import PersistentStore
import Platform
internal import Salvage
import SystemPackage

extension RecoverableStore {
  /// A migration's loss or failure.
  public struct Loss: Sendable, Hashable {
    /// The entity.
    public let entity: String

    /// Nil for whole records.
    public let property: String?

    /// Nil if only running the migration can show it.
    public let records: Int?

    /// A sentence without a full stop.
    public let words: String

    init(_ finding: MigrationPlan.Finding) {
      entity = finding.entity
      property = finding.property
      records = finding.rows
      words = finding.text
    }
  }

  /// A finished migration.
  public struct Migration: Sendable, Hashable {
    /// A migration's forecast.
    public struct Plan: Sendable, Hashable {
      /// Such as `V1 → V2`; empty if the store is current or no migration exists.
      public let steps: [String]

      /// Expected losses.
      public let losses: [Loss]

      /// Expected failures, which would leave the store unchanged.
      public let failures: [Loss]

      /// The reasons for a missing migration path.
      public let refusals: [String]

      /// The temporary space needed beside the store.
      public let neededBytes: Int64

      /// The free space there.
      public let freeBytes: Int64

      /// Whether a migration or repair is due.
      public let isNeeded: Bool

      /// Whether it would succeed.
      public let isPossible: Bool

      /// Whether the complete result is known.
      public let isCertain: Bool

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

    /// Such as `V1 → V2`; empty for a current store.
    public let steps: [String]

    /// Losses.
    public let losses: [Loss]

    /// Records left out with their entity, by entity; the original has them.
    public let removedRecords: [String: Int]

    /// The original; nil for an unchanged store.
    public let original: URL?

    init(_ result: Migrator.Result) {
      steps = result.steps.map(\.step)
      losses = result.steps.flatMap(\.losses).map(Loss.init)
      removedRecords = result.steps.map(\.removedRows).reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
      original = result.backup.map { URL(file: $0) }
    }
  }

  /// A repair or its preview.
  public struct Repair: Sendable, Hashable {
    /// False for a dry run.
    public let isDone: Bool

    /// Additions and changes, without full stops.
    public let changes: [String]

    /// Unrepaired parts, with reasons.
    public let leftOut: [String]

    /// Records set aside.
    public let setAsideRecords: Int

    /// The original; nil for an unchanged store.
    public let original: URL?

    init(_ result: Migrator.Result) {
      self.init(result.repair, isDone: true, original: result.backup.map { URL(file: $0) })
    }

    init(_ account: RepairAccount?, isDone: Bool, original: URL? = nil) {
      self.isDone = isDone
      changes = account?.changes.map(\.text) ?? []
      leftOut = account?.leftOut.map(\.text) ?? []
      setAsideRecords = account?.setAsideRows ?? 0
      self.original = original
    }
  }

  /// A salvage's result.
  public struct Salvage: Sendable, Hashable {
    /// An entity's account.
    public struct Entity: Sendable, Hashable {
      /// The name.
      public let name: String

      /// Recovered records.
      public let recovered: Int64

      /// The doubtful ones among them.
      public let doubtful: Int64

      /// Records found whole but set aside.
      public let setAside: Int64

      /// Lost records.
      public let lost: Int64

      /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
      public let isLostExact: Bool
    }

    /// The account of many-to-many pairs, which belong to no record.
    public struct Pairs: Sendable, Hashable {
      /// Recovered pairs.
      public let recovered: Int64

      /// Pairs set aside with one of their records.
      public let setAside: Int64

      /// Lost pairs.
      public let lost: Int64

      /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
      public let isLostExact: Bool
    }

    /// The salvaged store.
    public let url: URL?

    /// The report file.
    public let report: URL?

    /// Whether all content was recovered without doubt.
    public let isComplete: Bool

    /// Recovered records.
    public let recovered: Int64

    /// The doubtful ones among them.
    public let doubtful: Int64

    /// Records found whole but set aside, in a file beside the store.
    public let setAside: Int64

    /// Lost records.
    public let lost: Int64

    /// Whether `lost` is exact; otherwise an estimate, a minimum, or unknown if 0.
    public let isLostExact: Bool

    /// The recovered percentage, rounded down.
    public let percent: Int?

    /// Many-to-many pairs, if any.
    public let pairs: Pairs?

    /// The entities' accounts.
    public let entities: [Entity]

    /// The result in plain sentences.
    public let words: String

    /// The reason for a missing usable result.
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
    // Without a result the losses are unknown.
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

  init(_ salvage: QuarantineSalvage) {
    self.init(
      salvage.result.count, salvage.result.entities.map(Entity.init), url: URL(file: salvage.store),
      report: URL(file: salvage.reportPath), failure: salvage.failure?.words)
  }

  /// Creates the salvage of a live store.
  init(_ report: SalvageReport, writtenTo path: FilePath) {
    let entities = report.records.map { Entity(Receipt.Salvage.Entity($0)) }
    self.init(report.count, entities, url: URL(report.output), report: URL(file: path))
  }
}

extension RecoverableStore.Salvage.Pairs {
  init(_ count: PairCount) {
    recovered = count.recovered
    setAside = count.setAside
    lost = count.lost
    isLostExact = count.isLostExact
  }
}

extension RecoverableStore.Salvage.Entity {
  init(_ entity: Receipt.Salvage.Entity) {
    name = entity.name
    recovered = entity.recovered
    doubtful = entity.doubtful
    setAside = entity.setAside ?? 0
    lost = entity.lost
    isLostExact = entity.lostIsExact
  }
}

extension RecoverableStore {
  /// An action that prepared a store.
  public struct Event: Sendable, Hashable {
    /// The kind of action.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// An earlier run's or another process's work.
      case recovery

      /// The original was kept.
      case backup

      /// Missing parts of its own model were added.
      case repair

      /// The store was migrated to the app's version.
      case migration

      /// The store was quarantined.
      case quarantine

      /// The quarantined store was salvaged, or its salvage failed.
      case salvage

      /// An empty store was created.
      case create

      /// A recovery kit was noted.
      case recoveryKit = "recovery-kit"
    }

    /// The kind of action.
    public let kind: Kind

    /// The time.
    public let date: Date?

    /// The quarantined store, the backup or the new store.
    public let url: URL?

    /// One plain sentence.
    public let words: String

    /// The quarantined store's or the backup's name.
    public let id: String?

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

  /// Damage in an open store.
  public struct Damage: Sendable, Hashable {
    /// The store.
    public let url: URL

    /// The number of flaws.
    public let flaws: Int

    /// Stable words for the kinds.
    public let kinds: [String]

    init(_ damage: FoundDamage) {
      url = URL(file: damage.store)
      flaws = damage.flaws
      kinds = damage.kinds
    }
  }

  /// A store's state and possible actions.
  public struct Condition: Sendable {
    /// The state in one word.
    public enum Verdict: String, Sendable, Hashable, CaseIterable {
      /// It opens unchanged.
      case compatible

      /// It is sound, and missing parts of its own model can be added.
      case repairable

      /// It is of an earlier model and can be migrated.
      case outdated

      /// It is sound, but no migration leads to the app's model.
      case incompatible

      /// It is damaged or not a store.
      case damaged

      /// It is sound but locked, forbidden, or newer than the app.
      case unavailable

      /// The store is missing.
      case missing
    }

    /// An entity's records, or a table's rows.
    public struct Entity: Sendable, Hashable {
      /// The entity, or the table.
      public let name: String

      /// Nil if not counted.
      public let records: Int64?
    }

    /// The verdict.
    public let verdict: Verdict

    /// A stable word, such as `locked`.
    public let code: String

    /// The reason.
    public let words: String

    /// The advice.
    public let hint: String

    /// The store's version, if it is one of the app's.
    public let modelVersion: String?

    /// The entities with their numbers of records.
    public let entities: [Entity]

    /// The findings, a plain sentence each.
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
