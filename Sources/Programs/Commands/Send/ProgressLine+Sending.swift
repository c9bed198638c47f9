import Sending
import StoreCoordination

extension ProgressLine {
  /// Shows how far a transfer is.
  func show(_ progress: SendingProgress) {
    switch progress.phase {
    case .asking: show("Asking the receiver …")
    case .finishing: show("Asking for the receipt …")
    case .pausing(let span, let code):
      show("Waiting \(Self.timeLeft(span / .seconds(1))) before the next try [\(printable(code))] …")
    case .sending: show("Sending", progress.done, of: progress.total, .bytes)
    }
  }
}
