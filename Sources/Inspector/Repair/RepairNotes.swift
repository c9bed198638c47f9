import Lazaret
import Migration
import PersistentStore
import Platform
import SystemPackage

/// Caches dry runs and checks until a store changes.
final class RepairNotes: Sendable {
  struct Done: Sendable {
    let outcome: RepairOutcome

    /// Whether records were repaired too.
    let scope: RepairScope

    let date: Timestamp
  }

  private struct DryRun: Hashable {
    let store: FilePath
    let model: String
    let scope: RepairScope
  }

  private let dryRuns = StoreCache<DryRun, RepairAccount>(capacity: 32)
  private let checks = StoreCache<FilePath, DataCheck>(capacity: 64)
  private let repairs = Mutex<[StoreID: Done]>([:])

  private static let maximumDone = 200

  /// Returns a repair's effects on a private copy, cached.
  func dryRun(
    of subject: RepairSubject, _ scope: RepairScope, _ parts: InspectorParts
  ) throws -> RepairAccount {
    let migrator = try subject.migrator(parts)
    let key = DryRun(store: subject.files.main, model: subject.modelName ?? "", scope: scope)
    return try dryRuns.value(key, of: subject.files, in: parts.surroundings.fileSystem) {
      var options = Migrator.Options()
      options.repair = scope
      var account = try migrator.planRepair(subject.files.main, options: options)
      // An embedded model is no version of the app's.
      if subject.modelName == nil { account.version = nil }
      return account
    }
  }

  /// The last check; nil if outdated.
  func check(of files: StoreFileSet, in fileSystem: FileSystem) throws -> DataCheck? {
    try checks.kept(files.main, of: files, in: fileSystem)
  }

  /// Checks the records, read-only.
  func check(_ files: StoreFileSet, _ layout: StoreLayout, _ surroundings: Surroundings) throws -> DataCheck {
    try checks.value(files.main, of: files, in: surroundings.fileSystem) {
      try DataCheck(of: files, layout: layout, surroundings: surroundings)
    }
  }

  func done(for store: StoreID) -> Done? { repairs.withLock { $0[store] } }

  func note(_ done: Done, for store: StoreID) {
    repairs.withLock { repairs in
      if repairs.count >= Self.maximumDone, let oldest = repairs.min(by: { $0.value.date < $1.value.date }) {
        repairs[oldest.key] = nil
      }
      repairs[store] = done
    }
  }
}
