import Foundation

/// Looks at a store as its opening does, and waits a moment for a lock that is only passing.
///
/// SQLite takes one whenever a last connection closes.
struct PatientExaminer: Sendable {
  let model: AppModel
  var depth: Examination.Depth
  let fileSystem: FileSystem
  let observer: OpeningObserver

  /// Whether the observer is told how far the look is; not where it comes between steps of another phase.
  var reports = true

  /// How often it looks at a store that is locked.
  private static let looks = 11

  private static let pause = 0.03

  /// What can be told of the store at a place; touches nothing.
  ///
  /// - Throws: `LazaretError.cancelled` where the observer wants that.
  func examine(_ place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    var remaining = Self.looks
    while true {
      let examination = try look(at: place, countsRecords: countsRecords)
      remaining -= 1
      let isLocked = examination.verdict == .unavailable && examination.reason.code == FileError.Kind.locked.rawValue
      guard isLocked, remaining > 0 else { return examination }
      Thread.sleep(forTimeInterval: Self.pause)
    }
  }

  private func look(at place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    let (observer, reports) = (observer, reports)
    do {
      return try Examiner(fileSystem: fileSystem).examine(
        place.main, model: model,
        options: .init(depth: depth, countsRecords: countsRecords) { done, total in
          if reports {
            observer.progress(OpeningProgress(phase: .examining, completed: Int64(done), total: Int64(total)))
          }
          return !observer.isCancelled()
        })
    } catch let error as FormatError where error.kind == .cancelled {
      throw LazaretError.cancelled(place.main)
    }
  }
}
