package import Backup
import Foundation
package import PersistentStore
import Platform
package import Salvage
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

/// A salvaged store in quarantine: what came out of a quarantined one.
package struct QuarantineSalvage: Sendable {
  /// The quarantined store, with its receipt as it is now.
  package var stored: QuarantinedStore

  /// The salvaged store.
  package var store: FilePath

  /// The report, as a file.
  package var reportPath: FilePath

  /// What was recovered and what was not.
  package var report: SalvageReport

  /// The account of it that the receipt has.
  package var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false where an earlier result is better, which stays.
  package var isCurrent: Bool

  /// How it differs from the result that was the one to install before; nil where there was none.
  package var comparison: SalvageComparison?

  /// Why the app cannot open what came out; nil where it can.
  package var failure: Receipt.Reason?

  /// What came out, and why the app cannot open it where that is so, in plain sentences.
  package var words: String { [result.words, failure?.words].compactMap(\.self).joined(separator: " ") }
}

/// What a salvage of a quarantined store is to do.
package struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Whether deleted records are looked for too; they are set aside.
  package var findsDeleted: Bool

  /// A backup that lost records are taken from; nil for none.
  package var backup: BackupSource?

  /// Whether records are taken from that backup even if nothing says that it is of the store.
  package var trustsBackup: Bool

  /// Live records only, unless told otherwise.
  package init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}

/// A backup that a salvage takes lost records from.
package enum BackupSource: Sendable, Hashable {
  /// The newest proven backup of the store in its place in the home.
  case newest

  /// A backup of the home, of this store or, where no backup of it has that name, of another.
  case backup(BackupIdentifier)

  /// A file: a healthy store, a backup of ours of any kind, or a store packed with gzip.
  case file(FilePath)
}
