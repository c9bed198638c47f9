import StoreCoordination

/// A line on standard error that shows how far an opening is, its migration or repair included.
final class OpeningLine: Sendable {
  private let line = ProgressLine()
  private let steps: StepProgress

  /// - Parameter store: the store that is opened.
  init(_ store: FilePath) { steps = StepProgress(of: store, to: nil) }

  /// Shows how far it is.
  func show(_ progress: OpeningProgress) {
    guard let step = progress.step else { return line.show(progress) }
    steps.begin(
      progress.phase == .repairing
        ? "Repairing" : "Migrating \(printable(step)) (\(progress.completed + 1) of \(progress.total))")
  }

  /// Looks at how far a step is; called now and then.
  func look() { steps.look() }

  func clear() { line.clear() }
}

extension ProgressLine {
  /// Shows how far an opening or a salvage is.
  func show(_ progress: OpeningProgress) {
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
