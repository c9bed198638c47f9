import ArgumentParser
import StoreCoordination

/// `lazaret model`: what a model says.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Shows models, compares their versions and checks them.",
    discussion: ExitStatus.help,
    subcommands: [
      ModelShowCommand.self, ModelHashesCommand.self, ModelDiffCommand.self, ModelLintCommand.self,
      ModelVerifyCommand.self, ModelSealCommand.self, ModelFreezeCommand.self, ModelExportCommand.self,
    ])
}

/// The model that a verb is about.
struct ModelOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources (a file or a folder), a store, backup or bundle that carries its model, or a folder of these, a version each.",
      valueName: "model"))
  var model: PathArgument

  @OptionGroup var versionOrder: VersionOrderOptions

  func load(json: Bool) throws -> ModelBundle {
    try loaded(json: json).bundle
  }

  /// The same with what Swift sources declare, for naming their lines.
  func loaded(json: Bool) throws -> LoadedModel {
    try versionOrder.loaded(model.path, json: json)
  }
}
