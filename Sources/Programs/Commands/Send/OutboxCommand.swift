import ArgumentParser
import Sending
import StoreCoordination

/// `lazaret outbox`: bundles on their way.
struct OutboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "outbox", abstract: "Lists, sends and takes back the bundles that wait to be sent.",
    discussion: """
      What lazaret send could not send at once waits in Outbox/ of the home. Nothing is sent from there by itself.

      \(ExitStatus.help)
      """,
    subcommands: [
      OutboxListCommand.self, OutboxSendCommand.self, OutboxRetryCommand.self, OutboxCancelCommand.self,
      OutboxPruneCommand.self,
    ],
    defaultSubcommand: OutboxListCommand.self)
}
