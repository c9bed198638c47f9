public import ArgumentParser
public import Migration
import StoreCoordination

/// The way that a migration takes from the store's version to the one it leads to.
struct MigrationWayOptions: ParsableArguments {
  @Flag(help: "One step from the store's version to the last, whatever mappings and versions lie between.")
  var direct = false

  @Option(
    help: ArgumentHelp(
      "A version that the way goes through; may be given several times, in order.", valueName: "version"))
  var via: [String] = []

  @Option(
    name: .customLong("on-migration-loss"),
    help: ArgumentHelp(
      "What to do where only renaming identifiers differ and the data of an entity or property of the same name would be deleted: refuse (the store stays as it is), or migrate.",
      valueName: "remedy"))
  var lossRemedy: LossRemedy = .refuse

  @OptionGroup var mappings: MappingOptions

  /// The options of a migration along this way.
  func options(for bundle: ModelBundle) throws -> Migrator.Options {
    var options = Migrator.Options()
    options.isDirect = direct
    options.via = via
    options.whenMigrationLoses = lossRemedy
    options.mappings = try mappings.load(for: bundle)
    return options
  }
}

extension LossRemedy: ExpressibleByArgument {}
