public import ManagedObjectModel
public import StoreFiles
public import SystemPackage

extension MappingModel {
  /// Loads Core Data's own mapping models: sources (`.xcmappingmodel`) and compiled ones (`.cdm`).
  ///
  /// Each is matched against the versions of a model by the version hashes in it (format section 2.3), and what it says
  /// is translated; nothing that cannot be carried out is left for later. Entities with a policy class keep its name,
  /// and the expressions that only the policy can make are kept as text.
  ///
  /// - Parameters:
  ///   - path: one mapping model, or a folder that holds any number of them, also in folders of its own.
  ///   - bundle: the versions of the model.
  ///   - fileSystem: the file system it is read from.
  /// - Throws: a file error, or for a single file what is wrong with it: `mapping-stale` with the side and the entity
  ///   that differ, `expression-unsupported` with every expression that cannot be carried out in `refusals`, or
  ///   `mapping-invalid`. For a folder these are notes, and `mapping-missing` is thrown where it holds no mapping model.
  public static func load(
    path: FilePath, for bundle: ModelBundle, fileSystem: FileSystem = FileSystem()
  ) throws(MigrationError) -> LoadedMappingModels {
    let (files, isOne) = try MappingModelFiles(fileSystem: fileSystem).find(path)
    if isOne, let file = files.first {
      var result = LoadedMappingModels()
      try loadOne(file, bundle, fileSystem, into: &result)
      return result
    }
    guard !files.isEmpty else {
      throw MigrationError(
        .mappingMissing, operation: MappingModelFile.operation, path: path,
        detail: "the folder holds no mapping model (.xcmappingmodel or .cdm)",
        hint: "Name the mapping model or a folder that holds it.")
    }
    var result = LoadedMappingModels()
    for file in files {
      do throws(MigrationError) {
        try loadOne(file, bundle, fileSystem, into: &result)
      } catch {
        if error.isEnvironmental { throw error }
        result.notes.append(error)
      }
    }
    // The order among equals stays that of the paths.
    let ranked = result.mappings.enumerated().ordered { first, second in
      let (one, other) = (first.element.loadingRank, second.element.loadingRank)
      return one == other ? first.offset < second.offset : one.lexicographicallyPrecedes(other)
    }
    result.mappings = ranked.map(\.element)
    return result
  }

  private static func loadOne(
    _ path: FilePath, _ bundle: ModelBundle, _ fileSystem: FileSystem, into result: inout LoadedMappingModels
  ) throws(MigrationError) {
    let file = try MappingModelFile.read(path, fileSystem)
    let pair = try file.versions(in: bundle)
    var translation = MappingTranslation(file, from: pair.source.model, to: pair.destination.model)
    result.mappings.append(try translation.mappingModel())
    guard file.emptyCount > 0 else { return }
    result.notes.append(
      MigrationError(
        .mappingInvalid, operation: "use \(counted(file.emptyCount, "entry", "entries")) of the mapping model",
        path: path,
        detail: "neither an entity of the source nor one of the destination is named",
        hint: "Remove what is empty in Xcode; the others are used."))
  }

  /// What is better is smaller: the entities that are lost, then the mappings that need a policy.
  private var loadingRank: [Int] {
    [losses.count { $0.kind == .removedEntity }, entityMappings.count { $0.policyClassName != nil }]
  }
}
