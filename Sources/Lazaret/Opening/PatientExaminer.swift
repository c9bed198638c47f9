import Foundation

/// Looks at a store as its opening does, and waits a moment for a lock that is only passing.
///
/// SQLite takes one whenever a last connection closes.
struct PatientExaminer: Sendable {
  let model: AppModel
  let depth: Examination.Depth
  let fileSystem: FileSystem

  /// How often it looks at a store that is locked.
  private static let looks = 11

  /// The seconds between two looks.
  private static let pause = 0.03

  /// What can be told of the store at a place; touches nothing.
  func examine(_ place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    var remaining = Self.looks
    while true {
      let examination = try Examiner(fileSystem: fileSystem).examine(
        place.main, model: model, options: .init(depth: depth, countsRecords: countsRecords))
      remaining -= 1
      let isLocked = examination.verdict == .unavailable && examination.reason.code == FileError.Kind.locked.rawValue
      guard isLocked, remaining > 0 else { return examination }
      Thread.sleep(forTimeInterval: Self.pause)
    }
  }
}
