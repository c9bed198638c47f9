import ArgumentParser
import StoreCoordination

/// `lazaret inbox`: who may send bundles to this home, and what is kept of them.
struct InboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox",
    abstract: "Says who may send bundles here, and which are kept; lazaret serve --inbox receives them.",
    discussion: ExitStatus.help,
    subcommands: [InboxTokenCommand.self, InboxPruneCommand.self, InboxRemovedCommand.self, InboxBatchCommand.self])
}

/// `lazaret inbox token`.
struct InboxTokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Makes, lists and revokes the tokens of senders.", discussion: ExitStatus.help,
    subcommands: [InboxTokenNewCommand.self, InboxTokenListCommand.self, InboxTokenRevokeCommand.self],
    defaultSubcommand: InboxTokenListCommand.self)
}
