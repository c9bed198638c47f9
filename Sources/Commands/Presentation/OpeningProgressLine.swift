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
    var words: String
    switch progress.phase {
    case .quarantining: words = "Quarantining"
    case .salvaging: words = "Salvaging"
    case .installing: words = "Installing"
    case .examining where progress.total > 0: words = "Checking"
    case .examining, .creating, .repairing, .migrating, .opening: return
    }
    if let seconds = progress.secondsLeft { words += ", \(timeLeft(seconds)) left" }
    show(words, progress.completed, of: progress.total)
  }

  private func timeLeft(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds.rounded(.up), 0), 359_999))
    if whole < 60 { return "\(whole) s" }
    if whole < 3_600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3_600) h \(whole / 60 % 60) min"
  }
}
