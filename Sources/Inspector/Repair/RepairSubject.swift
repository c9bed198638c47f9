import HTTPServer
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform

/// A live store as a repair sees it: what it is, and the versions among which its own model is looked for.
struct RepairSubject {
  let files: StoreFileSet
  let examination: PagePart<Examination>

  /// The name of the model that it is repaired by; nil for the one that it carries.
  let modelName: String?

  /// The versions of that model; nil where the store's own model is not at hand.
  private let bundle: ModelBundle?

  /// A store as it is now.
  ///
  /// - Throws: ``Refusal`` 404 for a store that is not in its place.
  init(_ store: ListedStore, _ parts: InspectorParts) throws {
    guard case .live(let files) = store.kind else { throw Refusal(.notFound, "this is no live store") }
    self.files = files
    let examined = parts.examined(files, countsRecords: true)
    examination = examined.examination
    let found = examined.examination.value
    if case .coreData(let bundle)? = examined.model?.model, found?.modelVersion != nil {
      self.bundle = bundle
      modelName = examined.model?.name
    } else {
      // Where no version of the app's is the store's own, the one that the store carries.
      let name = "own model"
      bundle = found?.storeModel.flatMap { model in
        ModelBundle(name: name, versions: [ModelVersion(name: name, model: model, isCurrent: true)])
      }
      modelName = nil
    }
  }

  /// The model that the store was written with.
  ///
  /// - Throws: ``Refusal`` 409 where it is not at hand.
  func storeLayout() throws -> StoreLayout {
    guard let model = examination.value?.storeModel else { throw Self.modelMissing.refusal }
    return try StoreLayout(model)
  }

  /// What repairs the store, and says what a repair would do.
  ///
  /// - Throws: ``Refusal`` 409 where its own model is not at hand.
  func migrator(_ parts: InspectorParts) throws -> Migrator {
    guard let bundle else { throw Self.modelMissing.refusal }
    var migrator = Migrator(bundle, surroundings: parts.surroundings, logger: parts.logger)
    migrator.keepOriginals(by: parts.surroundings)
    return migrator
  }

  /// Why it is neither repaired nor checked now; nil where it can be.
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

  /// Why it is not repaired here, where writing its rows would run what its schema declares; nil where nothing would run.
  func declarations(in fileSystem: FileSystem) throws -> Problem? {
    try DeclaredExpressions.problem(of: files, storeLayout(), in: fileSystem, command: "lazaret repair --dry-run")
  }

  private static let modelMissing = Problem(
    .conflict, code: "source-model-missing", title: "Not like this.",
    detail: "The model that the store was written with is neither among the models given nor in the store.",
    hint: "Start the inspector with the app's model: lazaret serve --model App.xcdatamodeld.")
}
