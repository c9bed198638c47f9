import ArgumentParser
import Migration
import StoreCoordination

/// Which store is migrated, and along which versions.
struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main file.")
  var store: PathArgument

  @OptionGroup var model: ModelOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp(
      "The version to lead to, which may be an older one; the current one if not given.", valueName: "version"))
  var to: String?

  @OptionGroup var way: MigrationWayOptions

  func bundle(json: Bool) throws -> ModelBundle { try versionOrder.load(model.path, to: to, json: json) }

  /// Runs what goes along the versions; the error for one that the model lacks names the one that was likely meant.
  func finding<Result>(in bundle: ModelBundle, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as MigrationError where error.kind == .unknownVersion {
      let names = (bundle.versions + bundle.unorderedVersions).map { printable($0.name) }
      error.hint = Likeness.hint(error.hint, for: [to].compactMap(\.self) + way.via, among: names)
      throw error
    }
  }

  /// The options that plan and migration have in common.
  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = try way.options(for: bundle)
    options.version = to
    return options
  }
}
