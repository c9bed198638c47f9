import StoreCoordination

extension ProgressLine {
  /// Shows how far an opening or a salvage is.
  func show(_ progress: OpeningProgress) {
    if let step = progress.step {
      let words =
        progress.phase == .repairing
        ? "Repairing" : "Migrating \(printable(step)) (\(progress.completed + 1) of \(progress.total))"
      show(words, progress.completed, of: progress.total)
      return
    }
    let work: (words: String, unit: ProgressUnit)
    switch progress.phase {
    case .quarantining: work = ("Quarantining", .bytes)
    case .salvaging: work = ("Salvaging", .shares)
    case .installing: work = ("Installing", .bytes)
    case .examining where progress.total > 0: work = ("Checking", .things("pages"))
    case .examining, .creating, .repairing, .migrating, .opening: return
    }
    show(work.words, progress.completed, of: progress.total, work.unit, secondsLeft: progress.secondsLeft)
  }
}
