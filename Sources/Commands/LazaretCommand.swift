public import ArgumentParser
import Backup
import Lazaret
import Platform
import Salvage
import Zstandard

#if canImport(Glibc)
  import CLinux
#endif

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

      \(ExitStatus.codes())
      """, version: LibraryVersion.current,
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
    RawArguments.requireProcFS()
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

enum FreedMemory {
  /// Returns large blocks to the system when freed.
  ///
  /// Once it has freed a block of up to 32 MB, the GNU C library keeps such blocks: on a store of 1 GB that costs some
  /// 50 MB.
  ///
  /// - Parameter bytes: the smallest block size. Backups use 1 MiB blocks, whose pages would be cleared each time.
  static func goesBack(from bytes: Int32 = 4 << 20) {
    #if canImport(Glibc)
      lazaret_give_back_memory(bytes)
    #endif
  }
}
