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

extension QuarantinedStoreJSON {
  /// A quarantined store, with the command that undoes its quarantine as things are now.
  init(_ store: QuarantinedStore, in quarantines: Quarantines) throws {
    self.init(store, undo: try quarantines.undo(of: store))
  }
}

/// A quarantined store as the verbs print it.
struct QuarantinedStoreJSON: Encodable {
  var id: String
  var store: PathText
  var receiptPath: PathText
  var receipt: Receipt?

  /// The command that puts the store back where it came from.
  var undo: String?

  init(_ store: QuarantinedStore, undo: String?) {
    self.undo = undo
    id = store.id
    self.store = PathText(store.files.main)
    receiptPath = PathText(store.receiptPath)
    receipt = store.receipt
  }
}
