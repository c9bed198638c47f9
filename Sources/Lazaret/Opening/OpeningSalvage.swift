/// What a salvage recovered for an opening, or why there is nothing.
public struct OpeningSalvage: Sendable, Hashable, Codable {
  /// How far it is.
  public var state: Receipt.Salvage.State

  /// The salvaged store, which stays beside the quarantined one; nil where there is none.
  public var store: PathText?

  /// The report of the salvage; nil where there is no salvaged store.
  public var report: PathText?

  /// The file of what is not part of the store; nil where there is nothing.
  public var setAside: PathText?

  /// Whether everything that the store held was recovered, beyond doubt.
  public var isComplete: Bool

  /// Records recovered.
  public var recovered: Int64

  /// Those of them that are doubtful.
  public var doubtful: Int64

  /// Records lost.
  public var lost: Int64

  /// Whether the number of lost records is exact; else it is an estimate.
  public var lostIsExact: Bool

  /// How much of the store was saved, from 0 to 100, and 100 only where everything was, beyond doubt; nil where not known.
  public var score: Int?

  /// The accounts of the entities, by name.
  public var entities: [Receipt.Salvage.Entity]

  /// Why nothing came out that the app could open; nil where something did.
  public var failure: Receipt.Reason?

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
    case score
    case entities
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
    recovered = result?.recovered ?? 0
    doubtful = result?.doubtful ?? 0
    lost = result?.lost ?? 0
    lostIsExact = result?.lostIsExact ?? true
    score = result?.score
    entities = result?.entities ?? []
    failure = salvage.state == .failed ? salvage.failure : nil
  }

  /// Whether what was salvaged is in the store's place.
  public var isInstalled: Bool { state == .installed }
}
