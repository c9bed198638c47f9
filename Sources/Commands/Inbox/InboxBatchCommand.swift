import ArgumentParser
import Foundation
import Inbox
import Lazaret
import Platform
import SystemPackage

struct InboxBatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "batch", abstract: "Salvages the bundles of a damage again, and says what got better.",
    discussion: ExitStatus.help, subcommands: [InboxBatchNewCommand.self, InboxBatchShowCommand.self])
}

struct InboxBatchNewCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Begins to salvage the bundles of a damage again.",
    usage: "lazaret inbox batch new <damage> [--home <dir> | --database <url>] [<options>]",
    discussion: """
      Takes the bundles of the damage whose last result is of an earlier version of this software. Their salvages wait for \
      the workers of lazaret serve --inbox or lazaret work, which have to be of this version. Earlier results stay; the best \
      is the one to install.

      \(ExitStatus.help)
      """)

  @Argument(help: "The damage: its twelve digits, as the pages show them.")
  var damage: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let inbox = try database.inbox(in: home, to: "salvage its bundles again")
    guard try inbox.records.group(damage) != nil else {
      throw InboxError(.notFound, operation: "salvage the bundles again", detail: "no such damage was seen")
    }
    let batch = try inbox.salvageAgain(damage)
    try output.print(
      ["batch": JSON.orNull(batch)] as JSON.Object,
      batch.map { batch in
        "Batch \(batch.number): \(counted(Int64(batch.total), "bundle")) will be salvaged again with version "
          + "\(batch.version). See: lazaret inbox batch show \(batch.number)\n"
      } ?? "Every store of this damage was salvaged by version \(LibraryVersion.current).\n")
  }
}

struct InboxBatchShowCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Says how far a batch is, and what got better and what worse.",
    usage: "lazaret inbox batch show <number> [--home <dir> | --database <url>] [<options>]",
    discussion: """
      Exits with 2 where a store came out worse, or mixed.

      \(ExitStatus.help)
      """)

  @Argument(help: "The number of the batch.")
  var number: Int64

  @Option(
    help: ArgumentHelp("Only bundles with this change: worse, mixed, better, same or first.", valueName: "change"))
  var change: SalvageChange?

  @Option(help: ArgumentHelp("Only bundles behind this one, as \"next\" of --json says.", valueName: "bundle"))
  var after: String?

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  private static let maximum = 1000

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "look at the batch").path }
    guard let batch = try records.batch(number) else {
      throw InboxError(.notFound, operation: "look at the batch", detail: "there is no such batch")
    }
    let found = try records.items(of: number, change: change, after: after, limit: Self.maximum + 1)
    let items = Array(found.prefix(Self.maximum))
    let next = found.count > items.count ? items.last?.bundle : nil
    try output.print(
      ["batch": batch, "items": items, "next": JSON.orNull(next)] as JSON.Object,
      content: text(batch, items, next))
    if batch.changes[.worse, default: 0] + batch.changes[.mixed, default: 0] > 0 { throw ExitStatus.doubtful }
  }

  private func text(_ batch: SalvageBatch, _ items: [SalvageBatchItem], _ next: String?) -> String {
    var table = TextTable(
      ["bundle", "change", "recovered", "doubtful", "lost", "before", "doubtful", "lost"],
      numericColumns: [2, 3, 4, 5, 6, 7])
    for item in items {
      table.append(
        [item.bundle, item.change?.rawValue ?? "not done"] + Self.cells(item.after) + Self.cells(item.before))
    }
    var text = items.isEmpty ? "" : table.text()
    text += "  \(grouped(batch.total - batch.remaining)) of \(counted(Int64(batch.total), "bundle")) ended; "
    text += SalvageChange.allCases.map { "\(grouped(batch.changes[$0] ?? 0)) \($0.rawValue)" }.joined(separator: ", ")
    text += ", \(grouped(batch.failed)) failed, \(grouped(batch.unknown)) unknown\n"
    text += "  recovered \(grouped(batch.before.recovered)) before, \(grouped(batch.after.recovered)) now; "
    text += "doubtful \(grouped(batch.before.doubtful)) and \(grouped(batch.after.doubtful)); "
    text += "lost \(grouped(batch.before.lost)) and \(grouped(batch.after.lost))\n"
    if let next { text += "  There are more: --after \(next)\n" }
    return text
  }

  private static func cells(_ count: SalvageCount?) -> [String] {
    guard let count else { return ["–", "–", "–"] }
    return [grouped(count.recovered), grouped(count.doubtful), grouped(count.lost)]
  }
}

extension SalvageChange: ExpressibleByArgument {}

struct DatabaseOptions: ParsableArguments {
  static let variable = "LAZARET_DATABASE"

  @Option(
    help: ArgumentHelp(
      "The PostgreSQL database with the inbox's records: postgresql://HOST/DATABASE, without a password. If not given, what LAZARET_DATABASE says, else a file in the home.",
      valueName: "url"))
  var database: String?

  func validate() throws {
    do throws(InboxError) {
      if let database { _ = try PostgresAddress(database, from: .commandLine) }
    } catch {
      // Do not repeat the address: it may contain a password.
      throw ValidationError("--database: \(error.detail). \(error.hint)")
    }
  }

  /// - Throws: `inbox-address` for the environment's.
  func address() throws -> PostgresAddress? {
    if let database { return try PostgresAddress(database, from: .commandLine) }
    guard let text = ProcessInfo.processInfo.environment[Self.variable], !text.isEmpty else { return nil }
    return try PostgresAddress(text, from: .environment)
  }

  func records(in home: () throws -> FilePath) throws -> any InboxRecords {
    if let address = try address() { return PostgresInboxRecords(try PostgresDatabase(address, connections: 1)) }
    return try Inbox(home: home()).records
  }

  /// - Parameter operation: an infinitive phrase for errors.
  func inbox(in home: HomeOptions, to operation: String) throws -> Inbox {
    let home = try FileSystem().realPath(home.current().existing(to: operation).path)
    guard let address = try address() else { return try Inbox(home: home) }
    return try Inbox(home: home, database: PostgresDatabase(address, connections: 1), makesFolders: false)
  }
}
