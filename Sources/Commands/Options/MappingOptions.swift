import ArgumentParser
import Lazaret

/// The custom mappings that a migration may use.
struct MappingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A mapping to use where it fits: a mapping file (.json), a mapping model (.xcmappingmodel, .cdm), or a folder of those; may be given several times.",
      valueName: "file"))
  var mapping: [PathArgument] = []

  /// The mappings for the versions of a model; what a folder holds that cannot be used is told on standard error.
  func load(for bundle: ModelBundle) throws -> [MappingModel] {
    var result: [MappingModel] = []
    for argument in mapping {
      if argument.path.extension == "json" {
        result += try MappingFile.load(argument.path, in: bundle)
        continue
      }
      let loaded = try MappingModel.load(path: argument.path, for: bundle)
      for note in loaded.notes { Terminal.standardError.write("lazaret: left out: \(note.description)\n") }
      result += loaded.mappings
    }
    return result
  }
}
