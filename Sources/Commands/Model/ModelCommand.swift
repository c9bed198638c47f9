import ArgumentParser
import Lazaret

/// `lazaret model`: what a model says.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Shows models, compares their versions and checks them.",
    discussion: ExitStatus.help,
    subcommands: [
      ModelShowCommand.self, ModelHashesCommand.self, ModelDiffCommand.self, ModelLintCommand.self,
      ModelVerifyCommand.self, ModelSealCommand.self, ModelFreezeCommand.self,
    ])
}

/// The model that a verb is about.
struct ModelOptions: ParsableArguments {
  @Argument(help: "The model: .xcdatamodeld, .xcdatamodel, .momd, .mom, or Swift sources (a file or a folder).")
  var model: PathArgument

  @OptionGroup var versionOrder: VersionOrderOptions

  func load(
    unreadableVersions policy: ModelBundle.UnreadableVersionPolicy = .refuse, json: Bool
  ) throws -> ModelBundle {
    try versionOrder.load(model.path, unreadableVersions: policy, json: json)
  }
}
