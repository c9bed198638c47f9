public import ArgumentParser
import ManagedObjectModel
public import Migration
import Platform
import SystemPackage

struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main file.") var store: PathArgument

  @OptionGroup var model: ModelOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: .text("The version to lead to, which may be an older one; the current one if not given.", "version"))
  var to: String?

  @OptionGroup var way: MigrationWayOptions

  func bundle(json: Bool) throws -> ModelBundle { try versionOrder.load(model.path, to: to, json: json) }

  /// Runs `body`; the error for an unknown version suggests the closest one.
  func finding<Result>(in bundle: ModelBundle, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as MigrationError where error.kind == .unknownVersion {
      let names = (bundle.versions + bundle.unorderedVersions).map { printable($0.name) }
      error.hint = Likeness.hint(error.hint, for: [to].compactMap(\.self) + way.via, among: names)
      throw error
    }
  }

  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = try way.options(for: bundle)
    options.version = to
    return options
  }
}

struct MigrationWayOptions: ParsableArguments {
  @Flag(help: "One step from the store's version to the last, whatever mappings and versions lie between.")
  var direct = false

  @Option(help: .text("A version that the way goes through; may be given several times, in order.", "version"))
  var via: [String] = []

  @Option(
    help: .text(
      "What to do where only renaming identifiers differ and the data of an entity or property of the same name would be deleted: refuse (the store stays as it is), or migrate.",
      "remedy"))
  var onMigrationLoss: LossRemedy = .refuse

  @OptionGroup var mappings: MappingOptions

  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = Migrator.Options()
    options.isDirect = direct
    options.via = via
    options.whenMigrationLoses = onMigrationLoss
    options.mappings = try mappings.load(for: bundle)
    return options
  }
}

extension LossRemedy: ExpressibleByArgument {}

struct MappingOptions: ParsableArguments {
  @Option(
    help: .text(
      "A mapping to use where it fits: a mapping file (.json), a mapping model (.xcmappingmodel, .cdm), or a folder of those; may be given several times.",
      "file"))
  var mapping: [PathArgument] = []

  /// Loads the mappings for a model; reports a folder's unusable ones on standard error.
  func load(for bundle: ModelBundle) throws -> [MappingModel] {
    var result: [MappingModel] = []
    for argument in mapping {
      if argument.path.extension == "json" {
        result += try MappingFile.load(argument.path, in: bundle)
        continue
      }
      let files = try mappingFiles(in: argument.path)
      for file in files { result += try MappingFile.load(file, in: bundle) }
      let loaded: LoadedMappingModels
      do {
        loaded = try MappingModel.load(path: argument.path, for: bundle)
      } catch let error as MigrationError where error.kind == .mappingMissing && !files.isEmpty {
        continue
      }
      for note in loaded.notes { Terminal.standardError.write("lazaret: left out: \(note.description)\n") }
      result += loaded.mappings
    }
    return result
  }

  private func mappingFiles(in path: FilePath) throws -> [FilePath] {
    let fileSystem = FileSystem()
    guard path.extension == nil, try fileSystem.status(of: path)?.kind == .directory else { return [] }
    let names = try fileSystem.entries(of: path).filter { $0.extension == "json" }
    return names.map { path.appending($0) }.sorted { $0.string < $1.string }
  }
}
