public import ManagedObjectModel
internal import StoreFiles
internal import SystemPackage

/// The chain of steps that leads from the model a store was written with to a version of a bundle.
public struct MigrationPath: Sendable, Hashable {
  /// The model that a store was written with.
  public enum Source: Sendable, Hashable {
    /// A version of the bundle, by name.
    case version(String)

    /// Any model, such as the one in a store's cache; a version of the bundle where its hashes are those of one.
    case model(ManagedObjectModel)
  }

  /// The steps in the order in which they are taken; empty where the store is of the wanted version already.
  public let steps: [MigrationStep]

  /// The version it leads to.
  public let destinationName: String

  /// The custom mappings that were given and that no step uses, with the reason, in the order of their names.
  public let unused: [UnusedMapping]

  /// Finds the chain of steps.
  ///
  /// From each version, a custom mapping that starts there is taken (the one to the next version first, else the one
  /// that leads furthest; of several between the same versions the first by name), and else the mapping to the next version is inferred. Versions with the same hashes as the
  /// next are stepped over. A model that the bundle lacks is mapped to the wanted version directly; where that cannot
  /// be, through the newest version from which the chain leads on.
  ///
  /// - Parameters:
  ///   - bundle: The versions, oldest first.
  ///   - source: What the store was written with.
  ///   - destination: The name of the version it is to become one of; the current one if not given.
  ///   - isDirect: Whether the versions between are left out.
  ///   - mappings: Custom mappings; only those whose hashes are those of two versions are of use.
  /// - Throws: `MigrationError`: `unknownVersion`, `backwards`, or `notInferable` with the refusals of every step.
  public init(
    in bundle: ModelBundle, from source: Source, to destination: String? = nil, isDirect: Bool = false,
    mappings: [MappingModel] = []
  ) throws(MigrationError) {
    let mappings = mappings.sorted(by: MappingModel.isListedBefore)
    let finder = PathFinder(bundle: bundle, mappings: mappings, isDirect: isDirect)
    let target = try finder.index(of: destination ?? bundle.current.name)
    destinationName = bundle.versions[target].name
    switch source {
    case .version(let name): steps = try finder.steps(from: try finder.index(of: name), to: target)
    case .model(let model): steps = try finder.steps(from: model, to: target)
    }
    let steps = steps
    unused = mappings.filter { mapping in !steps.contains { $0.mapping == mapping } }
      .map { UnusedMapping($0, in: bundle, steps: steps) }
  }
}

extension MappingModel {
  /// The order in which mappings between the same versions are chosen: those that need no policy, then by name, by file.
  static func isListedBefore(_ first: MappingModel, _ second: MappingModel) -> Bool {
    let needs = [first, second].map { $0.entityMappings.contains(where: \.needsPolicy) }
    if needs[0] != needs[1] { return needs[1] }
    if first.label != second.label { return precedesByCodeUnit(first.label, second.label) }
    return precedesByCodeUnit(first.origin.path?.string ?? "", second.origin.path?.string ?? "")
  }
}

/// Looks for a chain of steps.
private struct PathFinder {
  let bundle: ModelBundle
  let mappings: [MappingModel]
  let isDirect: Bool

  var versions: [ModelVersion] { bundle.versions }

  func index(of name: String) throws(MigrationError) -> Int {
    guard let index = versions.firstIndex(where: { $0.name == name }) else {
      throw MigrationError(
        .unknownVersion, operation: "plan the migration", path: bundle.path,
        detail: """
          the model has no version "\(printable(name))"; it has \
          \(versions.map { printable($0.name) }.joined(separator: ", "))
          """)
    }
    return index
  }

