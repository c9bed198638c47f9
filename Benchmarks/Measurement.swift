import Foundation

/// The median of several runs, in milliseconds.
func medianMilliseconds(rounds: Int, _ body: () throws -> Void) rethrows -> Double {
  var times: [Double] = []
  let clock = ContinuousClock()
  for _ in 0..<rounds {
    let start = clock.now
    try body()
    let elapsed = clock.now - start
    times.append(Double(elapsed.components.seconds) * 1000 + Double(elapsed.components.attoseconds) / 1e15)
  }
  return times.sorted()[times.count / 2]
}

/// The processor time of this process so far, in milliseconds; unlike the time on the wall it does not grow while other
/// processes have the core.
func processorMilliseconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) * 1000 }

/// A number with two decimals.
func rounded(_ value: Double) -> String { String(format: "%.2f", value) }

/// The most memory this process has had, in megabytes; nil where the system does not tell.
func peakMemory() -> Double? {
  guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
  let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  return line?.split(separator: " ").compactMap { Double($0) }.first.map { $0 / 1024 }
}
