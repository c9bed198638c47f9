import ArgumentParser
import Lazaret

/// `lazaret backup`: the backups of stores.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Takes, lists, proves, restores and prunes backups.",
    discussion: ExitStatus.help,
    subcommands: [BackupRestoreCommand.self, BackupPruneCommand.self, BackupUndeleteCommand.self])
}
