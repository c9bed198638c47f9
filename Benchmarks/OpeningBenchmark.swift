import Lazaret
import PersistentStore

/// Opening through the coordinator, against opening with SQLite alone.
///
/// Goal: under 5 ms more.
struct OpeningBenchmark {
  let subject: BenchmarkStore
  let rounds: Int

  func run() throws {
    let coordinator = StoreCoordinator(model: subject.model)
    let plain = try medianMilliseconds(rounds: rounds) { try PersistentStore(opening: subject.path).close() }
    let ours = try medianMilliseconds(rounds: rounds) { try coordinator.open(subject.path).store.close() }
    print(
      "open: SQLite alone \(rounded(plain)) ms, coordinator \(rounded(ours)) ms, difference \(rounded(ours - plain)) ms, ratio \(rounded(ours / plain))"
    )
  }
}
