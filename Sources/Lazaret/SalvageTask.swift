package import Backup
import Foundation
package import PersistentStore
import Platform
package import Salvage
package import SystemPackage

/// A background salvage of a quarantined store.
///
/// ```swift
/// let task = SalvageTask(of: "2026-11-21-10-11-12", in: Quarantines(home: home), model: model)
/// for await progress in task.updates { show(progress.fraction) }
/// let salvaged = try await task.value
/// ```
///
/// It continues without its handle; `cancel` ends it.
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

  /// The progress, for one reader; a slow one gets only the latest report.
  package let updates: AsyncStream<OpeningProgress>

  /// Starts a salvage.
  ///
  /// - Parameters:
  ///   - name: a name or path.
  ///   - model: nil takes the store's own metadata.
  ///   - work: further work on the same thread, such as installing; the task throws its error.
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

  package var progress: OpeningProgress? { state.withLock { $0.progress } }

  package var hasEnded: Bool { isEnded.withLock { $0 } }

  /// Ends the task at its next step with `cancelled`; the quarantined store is unchanged.
  package func cancel() { isCancelled.withLock { $0 = true } }

  /// Blocks the thread until the end.
  ///
  /// - Throws: the errors of ``Quarantines/salvage(_:model:options:observer:)``.
  package func wait() throws -> QuarantineSalvage {
    end.wait()
    guard let result = state.withLock({ $0.result }) else { throw LazaretError.cancelled("") }
    return try result.get()
  }

  /// The result, after the end; throws like ``wait()``.
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

package struct QuarantineSalvage: Sendable {
  /// With its present receipt.
  package var stored: QuarantinedStore

  package var store: FilePath

  package var reportPath: FilePath

  package var report: SalvageReport

  package var result: Receipt.Salvage.Result

  /// Whether it is the one to install; false if a better earlier result stays.
  package var isCurrent: Bool

  /// The comparison with the previous result to install.
  package var comparison: SalvageComparison?

  /// The reason why the app cannot open it.
  package var failure: Receipt.Reason?

  package var words: String { [result.words, failure?.words].compactMap(\.self).joined(separator: " ") }
}

package struct QuarantineSalvageOptions: Sendable, Hashable {
  /// Deleted records are set aside.
  package var findsDeleted: Bool

  /// The donor of lost records.
  package var backup: BackupSource?

  /// Whether to use a backup even without evidence of its store.
  package var trustsBackup: Bool

  package init(findsDeleted: Bool = false, backup: BackupSource? = nil, trustsBackup: Bool = false) {
    self.findsDeleted = findsDeleted
    self.backup = backup
    self.trustsBackup = trustsBackup
  }
}

/// A backup that supplies lost records.
package enum BackupSource: Sendable, Hashable {
  /// The newest verified backup in the store's place in the home.
  case newest

  /// A backup of the home: this store's or, if it has none of that name, another's.
  case backup(BackupIdentifier)

  /// A sound store, a Lazaret backup of any kind, or a store packed with gzip.
  case file(FilePath)
}
