internal import Foundation
internal import Platform

/// A scrub on a thread of its own, while the damage of the same store is analysed, which takes one processor.
///
/// It ends with this value: what is not waited for is stopped.
final class ScrubBeside: Sendable {
  private let state = State()

  /// The folder that the thread writes to; it stays until the thread has ended, and not longer for its sake.
  private let folder: ExportFolder

  /// Begins it; nil where there is nothing to scrub, or no room for the scrub and the analysis at once.
  static func begin(
    _ work: ExportWork, _ evidence: ExportEvidence, in folder: ExportFolder
  ) throws(FileError) -> ScrubBeside? {
    guard evidence.hasMain,
      try work.fileSystem.freeSpace(at: folder.path) > evidence.allBytes + evidence.bytes
    else { return nil }
    return ScrubBeside(work, evidence, folder)
  }

  private init(_ work: ExportWork, _ evidence: ExportEvidence, _ folder: ExportFolder) {
    self.folder = folder
    let beside = ExportWork(
      work.source, work.options, home: work.home, place: work.place, surroundings: work.surroundings
    ) { [state, progress = work.progress] phase, done, total in
      switch state.mood {
      case .silent: true
      case .heard: progress(phase, done, total)
      case .stopped: false
      }
    }
    WorkThread.start { [state, path = folder.path] in
      state.end(Result { try ScrubbedStore(beside, evidence, in: path) })
    }
  }

  deinit { state.stop() }

  /// Waits for it; from now on it tells of its progress.
  ///
  /// - Throws: what the scrub threw.
  func value() throws -> ScrubbedStore { try state.wait().get() }

  private final class State: Sendable {
    enum Mood: Sendable {
      case silent
      case heard
      case stopped
    }

    private let ended = DispatchSemaphore(value: 0)
    private let content = Mutex<(mood: Mood, result: Result<ScrubbedStore, any Error>?)>((.silent, nil))

    var mood: Mood { content.withLock { $0.mood } }

    func end(_ result: Result<ScrubbedStore, any Error>) {
      content.withLock { $0.result = result }
      ended.signal()
    }

    func wait(_ mood: Mood = .heard) -> Result<ScrubbedStore, any Error> {
      content.withLock { $0.mood = mood }
      while true {
        if let result = content.withLock({ $0.result }) { return result }
        ended.wait()
      }
    }

    /// Has the thread end, and waits for that, so that nothing is written any more.
    func stop() { _ = wait(.stopped) }
  }
}
