public import ManagedObjectModel
public import StoreFiles

extension MappingFile {
  /// The mapping model that the file describes.
  ///
  /// - Throws: `mapping-invalid`, `mapping-stale` where the version hashes in the file are not those of the versions,
  ///   `mapping-not-inferable` for what the file leaves to be inferred and cannot be.
  public func mappingModel(in bundle: ModelBundle) throws(MigrationError) -> MappingModel {
    let from = try version(source, "source", in: bundle)
    let to = try version(destination, "destination", in: bundle)
    var builder = MappingFileBuilder(file: self, source: from.model, destination: to.model)
    do throws(MigrationError) {
      return try builder.model()
    } catch {
      var told = error
      told.path = told.path ?? path
      throw told
    }
  }

  /// The version that one side of the file is for.
  func version(_ wanted: Version, _ word: String, in bundle: ModelBundle) throws(MigrationError) -> ModelVersion {
    var found = bundle.versions.filter { version in
      (wanted.hashes.map { $0 == version.versionHashes } ?? true)
        && (wanted.checksum.map { $0 == version.checksum } ?? true)
    }
    // Two versions may have the same hashes; then the name decides.
    if let name = wanted.name,
      found.contains(where: { $0.name == name }) || wanted.checksum == nil && wanted.hashes == nil
    {
      found = found.filter { $0.name == name }
    }
    if let version = found.last { return version }
    if let name = wanted.name, bundle.version(named: name) == nil, wanted.checksum == nil, wanted.hashes == nil {
      throw Self.invalid(
        path, "$.\(word)", tree[word]?.line ?? 1, "the model has no version \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: bundle.versions.map(\.name), "versions"))
    }
    throw stale(wanted, word, bundle)
  }

  private func stale(_ wanted: Version, _ word: String, _ bundle: ModelBundle) -> MigrationError {
    let named = wanted.name.flatMap { bundle.version(named: $0) }
    var detail = "the \(word) of mapping \"\(printable(name ?? "without a name"))\" is of no version of the model"
    if let hashes = wanted.hashes {
      let nearest =
        named
        ?? bundle.versions.min { first, second in
          UnusedMapping.differing(hashes, first.versionHashes).count
            < UnusedMapping.differing(hashes, second.versionHashes).count
        }
      if let nearest {
        let names = UnusedMapping.differing(hashes, nearest.versionHashes)
        let shown = names.prefix(10).map(printable).joined(separator: ", ")
        detail +=
          "; version \(printable(nearest.name)) has other version hashes of "
          + (names.isEmpty ? "no entity, but another checksum" : shown)
          + (names.count > 10 ? " and \(names.count - 10) more" : "")
      }
    } else if let named {
      detail += "; version \(printable(named.name)) has another checksum"
    }
    return MigrationError(
      .mappingStale, operation: "read the mapping file", path: path, detail: detail,
      hint: "Look through the mapping and correct it for the versions as they are now. Then delete \"checksum\" and "
        + "\"entities\" of both versions in the file, and run `lazaret model seal`.",
      entityName: nil)
  }
}
