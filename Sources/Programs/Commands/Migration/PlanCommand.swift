import ArgumentParser
import Migration
import StoreCoordination

/// `lazaret plan`: what a migration of a store would do.
struct PlanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Says what a migration would do to a store, step by step, and what it would lose.",
    usage: "lazaret plan <store> --model <model> [--all] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it. Records are counted in the store as \
      it is. Where that does not tell what a step comes to (a mapping's expressions, records that an earlier step makes), \
      the steps are tried on a private copy among the temporary files, which takes as long as the migration.

      EXAMPLE
        lazaret plan Stores/App.sqlite --model App.xcdatamodeld

      EXIT CODES
        0   the migration would lose nothing, or there is nothing to do
        1   failed
        2   it would lose more than the model drops, could not be done, or that
            is not known; the output says what
        3   the store is unavailable: locked, forbidden, newer than the app
        64  the command line was wrong
      """)

  @OptionGroup var migration: MigrationArguments

  @Flag(help: "Print everything: each entity of each step, and every finding.")
  var all = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try migration.bundle(json: output.json)
      let line = ProgressLine()
      line.show("Looking at the store, and trying each step on a copy …")
      let plan = try migration.finding(in: bundle) {
        try Migrator(bundle, logger: log.logger(json: output.json)).plan(
          migration.store.path, options: try migration.options(for: bundle))
      }
      line.clear()
      try plan.print(
        json: output.json, isWhole: all || output.verbose,
        planned: PlannedRemovals(bundle, target: migration.to, migration.way))
    }
  }
}

extension MigrationPlan {
  /// Prints the plan.
  ///
  /// - Throws: the exit code 2 where it would lose something that is not planned or could not be carried out, or where that is
  ///   not known.
  func print(json: Bool, isWhole: Bool, planned: PlannedRemovals) throws {
    Terminal.standardOutput.write(
      try json ? JSON.shown(self) : MigrationPlanText(self, isWhole: isWhole, planned: planned).text)
    guard isPossible, isCertain, losses.allSatisfy(planned.contains), steps.allSatisfy(\.leftBehind.isEmpty) else {
      throw ExitStatus.doubtful
    }
  }
}
