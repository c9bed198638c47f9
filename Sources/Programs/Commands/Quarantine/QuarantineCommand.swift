import ArgumentParser
import StoreCoordination

/// `lazaret quarantine`: the stores that were set aside.
struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine", abstract: "Lists, adds, shows, salvages, puts back and removes quarantined stores.",
    discussion: ExitStatus.help,
    subcommands: [
      QuarantineListCommand.self, QuarantineShowCommand.self, QuarantineAddCommand.self,
      QuarantineSalvageCommand.self, QuarantineReleaseCommand.self, QuarantineDiscardCommand.self,
    ], defaultSubcommand: QuarantineListCommand.self)
}

extension QuarantinedStore {
  /// What programs are told of it, with the command that puts it back where it came from.
  func payload(undo: String?) -> JSON.Object { JSON.Object(self, ["undo": undo]) }

  /// The same, with what a look at its files found.
  func payload(in quarantines: Quarantines, _ check: EvidenceCheck?) throws -> JSON.Object {
    JSON.Object(self, ["undo": try quarantines.undo(of: self), "evidence": check?.payload(on: self)])
  }

  /// The same, with the command as things are now.
  func payload(in quarantines: Quarantines) throws -> JSON.Object { payload(undo: try quarantines.undo(of: self)) }
}
