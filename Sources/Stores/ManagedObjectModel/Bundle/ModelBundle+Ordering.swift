public import StoreFiles

extension ModelBundle {
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
