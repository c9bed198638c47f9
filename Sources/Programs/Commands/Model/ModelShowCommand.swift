import ArgumentParser
import ModelPresentation
import StoreCoordination
import SwiftModelSources

/// `lazaret model show`: a model that a person can read.
struct ModelShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Prints a model's entities, attributes, relationships, indexes and constraints.",
    usage: "lazaret model show <model> [--version-name <name>] [<options>]",
    discussion: """
      Shows the current version unless told otherwise. Versions that cannot be read are named at the end.

      What Swift sources leave open is named with file and line. Where something is missing for it, the exit code is 2.

      EXAMPLE
        lazaret model show App.xcdatamodeld

      \(ExitStatus.help)
      """)

  @OptionGroup var options: ModelOptions

  @Option(name: .customLong("version-name"), help: ArgumentHelp("The version to show.", valueName: "name"))
  var versionName: String?

  @Flag(help: "Show every version.")
  var all = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if all, versionName != nil { throw ValidationError("Give --all or --version-name, not both.") }
  }

  func run() throws {
    try report(json: output.json) {
      let isSource = try SwiftSources.isSource(options.model.path)
      let loaded =
        try isSource
        ? options.versionOrder.loadWhole(options.model.path)
        : LoadedModel(bundle: options.load(json: output.json))
      let bundle = loaded.bundle
      let versions: [ModelVersion]
      if all {
        versions = bundle.versions
      } else if let versionName {
        guard let version = bundle.version(named: versionName) else {
          throw ModelError(
            .versionOrder, path: options.model.path,
            detail:
              "it has no version \"\(printable(versionName))\"; it has \(bundle.versions.map { printable($0.name) }.joined(separator: ", "))"
          )
        }
        versions = [version]
      } else {
        versions = [bundle.current]
      }
      try output.print(
        JSON.Object(bundle.payload(versions), ["sources": loaded.sources]),
        ModelListing(bundle, versions: versions, width: min(100, Terminal.standardOutput.width ?? 80)).text)
      if isSource, !output.json { try loaded.tell(json: false) }
      guard versions.allSatisfy(\.isComplete) else { throw ExitStatus.doubtful }
    }
  }
}
