public import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// The versions that a store goes through, and the mapping of each step.
public struct MigrationChain: Sendable {
  /// One step from a version to the next.
  public struct Step: Sendable {
    /// The version before; the store's own model where the bundle lacks it.
    public let source: String

    /// The version after.
    public let destination: String

    /// What becomes of the records.
    public let mapping: MappingModel

    /// The step in words: `V1 → V2`.
    public var name: String { "\(source) → \(destination)" }
  }

  /// The name of a source that only the store itself knows.
  public static let unnamedVersion = "the store's own model"

  /// The steps in order; empty where the store is of the version already.
  public let steps: [Step]

  /// Finds the way from a store to a version.
  ///
  /// - Parameters:
  ///   - hashes: the version hashes in the store's metadata.
  ///   - storeModel: the model cached in the store, for versions that the bundle lacks.
  ///   - bundle: the app's versions, oldest first.
  ///   - version: where to; the current version if nil.
  ///   - isDirect: whether the versions between are skipped.
  ///   - mappings: mappings to use in place of inferred ones where their hashes fit.
  /// - Throws: `source-model-missing`, `unknown-version`, `migration-backwards` or `mapping-not-inferable`.
  public init(
    from hashes: [String: VersionHash], storeModel: ManagedObjectModel?, in bundle: ModelBundle,
    to version: String? = nil, isDirect: Bool = false, mappings: [MappingModel] = []
  ) throws(MigrationError) {
    let target: ModelVersion
    if let version {
      guard let found = bundle.version(named: version) else {
        throw MigrationError(
          .unknownVersion, operation: "plan the migration", path: bundle.path,
          detail: "the model has no version \"\(printable(version))\"")
      }
      target = found
    } else {
      target = bundle.current
    }
    var waypoints: [(name: String, model: ManagedObjectModel)] = []
    if target.versionHashes == hashes {
      steps = []
      return
    }
    if let known = bundle.version(matching: hashes), let start = bundle.versions.firstIndex(of: known),
      let end = bundle.versions.firstIndex(of: target)
    {
      guard start < end else {
        throw MigrationError(
          .backwards, operation: "plan the migration", path: bundle.path,
          detail: "the store is of version \"\(printable(known.name))\", which is newer than "
            + "\"\(printable(target.name))\"")
      }
      let between = isDirect ? [known, target] : Array(bundle.versions[start...end])
      waypoints = between.map { ($0.name, $0.model) }
    } else if let storeModel, storeModel.versionHashes() == hashes {
      waypoints = [(Self.unnamedVersion, storeModel), (target.name, target.model)]
    } else {
      throw MigrationError(
        .sourceModelMissing, operation: "plan the migration", path: bundle.path,
        detail: "no version of the model has the store's version hashes, and the store carries no model of its own")
    }
    var steps: [Step] = []
    for (before, after) in zip(waypoints, waypoints.dropFirst()) {
      let (old, new) = (before.model.versionHashes(), after.model.versionHashes())
      // Versions with the same hashes have the same stores (format section 4.5).
      if old == new, steps.isEmpty == false || waypoints.count > 2 { continue }
      let name = "\(before.name) → \(after.name)"
      do {
        let given = mappings.first { $0.fits(source: old, destination: new) }
        let mapping = try given ?? MappingModel.inferred(from: before.model, to: after.model)
        steps.append(Step(source: before.name, destination: after.name, mapping: mapping))
      } catch {
        throw error.told(step: name)
      }
    }
    self.steps = steps
  }
}
