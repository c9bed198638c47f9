import ArgumentParser
import Migration
import StoreCoordination

/// Which store is migrated, and along which versions.
struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(help: "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, or a store that carries it.")
  var model: PathArgument

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp(
      "The version to lead to, which may be an older one; the current one if not given.", valueName: "version"))
  var to: String?

  @OptionGroup var way: MigrationWayOptions

  /// The model's versions.
  func bundle(json: Bool) throws -> ModelBundle { try versionOrder.load(model.path, to: to, json: json) }

  /// The options that plan and migration have in common.
  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = try way.options(for: bundle)
    options.version = to
    return options
  }
}
