internal import Foundation
internal import Platform

/// A scrub concurrent with the single-threaded damage analysis, stopped on release.
final class ScrubBeside: Sendable {
  private let state = State()

  private let folder: ExportFolder

  /// Starts a scrub; nil without a store or space for both.
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

  /// Waits for the result, reporting progress from now on.
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

    /// Stops the thread and waits for its end.
    func stop() { _ = wait(.stopped) }
  }
}
