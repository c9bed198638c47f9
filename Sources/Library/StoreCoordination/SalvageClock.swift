import Compatibility
import Salvage

/// Turns what a salvage says of its phases into one share of the work that only grows, and a time left.
final class SalvageClock: Sendable {
  /// What the phases take of the whole, by their words; one that is not known here takes nothing.
  private static let shares: [(phase: String, start: Double, length: Double)] = [
    ("survey", 0, 0.2), ("placement", 0.2, 0.05), ("rows", 0.25, 0.35), ("rebuild", 0.6, 0.25),
    ("migration", 0.85, 0.1),
  ]

  private let now: @Sendable () -> Timestamp
  private let start: Double
  private let highest = Mutex<Double>(0)

  init(now: @escaping @Sendable () -> Timestamp) {
    self.now = now
    start = Self.seconds(now())
  }

  private static func seconds(_ time: Timestamp) -> Double {
    Double(time.secondsSince1970) + Double(time.nanoseconds) / 1e9
  }

  func progress(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> OpeningProgress {
    let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
    let reached = Self.shares.first { $0.phase == phase.rawValue }.map { $0.start + part * $0.length } ?? 0
    return progress(reached, phase)
  }

  /// The progress at a share of the work.
  func progress(_ reached: Double, _ phase: SalvagePhase?) -> OpeningProgress {
    let share = highest.withLock { highest in
      highest = max(highest, reached)
      return highest
    }
    let elapsed = Self.seconds(now()) - start
    // In the first moments nothing can be told.
    let left = elapsed > 0.5 && share > 0.03 ? elapsed * (1 - share) / share : nil
    return OpeningProgress(
      phase: .salvaging, completed: Int64(share * 1000), total: 1000, salvagePhase: phase, secondsLeft: left)
  }
}
