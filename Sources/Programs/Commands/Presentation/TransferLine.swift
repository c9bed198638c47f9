import Compatibility
import Sending
import StoreCoordination

/// A line on standard error that shows how far a transfer is, how fast it goes, and how long it will take; nothing where standard error is no terminal.
final class TransferLine: Sendable {
  private struct State {
    var start: ContinuousClock.Instant?
    var first: Int64 = 0
    var shown = ContinuousClock.now - .seconds(1)
    var isShown = false
  }

  private let isShown = Terminal.standardError.isInteractive && !TextStyle.current.isQuiet
  private let state = Mutex(State())

  deinit { clear() }

  /// Shows a state of things, at most five times a second.
  func show(_ progress: SendingProgress) {
    guard isShown else { return }
    switch progress.phase {
    case .asking: write("Asking the receiver …")
    case .finishing: write("Asking for the receipt …")
    case .pausing(let span, let code):
      state.withLock { $0.start = nil }
      write("Waiting \(Self.words(span)) before the next try [\(printable(code))] …")
    case .sending:
      let now = ContinuousClock.now
      let (elapsed, first, isDue) = state.withLock { state in
        if state.start == nil { (state.start, state.first) = (now, progress.done) }
        let isDue = now - state.shown >= .milliseconds(200) || progress.done == progress.total
        if isDue { state.shown = now }
        return ((state.start ?? now).duration(to: now), state.first, isDue)
      }
      if isDue { write(Self.text(progress, sent: progress.done - first, in: elapsed)) }
    }
  }

  /// Removes the line.
  func clear() {
    let wasShown = state.withLock { state in
      defer { state.isShown = false }
      return state.isShown
    }
    if isShown, wasShown { Terminal.standardError.writeRaw("\r\u{1B}[K") }
  }

  private func write(_ text: String) {
    state.withLock { $0.isShown = true }
    Terminal.standardError.writeRaw("\r\(text)\u{1B}[K")
  }

  private static func text(_ progress: SendingProgress, sent: Int64, in elapsed: Duration) -> String {
    let percent = progress.total > 0 ? Int(Double(progress.done) / Double(progress.total) * 100) : 100
    let filled = min(30, percent * 30 / 100)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    var text = "Sending \(bar) \(percent) %"
    let seconds = elapsed / .seconds(1)
    guard seconds > 1, sent > 0 else { return text }
    let rate = Double(sent) / seconds
    text += ", \(readableSize(Int64(rate))) a second"
    let left = Double(progress.total - progress.done) / rate
    if left >= 1 { text += ", about \(words(.seconds(Int64(left.rounded(.up))))) left" }
    return text
  }

  private static func words(_ span: Duration) -> String {
    let seconds = Int64((span / .seconds(1)).rounded(.up))
    if seconds < 90 { return "\(seconds) s" }
    return seconds < 5400 ? "\((seconds + 59) / 60) min" : "\((seconds + 3599) / 3600) h"
  }
}
