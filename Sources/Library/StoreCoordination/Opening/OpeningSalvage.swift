/// What a salvage recovered for an opening, or why there is nothing.
package struct OpeningSalvage: Sendable, Hashable, Codable {
  /// How far it is.
  package var state: Receipt.Salvage.State

  /// The salvaged store, which stays beside the quarantined one; nil where there is none.
  package var store: PathText?

  /// The report of the salvage; nil where there is no salvaged store.
  package var report: PathText?

  /// The file of what is not part of the store; nil where there is nothing.
  package var setAside: PathText?

  /// Whether everything that the store held was recovered, beyond doubt.
  package var isComplete: Bool

  /// Records recovered.
  package var recovered: Int64

  /// Those of them that are doubtful.
  package var doubtful: Int64

  /// Records lost.
  package var lost: Int64

  /// Whether the number of lost records is exact; else it is an estimate.
  package var lostIsExact: Bool

  /// Records that the store held: those that were recovered and those that are lost.
  package var total: Int64

  /// The share of them that was recovered in percent, rounded down.
  package var percent: Int

  /// Why records are doubtful, with how many for each reason, by the codes of a salvage report; empty where none is.
  package var doubtfulReasons: [String: Int64]

  /// How much of the store was recovered, from 0 to 100; nil where not known.
  ///
  /// It is kept for programs that read it, and shown nowhere.
  package var score: Int?

  /// The accounts of the entities, by name.
  package var entities: [Receipt.Salvage.Entity]

  /// Values of recovered records that were set aside, because the salvaged store has no column for them; nil for none.
  package var valuesSetAside: Int64?

  /// What the migration to the app's version left out; nil for nothing.
  package var migrationLosses: [Receipt.Salvage.MigrationLoss]?

  /// Why nothing came out that the app could open; nil where something did.
  package var failure: Receipt.Reason?

  private enum CodingKeys: String, CodingKey {
    case state
    case store
    case report
    case setAside
    case isComplete = "complete"
    case recovered
    case doubtful
    case lost
    case lostIsExact
    case total
    case percent
    case doubtfulReasons
    case score
    case entities
    case valuesSetAside
    case migrationLosses
    case failure
  }

  /// What a receipt says; nil where no salvage was asked for.
  init?(_ stored: QuarantinedStore) {
    guard let salvage = stored.receipt?.salvage else { return nil }
    func path(_ name: PathText?) -> PathText? {
      name?.path?.lastComponent.map { PathText(stored.files.folder.appending($0)) }
    }
    let result = salvage.result
    state = salvage.state
    store = path(result?.name)
    report = path(result?.report)
    setAside = path(result?.setAside)
    isComplete = result?.isComplete ?? false
    let count = result.map { RecoveryCount($0) } ?? RecoveryCount(isComplete: false)
    recovered = count.recovered
    doubtful = count.doubtful
    lost = count.lost
    lostIsExact = !count.isEstimate
    total = count.total
    percent = count.percent
    doubtfulReasons = DoubtReason.codes(count.doubtReasons)
    score = result?.score
    entities = result?.entities ?? []
    valuesSetAside = result?.valuesSetAside
    migrationLosses = result?.migrationLosses
    let isWaiting = salvage.state == .salvaged && result?.isUsable != true
    failure = salvage.state == .failed || isWaiting ? salvage.failure : nil
  }

  /// The numbers of the records, and the words for them.
  package var count: RecoveryCount { RecoveryCount(self) }

  /// Whether what was salvaged is in the store's place.
  package var isInstalled: Bool { state == .installed }
}
