public import ArgumentParser
import Backup
import Inbox
import Lazaret
import ObjectStorage
import Platform
import SQLiteFormat
import Salvage
import SupportBundle
import Zstandard

/// The command `lazaret`.
public struct LazaretCommand: ParsableCommand {
  /// The name, the help and the verbs.
  public static let configuration = CommandConfiguration(
    commandName: "lazaret",
    abstract: "Keeps, examines and replaces Core Data, SwiftData and SQLite stores that do not open.",
    discussion: """
      Looking at a store never changes a byte of it. A store that has to make room is moved into quarantine, whole.

      EXAMPLES
        lazaret inspect Stores/App.sqlite --model App.xcdatamodeld
        lazaret open Stores/App.sqlite --model App.xcdatamodeld
        lazaret salvage Broken.sqlite --model App.xcdatamodeld -o Rescued.sqlite
        lazaret export Broken.sqlite -o .

      ENVIRONMENT
        LAZARET_HOME   the home of verbs that are not given --home
        LAZARET_MODEL  the model of verbs that are not given --model
        NO_COLOR       if not empty, no colours unless --color always is said

      \(ExitStatus.help)
      """,
    version: LibraryVersion.current,
    subcommands: [
      OpenCommand.self, InspectCommand.self, PlanCommand.self, MigrateCommand.self, RepairCommand.self,
      SalvageCommand.self, KitCommand.self, QuarantineCommand.self, BackupCommand.self, ModelCommand.self,
      ExportCommand.self, BundleCommand.self, KeyCommand.self, SendCommand.self, OutboxCommand.self, InboxCommand.self,
      WorkCommand.self,
      DamageCommand.self, ServeCommand.self, DemoCommand.self, LicencesCommand.self, ManualCommand.self,
      InboxWorkerCommand.self,
    ])

  /// Makes the command, for the parser.
  public init() {}

  /// Runs the command line and ends the process.
  public static func start() -> Never {
    RawArguments.requireSystemTellsThem()
    FreedMemory.goesBack()
    ZstandardSupport.give(ZstandardLibrary())
    let words = CommandWords(RawArguments.take())
    let arguments = words.sorted
    do {
      try CommandWords(arguments).check(under: self)
      var command = try parseAsRoot(arguments)
      let fileSystem = FileSystem()
      PrivateFolder.removeRemains(fileSystem) { result in
        // The next run with the same result finishes the rest.
        try? EarlierRuns.finish(at: result)
        try? Salvager.clearInterrupted(result, in: fileSystem)
      }
      try command.run()
      exit()
    } catch {
      end(with: error, json: arguments.contains("--json"))
    }
  }

  /// Prints the parser's message, such as help, version or usage error, and exits.
  private static func end(with error: any Error, json: Bool) -> Never {
    let unknown = error as? CommandWords.UnknownVerb
    let code = unknown == nil ? exitCode(for: error) : ExitStatus.usage
    if error is ExitCode {
      // The verb has reported its error.
    } else if code.isSuccess {
      Terminal.standardOutput.writeContent(fullMessage(for: error) + "\n")
    } else if json {
      let usage: JSON.Value = [
        "error": [
          "code": "usage", "operation": "read the command line",
          "detail": .string(unknown?.message ?? CommandWords.suggesting(message(for: error))),
          "hint": "Say --help after the verb to see how it is used.",
        ]
      ]
      Terminal.standardError.write(usage.text + "\n")
    } else {
      Terminal.standardError.write((unknown?.text ?? CommandWords.suggesting(fullMessage(for: error))) + "\n")
    }
    if code.isSuccess, Terminal.hasLostOutput { exit(withError: ExitStatus.failed) }
    exit(withError: code)
  }
}

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
  func payload(undo: String?) -> JSON.Object { JSON.Object(self, ["undo": undo]) }

  func payload(in quarantines: Quarantines, _ check: EvidenceCheck?) throws -> JSON.Object {
    JSON.Object(self, ["undo": try quarantines.undo(of: self), "evidence": check?.payload(on: self)])
  }

  func payload(in quarantines: Quarantines) throws -> JSON.Object { payload(undo: try quarantines.undo(of: self)) }
}

struct OutboxPruneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune", abstract: "Removes what was sent or taken back more than 90 days ago.",
    discussion: """
      Also ends what killed runs left. Receipts that were noted with quarantined stores stay there. What waits, or was \
      refused, stays until it is sent or taken back.

      EXAMPLE
        lazaret outbox prune --home Stores

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let removed = try Outbox(home: try home.current().existing(to: "prune the outbox").path).settle()
      try output.print(["removed": removed], "\(counted(Int64(removed), "entry", "entries")) removed.\n")
    }
  }
}

struct OutboxRetryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry", abstract: "Sends one bundle of the outbox now, whatever ended its last try.",
    usage: "lazaret outbox retry <id> [--to <url>] [--token-file <file>] [--wait] [<options>]",
    discussion: ExitStatus.help)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.")
  var id: String

  @Option(
    help: ArgumentHelp(
      "The whole address, where it has a secret part behind its path, which is not kept.", valueName: "url"))
  var to: String?

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var persistence: PersistenceOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let address = try to.map { text in try CommandLineSlip.telling { try ReceiverAddress(text) } }
      let home = try home.current().existing(to: "send what waits in the outbox")
      let outbox = Outbox(home: home.path)
      try outbox.settle()
      let entry = try home.sending { try outbox.entry(id) }
      // A named file comes first, then the remembered one, then the environment.
      let isRemembered = token.tokenFile == nil && entry.tokenFile != nil
      let given = isRemembered ? nil : try token.token()
      let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
      let outcome = try home.sending { try sender.sendShowing(entry.id, as: given, to: address) }
      try SendingPresentation(json: output.json).tell(outbox.entry(entry.id), outcome)
    }
  }
}
