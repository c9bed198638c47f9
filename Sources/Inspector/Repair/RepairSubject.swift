import HTTPServer
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage

/// A live store to repair.
struct RepairSubject {
  let files: StoreFileSet
  let examination: PagePart<Examination>

  /// The repairing model's name; nil for the embedded one.
  let modelName: String?

  /// The model's versions, if available.
  private let bundle: ModelBundle?

  /// - Throws: ``Refusal`` 404 for a store that isn't live.
  init(_ store: ListedStore, _ parts: InspectorParts) throws {
    files = try store.liveFiles()
    let examined = parts.examined(files, countsRecords: true)
    examination = examined.examination
    let found = examined.examination.value
    if let bundle = examined.model?.bundle, found?.modelVersion != nil {
      self.bundle = bundle
      modelName = examined.model?.name
    } else {
      // The embedded model serves if no version of the app matches.
      let name = "own model"
      bundle = found?.storeModel.flatMap { model in
        ModelBundle(name: name, versions: [ModelVersion(name: name, model: model, isCurrent: true)])
      }
      modelName = nil
    }
  }

  /// - Throws: ``Refusal`` 409 if unavailable.
  func storeLayout() throws -> StoreLayout {
    guard let model = examination.value?.storeModel else { throw Self.modelMissing.refusal }
    return try StoreLayout(model)
  }

  /// - Throws: ``Refusal`` 409 if the store's model is unavailable.
  func migrator(_ parts: InspectorParts) throws -> Migrator {
    guard let bundle else { throw Self.modelMissing.refusal }
    var migrator = Migrator(bundle, surroundings: parts.surroundings, logger: parts.logger)
    migrator.keepOriginals(by: parts.surroundings)
    return migrator
  }

  var obstacle: Problem? {
    guard let examination = examination.value else { return examination.problem }
    let reason = examination.reason
    switch examination.verdict {
    case .unavailable, .missing:
      return Problem(.conflict, code: reason.code, title: "Not now.", detail: reason.words, hint: reason.hint)
    case .damaged:
      return Problem(
        .conflict, code: "store-damaged", title: "Not this one.",
        detail: "A damaged store is not repaired but salvaged.",
        hint: "A salvage makes a clean store of every record that is left.")
    case .compatible, .repairable, .outdated, .incompatible:
      guard examination.kind == .coreData else {
        return Problem(
          .conflict, code: "repair-refused", title: "Not this one.",
          detail: "A plain SQLite store is not repaired: its app's migrator owns the schema.",
          hint: "What it lacks of the app's schema is told where the schema is given.")
      }
      return examination.drift == nil || bundle == nil ? Self.modelMissing : nil
    }
  }

  /// The declared expressions that a repair would run.
  func declarations(in fileSystem: FileSystem) throws -> Problem? {
    try DeclaredExpressions.problem(of: files, storeLayout(), in: fileSystem, command: "lazaret repair --dry-run")
  }

  private static let modelMissing = Problem(
    .conflict, code: "source-model-missing", title: "Not like this.",
    detail: "The model that the store was written with is neither among the models given nor in the store.",
    hint: "Start the inspector with the app's model: lazaret serve --model App.xcdatamodeld.")
}

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

  /// The last repairs.
  let done = RecentValues<StoreID, Done>(capacity: 200)

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
}
