import ArgumentParser
import Lazaret
import Migration
import Platform
import SQLiteFormat
import SystemPackage

struct MigrateCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Brings a store to the current version of the model, on a copy, verified.",
    usage: "lazaret migrate <store> --model <model> [--output <file>] [<options>]",
    discussion: """
      The original is not touched until the migrated copy has passed every check; then it is moved, whole, into \
      Backups/ under the home folder. A migration that was interrupted, also by Ctrl-C, goes on from its last finished step.

      EXAMPLES
        lazaret migrate Stores/App.sqlite --model App.xcdatamodeld
        lazaret migrate Old.sqlite --model App.xcdatamodeld --output New.sqlite

      EXIT CODES
        0   done, or nothing to do
        1   failed, or cannot be done; the store is as it was
        2   done, but more was lost than the model drops; the output says what
        3   the store is unavailable: locked, forbidden, no space, newer than the app
        64  the command line was wrong
      """)

  @OptionGroup var migration: MigrationArguments

  @Option(
    name: .output,
    help: ArgumentHelp("Write the migrated store here and leave the original where it is.", valueName: "file"))
  var out: PathArgument?

  @Flag(help: "Say what would be done, as plan does, and touch nothing.")
  var dryRun = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func validate() throws { try out?.requirePlace() }

  func perform() throws {
    try refuseNoStore(at: migration.store.path, to: "migrate the store")
    let bundle = try migration.bundle(json: output.json)
    var migrator = Migrator(bundle, logger: log.logger(json: output.json))
    migrator.keepOriginals()
    let planned = PlannedRemovals(bundle, target: migration.to, migration.way)
    var options = try migration.options(for: bundle)
    options.output = out?.path
    let home = home.of(store: migration.store.path)
    options.home = home.path
    // A copy for another user leaves no file beside the store.
    options.isRecorded = out == nil || home.reason != .store
    if dryRun {
      return try migration.finding(in: bundle) { try migrator.plan(migration.store.path, options: options) }.print(
        output, isWhole: output.verbose, planned: planned)
    }
    let line = StepProgress(of: migration.store.path, to: out?.path)
    line.watch(&options) { step, number, count in "Step \(number) of \(count): \(printable(step))" }
    let result = try migration.finding(in: bundle) {
      try migrator.migrate(migration.store.path, options: options)
    }
    line.clear()
    try output.print(result, MigrationText(result).text)
    if result.steps.contains(where: {
      !$0.losses.allSatisfy(planned.contains) || !$0.leftBehind.isEmpty || !$0.filteredRows.isEmpty
    }) {
      throw ExitStatus.doubtful
    }
  }
}

struct MigrationText {
  let text: String

  init(_ result: Migrator.Result) {
    var lines = "\(printable(result.store.string)): "
    if let repair = result.repair {
      lines += repair.isNothing ? "" : "repaired (\(repair.words) added)\(result.steps.isEmpty ? "" : ", ")"
    }
    guard !result.steps.isEmpty else {
      if result.repair != nil {
        text = lines + "\n" + (result.backup.map { "\n  The original: \(printable($0.string))\n" } ?? "")
        return
      }
      let outcome =
        result.backup == nil
        ? "of that version already; there was nothing to migrate" : "an interrupted migration was finished"
      text = lines + outcome + "\n"
      return
    }
    lines += "migrated in \(counted(Int64(result.steps.count), "step"))"
    if result.resumedSteps > 0 { lines += ", \(result.resumedSteps) of them by an earlier run" }
    lines += "\n"
    for step in result.steps {
      let rows = step.entities.reduce(0) { $0 + $1.rows }
      lines += "\n  \(printable(step.step)): \(counted(Int64(rows), "record"))\n"
      lines += MigrationPlanText.list("Lost", step.losses)
      for name in step.leftBehind { lines += "    Left behind, since it no longer fits: \(printable(name))\n" }
    }
    if let metrics = result.metrics { lines += "\n  \(printable(metrics.words))\n" }
    if let backup = result.backup { lines += "\n  The original: \(printable(backup.string))\n" }
    text = lines
  }
}
