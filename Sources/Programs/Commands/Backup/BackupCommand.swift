import ArgumentParser
import StoreCoordination

/// `lazaret backup`: compressed copies of stores that can be verified and restored.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Takes, lists, verifies, restores and prunes backups of stores.",
    discussion: """
      Backups lie in Backups/<store>/ of the home, each under b- and the time it was taken. Any gunzip opens the \
      .sqlite.gz of a full one.

      \(ExitStatus.help)
      """,
    subcommands: [
      BackupListCommand.self, BackupCreateCommand.self, BackupVerifyCommand.self, BackupRestoreCommand.self,
      BackupPruneCommand.self, BackupReleaseCommand.self, BackupUndeleteCommand.self,
    ],
    defaultSubcommand: BackupListCommand.self)
}
