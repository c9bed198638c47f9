import StoreCoordination

/// What looks at every page of stores have found, kept until a store changes.
final class ExaminationCache: Sendable {
  private struct Key: Hashable {
    let store: FilePath
    let model: String?
    let countsRecords: Bool
  }

  private let examinations = StoreCache<Key, Examination>(capacity: 64)

  /// What is known of a store that has not changed since every page of it was looked at; nil for nothing.
  func kept(_ files: StoreFileSet, model: InspectorModel?, in fileSystem: FileSystem) throws -> Examination? {
    try examinations.kept(
      Key(store: files.main, model: model?.name, countsRecords: false), of: files, in: fileSystem)
  }

  /// What a store is by a model, or by itself; every page of it is looked at.
  func examination(
    of files: StoreFileSet, model: InspectorModel?, countsRecords: Bool, in fileSystem: FileSystem
  ) throws -> Examination {
    let key = Key(store: files.main, model: model?.name, countsRecords: countsRecords)
    // What could not be had is looked at again the next time.
    return try examinations.value(
      key, of: files, in: fileSystem, keepingIf: { $0.verdict != .unavailable },
      make: {
        try Examiner(fileSystem: fileSystem).examine(
          files.main, model: model?.model, options: .init(depth: .full, countsRecords: countsRecords))
      })
  }
}