  func steps(from start: Int, to target: Int) throws(MigrationError) -> [MigrationStep] {
    // Core Data tells versions apart by nothing but their hashes.
    guard versions[start].versionHashes != versions[target].versionHashes else { return [] }
    guard start < target else {
      throw MigrationError(
        .backwards, operation: "plan the migration", path: bundle.path,
        detail: """
          the store is of version "\(printable(versions[start].name))", which is newer than \
          "\(printable(versions[target].name))"
          """)
    }
    var steps: [MigrationStep] = []
    var refusals: [MigrationRefusal] = []
    var place = start
    while place < target {
      let from = versions[place]
      let (next, custom) = next(after: place, target)
      let to = versions[next]
      place = next
      if from.versionHashes == to.versionHashes, custom == nil { continue }
      if let custom {
        steps.append(step(from: from.name, to: to.name, custom))
        continue
      }
      let inference = MappingInference(from: from.model, to: to.model)
      let step = MigrationStep(from: from.name, to: to.name, mapping: inference.mapping)
      steps.append(step)
      for var refusal in inference.refusals {
        refusal.step = step.name
        refusals.append(refusal)
      }
    }
    try refuse(refusals)
    return steps
  }

  func steps(from model: ManagedObjectModel, to target: Int) throws(MigrationError) -> [MigrationStep] {
    let hashes = model.versionHashes()
    if let known = versions.lastIndex(where: { $0.versionHashes == hashes }) {
      return try steps(from: known, to: target)
    }
    let direct = entry(from: model, hashes, to: target)
    if direct.refusals.isEmpty { return [direct.step] }
    if !isDirect {
      for place in versions.indices[..<target].reversed() {
        let first = entry(from: model, hashes, to: place)
        // A detour by which something is lost is no way round a refusal.
        guard first.refusals.isEmpty, first.step.mapping.losses.isEmpty else { continue }
        do throws(MigrationError) {
          return [first.step] + (try steps(from: place, to: target))
        } catch {
          // An older version may have a way that this one has not; if none has, the direct way's reasons are told.
          continue
        }
      }
    }
    try refuse(direct.refusals)
    return [direct.step]
  }

  private func entry(
    from model: ManagedObjectModel, _ hashes: [String: VersionHash], to place: Int
  ) -> (step: MigrationStep, refusals: [MigrationRefusal]) {
    let version = versions[place]
    if let custom = mappings.first(where: { $0.fits(source: hashes, destination: version.versionHashes) }) {
      return (step(from: nil, to: version.name, custom), [])
    }
    let inference = MappingInference(from: model, to: version.model)
    let step = MigrationStep(from: nil, to: version.name, mapping: inference.mapping)
    let refusals = inference.refusals.map { refusal in
      var copy = refusal
      copy.step = step.name
      return copy
    }
    return (step, refusals)
  }

  /// A step by a custom mapping, with the others that would do.
  private func step(from source: String?, to destination: String, _ custom: MappingModel) -> MigrationStep {
    let others = mappings.filter {
      $0 != custom && $0.fits(source: custom.sourceHashes, destination: custom.destinationHashes)
    }
    return MigrationStep(from: source, to: destination, mapping: custom, alternatives: others)
  }

  /// The version that comes after one, and the custom mapping that leads there, where there is one.
  private func next(after place: Int, _ target: Int) -> (index: Int, mapping: MappingModel?) {
    let hashes = versions[place].versionHashes
    func custom(to index: Int) -> MappingModel? {
      mappings.first { $0.fits(source: hashes, destination: versions[index].versionHashes) }
    }
    if isDirect { return (target, custom(to: target)) }
    // Every mapping fits a version that is the same as the one it is from; such a version is no step.
    if versions[place + 1].versionHashes == hashes { return (place + 1, nil) }
    for index in [place + 1] + versions.indices[(place + 1)...target].reversed() {
      if let found = custom(to: index) { return (index, found) }
    }
    return (place + 1, nil)
  }

  private func refuse(_ refusals: [MigrationRefusal]) throws(MigrationError) {
    guard let first = refusals.first else { return }
    let error = MigrationError(refusals: refusals)
    throw first.step.map { error.told(step: $0) } ?? error
  }
}
