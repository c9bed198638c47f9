extension OpeningPolicy {
  /// What the app wants done with a store that cannot be opened as it is.
  func remedy(for judgement: Judgement) -> Remedy {
    // Its migration was refused so that nothing is lost; replacing the store would lose more.
    if judgement.migrationError?.kind == .wouldLose { return .refuse }
    return switch judgement.examination.verdict {
    case .damaged: whenDamaged
    case .incompatible: whenIncompatible
    case .outdated: whenMigrationFails
    case .repairable where judgement.migrationError == nil: whenRepairable == .quarantine ? .salvage : .refuse
    case .repairable: whenMigrationFails
    case .compatible, .missing, .unavailable: .emptyStore
    }
  }

  /// What the receipt of a store that is about to be quarantined says of its salvage; nil where none is wanted.
  func salvage(of judgement: Judgement, since date: Timestamp) -> Receipt.Salvage? {
    switch remedy(for: judgement) {
    case .salvage: Receipt.Salvage(pendingSince: date, isWanted: true)
    case .salvageLater: Receipt.Salvage(pendingSince: date, isWanted: false)
    case .emptyStore, .refuse: nil
    }
  }

  /// Whether an opening goes on with the salvage that a quarantined store waits for; else an empty store takes the
  /// place.
  ///
  /// - Parameter home: the folder with the catalogue of quarantined stores; nil for none.
  /// - Throws: `salvage-pending` where every remedy is to refuse.
  func continuesSalvage(
    of stored: QuarantinedStore, at path: FilePath, home: FilePath?
  ) throws(LazaretError) -> Bool {
    let remedies = [whenDamaged, whenIncompatible, whenMigrationFails]
    if remedies.contains(.salvage) || whenRepairable == .quarantine { return true }
    guard remedies.allSatisfy({ $0 == .refuse }) else { return false }
    throw LazaretError(
      .salvagePending, path: path,
      detail: "the store that was here lies in quarantine as \(printable(stored.id)), and its salvage was not finished",
      hint: "Salvage it with: \(stored.command("salvage", home: home)) --model MODEL --install")
  }
}
