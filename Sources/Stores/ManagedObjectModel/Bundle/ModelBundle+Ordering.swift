public import StoreFiles

extension ModelBundle {
  /// More versions of merged models than any app has had.
  private static let mergedLimit = 1000

  /// Several models as one with the entities of all, as an app merges them when it starts: a version for each choice of theirs.
  ///
  /// Returns nil for none, for models that have an entity of the same name, and where there are too many choices; then only the
  /// current versions count.
  package static func merging(_ bundles: [ModelBundle]) -> ModelBundle? {
    let count = bundles.reduce(1) { min(mergedLimit + 1, $0 * max(1, $1.versions.count)) }
    var choices: [[ModelVersion]] = [[]]
    for bundle in bundles {
      let versions = count > mergedLimit ? [bundle.current] : bundle.versions
      choices = choices.flatMap { chosen in versions.map { chosen + [$0] } }
    }
    let versions = choices.compactMap { chosen -> ModelVersion? in
      let entities = chosen.flatMap { Array($0.model.entities.values) }
      guard Set(entities.map(\.name)).count == entities.count else { return nil }
      return ModelVersion(
        name: chosen.map(\.name).joined(separator: " + "),
        model: ManagedObjectModel(
          entities: entities, versionIdentifiers: chosen.flatMap(\.model.versionIdentifiers),
          fetchRequests: chosen.reduce(into: [:]) { $0.merge($1.model.fetchRequests) { first, _ in first } }),
        isCurrent: chosen.map(\.name) == bundles.map(\.current.name))
    }
    guard versions.contains(where: \.isCurrent) else { return nil }
    return ModelBundle(
      name: bundles.map(\.name).joined(separator: " + "), versions: versions, isOrdered: false,
      unreadableVersions: bundles.flatMap(\.unreadableVersions))
  }

  /// The same bundle with its versions in the order in which they were made.
  ///
  /// - Parameters:
  ///   - names: the versions, oldest first. The versions that it leaves out are still recognized in stores, and nothing leads
  ///     through them.
  ///   - target: the version that a migration leads to; the current one if not given.
  /// - Throws: `model-version-order` for a name that the bundle lacks or that is there twice, or without the target.
  public func ordered(_ names: [String], to target: String? = nil) throws(ModelError) -> ModelBundle {
    let all = versions + unorderedVersions
    let known = Set(all.map(\.name)).union(unreadableVersions.map(\.name))
    func refuse(_ detail: String, hint: String? = nil) -> ModelError {
      ModelError(.versionOrder, path: path, detail: detail, hint: hint)
    }
    if let unknown = names.first(where: { !known.contains($0) }) {
      throw refuse("the order names version \"\(printable(unknown))\", which is not in the bundle")
    }
    guard Set(names).count == names.count else { throw refuse("the order names a version twice") }
    guard names.contains(target ?? current.name) else {
      throw refuse(
        target.map { "the order leaves out version \"\(printable($0))\", which is to be led to" }
          ?? "the order leaves out the current version, \"\(printable(current.name))\"",
        hint: "Name that version too, where it belongs in the order.")
    }
    let ordered = names.compactMap { name in all.first { $0.name == name } }
    guard
      let bundle = ModelBundle(
        name: name, path: path, versions: ordered, isOrdered: true,
        unordered: all.filter { !names.contains($0.name) }, unreadableVersions: unreadableVersions)
    else { throw refuse("the order names no version that can be read") }
    return bundle
  }
}
