import ArgumentParser
import Lazaret
import Migration

/// `lazaret plan`: what a migration of a store would do.
struct PlanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Says what a migration would do to a store, step by step, and what it would lose.",
    usage: "lazaret plan <store> --model <model> [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it. Records are counted in the store as \
      it is, also for later steps.

      EXAMPLE
        lazaret plan Stores/App.sqlite --model App.xcdatamodeld

      EXIT CODES
        0   the migration would lose nothing, or there is nothing to do
        1   failed
        2   it would lose something, or could not be done; the output says what
        3   the store is unavailable: locked, forbidden, newer than the app
        64  the command line was wrong
      """)

  @OptionGroup var migration: MigrationArguments
  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try migration.bundle(json: output.json)
      let plan = try Migrator(bundle, logger: log.logger(json: output.json)).plan(
        migration.store.path, options: try migration.options(for: bundle))
      try plan.print(json: output.json)
    }
  }
}

extension MigrationPlan {
  /// Prints the plan.
  ///
  /// - Throws: the exit code 2 where it would lose something or could not be carried out.
  func print(json: Bool) throws {
    Terminal.standardOutput.write(json ? JSONText.pretty(self) : MigrationPlanText(self).text)
    guard isPossible, losses.isEmpty else { throw ExitStatus.doubtful }
  }
}
