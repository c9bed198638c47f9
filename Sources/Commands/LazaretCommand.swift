public import ArgumentParser
import Lazaret

/// The command `lazaret`: configuration only; each verb is a file of its own.
public struct LazaretCommand: ParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "lazaret",
    abstract: "Keeps, examines and replaces Core Data, SwiftData and SQLite stores that do not open.",
    discussion: """
      Looking at a store never changes a byte of it. A store that has to make room is moved into quarantine, whole.

      \(ExitStatus.help)
      """,
    version: LibraryVersion.current,
    subcommands: [
      OpenCommand.self, InspectCommand.self, ModelCommand.self, QuarantineCommand.self, DemoCommand.self,
    ])

  public init() {}

  /// Runs the command line of this process, and ends the process.
  public static func start() -> Never {
    do {
      var command = try parseAsRoot(RawArguments.take())
      try command.run()
      exit()
    } catch {
      exit(withError: error)
    }
  }
}
