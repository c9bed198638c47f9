import ArgumentParser
import Lazaret
import Migration

/// Which store is migrated, and along which versions.
struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(help: "The app's model: .xcdatamodeld, .xcdatamodel, .momd or .mom.")
  var model: PathArgument

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: ArgumentHelp("The version to lead to; the current one if not given.", valueName: "version"))
  var to: String?

  @Flag(help: "Skip the versions between: one step from the store's version to the last.")
  var direct = false

  @OptionGroup var mappings: MappingOptions

  /// The model's versions.
  func bundle() throws -> ModelBundle { try ModelBundle.load(path: model.path, order: versionOrder.order) }

  /// The options that plan and migration have in common.
  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = Migrator.Options()
    options.version = to
    options.isDirect = direct
    options.mappings = try mappings.load(for: bundle)
    return options
  }
}
