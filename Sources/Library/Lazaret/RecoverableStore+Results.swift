public import Foundation
internal import StoreCoordination

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
