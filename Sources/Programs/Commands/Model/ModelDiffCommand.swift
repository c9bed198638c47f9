import ArgumentParser
import Migration
import ModelReview
import StoreCoordination

/// `lazaret model diff`: what a migration from one version to another would do.
struct ModelDiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Prints the mapping that is inferred between two versions, and what it would lose.",
    usage: "lazaret model diff <model> [--from <version>] [--to <version>] [<options>]",
    discussion: """
      Compares the version before the current one with the current one unless told otherwise. No store is needed.

      EXAMPLE
        lazaret model diff App.xcdatamodeld --from V1 --to V2

      EXIT CODES
        0   nothing would be lost, and nothing is refused
        1   failed
        2   something would be lost, or is refused; the output says what
        3   the model is out of reach
        64  the command line was wrong
      """)

  @OptionGroup var options: ModelOptions

  @Option(help: ArgumentHelp("The version to start from; the one before the other if not given.", valueName: "version"))
  var from: String?

  @Option(help: ArgumentHelp("The version to lead to; the current one if not given.", valueName: "version"))
  var to: String?

  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try options.load(json: output.json)
      let destination = try to.map { try version($0, of: bundle) } ?? bundle.current
      let source = try from.map { try version($0, of: bundle) } ?? before(destination, in: bundle)
      let inference = MappingInference(from: source.model, to: destination.model)
      try output.print(
        inference.payload(from: source.name, to: destination.name),
        MappingListing(inference, from: source.name, to: destination.name).text)
      guard inference.refusals.isEmpty, inference.mapping.losses.isEmpty else { throw ExitStatus.doubtful }
    }
  }

  /// The version before another; of a model with one version that one.
  ///
  /// - Throws: `unknown-version` where none comes before it, so that no version is compared with itself unasked.
  private func before(_ version: ModelVersion, in bundle: ModelBundle) throws -> ModelVersion {
    let place = bundle.versions.firstIndex { $0.name == version.name }
    if let place, place > 0 { return bundle.versions[place - 1] }
    let names = (bundle.versions + bundle.unorderedVersions).map { printable($0.name) }
    guard names.count > 1 else { return version }
    throw MigrationError(
      .unknownVersion, operation: "compare the versions", path: options.model.path,
      detail: """
        no version is known to come before "\(printable(version.name))"; the model has \(names.joined(separator: ", "))
        """,
      hint: "Name the version to start from with --from.")
  }

  private func version(_ name: String, of bundle: ModelBundle) throws -> ModelVersion {
    if let version = bundle.version(named: name) { return version }
    if let unreadable = bundle.unreadableVersions.first(where: { $0.name == name }) { throw unreadable.error }
    throw MigrationError(
      .unknownVersion, operation: "compare the versions", path: options.model.path,
      detail: """
        the model has no version "\(printable(name))"; it has \
        \(bundle.versions.map { printable($0.name) }.joined(separator: ", "))
        """,
      hint: Likeness.hint(
        "Name a version that the model has.", for: [name], among: bundle.versions.map { printable($0.name) }))
  }
}
