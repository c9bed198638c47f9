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
    JSON.Object(
      self,
      ["undo": try quarantines.undo(of: self), "evidence": check.map { JSON.Object($0, ["hint": $0.hint(on: self)]) }])
  }

  /// The same, with the command as things are now.
  func payload(in quarantines: Quarantines) throws -> JSON.Object { payload(undo: try quarantines.undo(of: self)) }
}

extension EvidenceCheck {
  /// What to do where files are not as they were quarantined; nil where nothing was found.
  func hint(on store: QuarantinedStore) -> String? {
    if isMissing {
      return "Put its files back from a copy, under their names; what is left of it is removed with: "
        + "lazaret quarantine discard \(shellQuoted(store.files.main))"
    }
    if differences.isEmpty { return nil }
    return checked == .size
      ? "Compare the contents with: lazaret quarantine show \(shellQuoted(store.files.main))"
      : "Where a copy of the files is as the receipt says, put that in their place."
  }

  /// What was compared and found, in a sentence.
  var sentence: String {
    if isMissing { return "Its files are missing; only its receipt is left." }
    if let words { return words }
    return checked == .size
      ? "Its files are there with the sizes that they had." : "Its files are as they were quarantined."
  }
}
