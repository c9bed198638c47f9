import Dispatch
import Platform

/// Processes blocks on several threads, and delivers them in order on the caller's.
///
/// Only few blocks are in memory at a time.
enum BlockPipeline {
  /// Processes the blocks.
  ///
  /// - Parameters:
  ///   - worker: called once per thread; returns the function for blocks.
  ///   - deliver: called with each result, in order.
  static func run<Made: Sendable>(
    count: Int, threads: Int, worker: @escaping @Sendable () throws -> ((Int) throws -> Made),
    deliver: (Int, Made) throws -> Void
  ) throws {
    guard count > 0 else { return }
    let threads = max(1, min(threads, count))
    let work = Work<Made>(count: count, ahead: threads + 3)
    for _ in 0..<threads { WorkThread.start(stackSize: 1 << 20) { work.run(worker) } }
    defer { work.end(threads) }
    for index in 0..<count { try deliver(index, try work.next(index)) }
  }
}

private final class Work<Made: Sendable>: Sendable {
  private let count: Int
  private let free: DispatchSemaphore
  private let ready = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let state = Mutex(State())

  private struct State {
    var next = 0
    var isStopped = false
    var made: [Int: Made] = [:]
    var failure: BackupError?
  }

  init(count: Int, ahead: Int) {
    self.count = count
    // Releasing a semaphore below its initial value traps.
    free = DispatchSemaphore(value: 0)
    for _ in 0..<ahead { free.signal() }
  }

  func run(_ worker: () throws -> ((Int) throws -> Made)) {
    do {
      let make = try worker()
      while let index = nextIndex() {
        let made = try make(index)
        state.withLock { $0.made[index] = made }
        ready.signal()
      }
    } catch {
      let error = BackupError(any: error)
      state.withLock { state in
        state.isStopped = true
        if state.failure == nil { state.failure = error }
      }
      ready.signal()
    }
    ended.signal()
  }

  private func nextIndex() -> Int? {
    free.wait()
    return state.withLock { state in
      guard !state.isStopped, state.next < count else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }

  func next(_ index: Int) throws -> Made {
    while true {
      let (made, failure) = state.withLock { state in (state.made.removeValue(forKey: index), state.failure) }
      if let made {
        free.signal()
        return made
      }
      if let failure { throw failure }
      ready.wait()
    }
  }

  func end(_ threads: Int) {
    state.withLock { $0.isStopped = true }
    for _ in 0..<threads { free.signal() }
    for _ in 0..<threads { ended.wait() }
  }
}
