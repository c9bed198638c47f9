import Compatibility
package import Examination
import Foundation
package import SystemPackage

/// A salvage of a quarantined store that runs in the background, on a thread of its own.
///
/// ```swift
/// let task = SalvageTask(of: "2026-11-21-10-11-12", in: Quarantines(home: home), model: model)
/// for await progress in task.updates { show(progress.fraction) }
/// let salvaged = try await task.value
/// ```
///
/// It goes on when the handle is not held any more; `cancel` ends it.
package final class SalvageTask: Sendable {
  private struct State {
    var result: Result<QuarantineSalvage, any Error>?
    var progress: OpeningProgress?
    var waiting: [CheckedContinuation<QuarantineSalvage, any Error>] = []
  }

  private let state = Mutex(State())
  private let isEnded = Mutex(false)
  private let isCancelled = Mutex(false)
  private let end = DispatchGroup()

  /// How far it is, from when it began to when it ended: the latest report, where the earlier ones were not taken in time.
  ///
  /// For one reader.
  package let updates: AsyncStream<OpeningProgress>

  /// Begins a salvage.
  ///
  /// - Parameters:
  ///   - name: the quarantined store, by name or path.
  ///   - model: the app's model; what the store says of itself if nil.
  ///   - work: done with the result before the task counts as ended, on the same thread, such as its installation; what it throws is what
  ///     the task throws.
  package init(
    of name: FilePath, in quarantines: Quarantines, model: AppModel? = nil,
    options: QuarantineSalvageOptions = QuarantineSalvageOptions(),
    then work: @escaping @Sendable (QuarantineSalvage) throws -> Void = { _ in }
  ) {
    let (updates, continuation) = AsyncStream.makeStream(
      of: OpeningProgress.self, bufferingPolicy: .bufferingNewest(1))
    self.updates = updates
    end.enter()
    WorkThread.start(named: "lazaret.salvage") { [self] in
      let observer = OpeningObserver { progress in
        self.state.withLock { $0.progress = progress }
        continuation.yield(progress)
      } isCancelled: {
        self.isCancelled.withLock { $0 }
      }
      let result = Result<QuarantineSalvage, any Error> {
        let salvaged = try quarantines.salvage(name, model: model, options: options, observer: observer)
        try work(salvaged)
        return salvaged
      }
      continuation.finish()
      finish(result)
    }
  }

  private func finish(_ result: Result<QuarantineSalvage, any Error>) {
    let waiting = state.withLock { state in
      state.result = result
      defer { state.waiting = [] }
      return state.waiting
    }
    isEnded.withLock { $0 = true }
    end.leave()
    for continuation in waiting { continuation.resume(with: result) }
  }

  /// The latest report of how far it is; nil before the first.
  package var progress: OpeningProgress? { state.withLock { $0.progress } }

  /// Whether it has ended, well or not.
  package var hasEnded: Bool { isEnded.withLock { $0 } }

  /// Asks it to end; it does at the next step, with `cancelled`, and leaves the quarantined store as it is.
  package func cancel() { isCancelled.withLock { $0 = true } }

  /// Waits for its end, and blocks the thread meanwhile.
  ///
  /// - Throws: what ``Quarantines/salvage(_:model:options:observer:)`` throws.
  package func wait() throws -> QuarantineSalvage {
    end.wait()
    guard let result = state.withLock({ $0.result }) else { throw LazaretError.cancelled("") }
    return try result.get()
  }

  /// Its result, once it has ended.
  ///
  /// - Throws: what ``Quarantines/salvage(_:model:options:observer:)`` throws.
  package var value: QuarantineSalvage {
    get async throws {
      try await withCheckedThrowingContinuation { continuation in
        let result = state.withLock { state -> Result<QuarantineSalvage, any Error>? in
          if state.result == nil { state.waiting.append(continuation) }
          return state.result
        }
        if let result { continuation.resume(with: result) }
      }
    }
  }
}
