import PersistentStore

/// Examining without counting.
///
/// Goal: under 100 ms and 32 MB.
struct InspectBenchmark {
  let subject: BenchmarkStore
  let rounds: Int

  func run() throws {
    let before = peakMemory() ?? 0
    let quick = try medianMilliseconds(rounds: rounds) {
      _ = try Examiner().examine(subject.path, model: subject.model, options: .init(countsRecords: false))
    }
    let after = peakMemory() ?? 0
    print(
      "inspect, no counts: \(rounded(quick)) ms; peak memory of the process \(rounded(after)) MB (before: \(rounded(before)) MB)"
    )
    let counting = try medianMilliseconds(rounds: min(rounds, 3)) {
      _ = try Examiner().examine(subject.path, model: subject.model, options: .init(countsRecords: true))
    }
    print("inspect, with counts: \(rounded(counting)) ms")
    let full = try medianMilliseconds(rounds: 1) {
      _ = try Examiner().examine(subject.path, model: subject.model, options: .init(depth: .full))
    }
    print("inspect, every page: \(rounded(full)) ms; peak memory \(rounded(peakMemory() ?? 0)) MB")
  }
}
