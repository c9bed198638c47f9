import ArgumentParser
import Lazaret
import Migration
import Platform
import SystemPackage

/// `lazaret repair`: restores missing parts of a store's own model.
struct RepairCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "repair", abstract: "Adds what a sound store lacks of its own version of the model, on a copy, verified.",
    usage: "lazaret repair <store> --model <model> [--data] [--dry-run] [<options>]",
    discussion: """
      Adds missing columns, tables, join tables, indexes, triggers and rows of Z_PRIMARYKEY, raises Z_MAX to the largest \
      key, and replaces a cached model of another version. No value that is there changes, and nothing of the app's goes. \
      A unique index whose records collide is left out, and named. The store stays at its version.

      References that lead to no record are counted and stay. With --data records and references are put right as \
      well; restoring the original undoes it.

      The original is not touched until the repaired copy has passed every check; then it is moved, whole, into Backups/ \
      under the home folder. A repair that was interrupted is begun again.
      """, examples: "lazaret repair Stores/App.sqlite --model App.xcdatamodeld --dry-run",
    "lazaret repair Stores/App.sqlite --model App.xcdatamodeld",
    exitCodes: ExitStatus.codes(
      done: "done, or nothing to do", failed: "failed, refused, or damaged; the store is as it was",
      doubtful: "done, but something was not added, was set aside, or refers to no record; the output says what"))

  @Argument(help: "The store's main file.") var store: PathArgument

  @OptionGroup var model: ModelOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Flag(
    help:
      "Put records and references right too: dangling references and pairs, one-sided relationships, duplicates, mandatory values. What is taken out lies in a file beside the original."
  )
  var data = false

  @Flag(help: "Say what would be done, by doing it to a private copy, and touch nothing.")
  var dryRun = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func validate() throws {
    let schema = try model.path
    guard schema.extension?.lowercased() == "sql" else { return }
    throw ValidationError(
      "A plain SQLite store is not repaired: its app's migrator owns the schema. "
        + "lazaret inspect \(shellQuoted(store.path)) --model \(shellQuoted(schema)) lists what it lacks.")
  }

  func perform() throws {
    try refuseNoStore(at: store.path, to: "repair the store")
    var migrator = Migrator(try versionOrder.load(model.path, json: output.json), logger: log.logger(json: output.json))
    migrator.keepOriginals()
    var options = Migrator.Options()
    options.repair = data ? .data : .structure
    let home = home.of(store: store.path)
    options.home = home.path
    options.isRecorded = true
    let line = StepProgress(of: store.path, to: nil)
    line.watch(&options) { _, _, _ in "Repairing" }
    let outcome =
      try dryRun
      ? RepairOutcome(store.path, dryRun: migrator.planRepair(store.path, options: options))
      : RepairOutcome(store.path, migrator.repair(store.path, options: options))
    line.clear()
    try output.print(outcome, outcome.text)
    if outcome.leavesSomething { throw ExitStatus.doubtful }
  }
}

extension RepairOutcome {
  fileprivate var text: String {
    var lines = "\(printable(store?.text ?? "")): "
    if changes.isEmpty {
      lines += leftOut.isEmpty ? "lacks nothing of its model; there is nothing to repair\n" : "nothing to add\n"
    } else {
      let version = version.map { "of version \(printable($0))" } ?? "of a model of its own"
      let made = dryRun ? "would be repaired" : "repaired"
      lines += "\(version), \(counted(Int64(rows), "record")); \(made)\n\n"
      for change in changes { lines += "  \(change.text)\n" }
    }
    if !leftOut.isEmpty {
      lines += "\n  \(dryRun ? "Would stay" : "Stays") as it is:\n"
      for remainder in leftOut { lines += "    \(remainder.wordsWithKeys)\n" }
    }
    if let backup { lines += "\n  The original: \(printable(backup.text))\n" }
    if let aside = setAside { lines += "  What was taken out: \(printable(aside.text))\n" }
    if dryRun { lines += "\n  Nothing was touched.\n" }
    return lines
  }
}
