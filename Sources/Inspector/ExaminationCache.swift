import Lazaret
import Synchronization

/// What looks at every page of stores have found, kept until a store changes.
///
/// A page of the inspector must not take as long as reading the store each time that it is shown.
final class ExaminationCache: Sendable {
  private struct Key: Hashable {
    let store: FilePath
    let model: String?
    let countsRecords: Bool
  }

  private struct Entry {
    let members: [StoreFileSet.Member]
    let examination: Examination
  }

  /// More than a page of stores shows.
  private static let capacity = 64

  private let entries = Mutex<[Key: Entry]>([:])

  /// What a store is by a model, or by itself; every page of it is looked at.
  func examination(
    of files: StoreFileSet, model: InspectorModel?, countsRecords: Bool, in fileSystem: FileSystem
  ) throws -> Examination {
    let key = Key(store: files.main, model: model?.name, countsRecords: countsRecords)
    let before = try files.members(in: fileSystem)
    if let entry = entries.withLock({ $0[key] }), entry.members == before { return entry.examination }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.main, model: model?.model, options: .init(depth: .full, countsRecords: countsRecords))
    // What was written to meanwhile, and what could not be had, is looked at again the next time.
    guard examination.verdict != .unavailable, try files.members(in: fileSystem) == before else { return examination }
    entries.withLock { entries in
      if entries.count >= Self.capacity { entries.removeAll() }
      entries[key] = Entry(members: before, examination: examination)
    }
    return examination
  }
}
