import ArgumentParser
import StoreCoordination

/// `lazaret model seal`: ties a mapping file to the versions as they are.
struct ModelSealCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Writes the version hashes of its two versions into a mapping file.",
    usage: "lazaret model seal <model> <mapping> [<options>]",
    discussion: """
      A mapping file with hashes is refused as stale once one of the versions has been changed.

      EXAMPLE
        lazaret model seal App.xcdatamodeld Split.json

      \(ExitStatus.help)
      """)

  @OptionGroup var options: ModelOptions

  @Argument(help: "The mapping file (.json); it is replaced, whole or not at all.")
  var mapping: PathArgument

  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try options.load(json: output.json)
      let sealed = try MappingFile(contentsOf: mapping.path).sealed(in: bundle)
      // A file that does not fit the versions is not worth sealing.
      let model = try sealed.mappingModel(in: bundle)
      let permissions = try FileSystem().status(of: mapping.path)?.permissions ?? .ownerReadWrite
      try FileSystem().writeAtomically(
        Array(sealed.text.utf8), to: mapping.path, replacing: true, permissions: permissions)
      let (source, destination) = (model.sourceChecksum, model.destinationChecksum)
      try output.print(
        ["mapping": PathText(mapping.path), "source": source, "destination": destination] as JSON.Object,
        "\(printable(mapping.path.string)): sealed\n  source       \(source)\n  destination  \(destination)\n")
    }
  }
}

extension MappingModel {
  fileprivate var sourceChecksum: String { ManagedObjectModel.versionChecksum(of: sourceHashes) }
  fileprivate var destinationChecksum: String { ManagedObjectModel.versionChecksum(of: destinationHashes) }
}
