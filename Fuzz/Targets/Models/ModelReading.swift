internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// Reads bytes as models in each of their forms.
enum ModelReading {
  static func run(source bytes: [UInt8]) throws(FuzzFailure) {
    try use { () throws(ModelError) in try ManagedObjectModel(source: bytes) }
  }

  static func run(compiled bytes: [UInt8]) throws(FuzzFailure) {
    try use { () throws(ModelError) in try ManagedObjectModel(compiled: bytes) }
    try use { () throws(ModelError) in try ManagedObjectModel(modelCache: bytes) }
  }

  static func run(editor bytes: [UInt8]) {
    do throws(ModelError) {
      _ = try EditorModel(bytes).model.versionHashes()
    } catch {
      return
    }
  }

  /// Exchanges parts of an archived model as the bytes say: damage to bytes alone hardly ever gets past the property list.
  static func run(edits bytes: [UInt8]) throws(FuzzFailure) {
    let original: PropertyList
    do {
      original = try PropertyList(SeedModels.garage.compiledBytes())
    } catch {
      throw FuzzFailure("the example cannot be archived")
    }
    var edits = ArchiveEdits(bytes)
    let changed: [UInt8]
    do throws(FileError) {
      changed = try edits.apply(to: original).binaryBytes()
    } catch {
      return
    }
    try run(compiled: changed)
  }

  private static func use(_ read: () throws(ModelError) -> ManagedObjectModel) throws(FuzzFailure) {
    let model: ManagedObjectModel
    do throws(ModelError) {
      model = try read()
    } catch {
      return
    }
    let hashes = model.versionHashes()
    let findings = model.validate()
    _ = model.versionChecksum()
    for name in model.entities.keys {
      _ = model.lineage(of: name)
      _ = model.descendantNames(of: name)
      _ = model.properties(of: name)
    }
    _ = ModelListing(ModelVersion(name: "Fuzz", model: model, isCurrent: true)).text
    try writeAndRead(model, hashes, isSound: findings.isEmpty)
    do throws(PersistentStoreError) {
      _ = try StoreLayout(model)
    } catch {
      return
    }
  }

  private static func writeAndRead(
    _ model: ManagedObjectModel, _ hashes: [String: VersionHash], isSound: Bool
  ) throws(FuzzFailure) {
    let written: [UInt8]
    do throws(ModelError) {
      written = try model.compiledBytes()
    } catch {
      return
    }
    let again: ManagedObjectModel
    do throws(ModelError) {
      again = try ManagedObjectModel(compiled: written)
    } catch {
      return try expect(!isSound, "a compiled model cannot be read: \(error.detail)")
    }
    guard isSound else { return }
    let others = again.versionHashes()
    for (name, hash) in hashes where others[name] != hash {
      let (first, second) = (model.properties(of: name), again.properties(of: name))
      // Archived expressions of kinds that are not read cannot be written; those of sub-entities come from above.
      guard first.values.allSatisfy({ isWritable($0.property) }) else { continue }
      let changed = first.keys.filter { first[$0] != second[$0] }.sorted()
      throw FuzzFailure("\(name) has another version hash when it was written: \(changed) of \(first.count) properties")
    }
  }

  private static func isWritable(_ property: Property) -> Bool {
    guard case .attribute(let attribute) = property else { return true }
    return (attribute.derivationExpression.map { FormatParser.expression($0) != nil } ?? true)
      && (attribute.filteringPredicate.map { FormatParser.predicate($0) != nil } ?? true)
  }
}
