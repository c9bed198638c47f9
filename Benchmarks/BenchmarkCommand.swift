import ArgumentParser
import SystemPackage

/// Measures what this project does with a large, healthy store.
///
/// Prints one line a measurement, with the ratio to its yardstick in the same run. Run it in a release build, on a quiet
/// machine: `Scripts/bench open`.
@main
struct BenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lazaret-benchmarks",
    abstract: "Measures examining, opening, migrating, salvaging, recovering and browsing stores.",
    subcommands: [
      OpeningBenchmarkCommand.self, MigrationBenchmarkCommand.self, MigrateOnceCommand.self,
      SalvageBenchmarkCommand.self, SalvageOnceCommand.self, RecoveryBenchmarkCommand.self,
      BrowsingBenchmarkCommand.self,
    ],
    defaultSubcommand: OpeningBenchmarkCommand.self)
}

/// Measures what examining and opening a large, healthy store costs.
struct OpeningBenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "open", abstract: "Measures examining and opening a large, healthy store.")

  @Argument(help: "The store; one of a million records is made if none is given.")
  var store: String?

  @Option(help: "The store's model; needed with a store.")
  var model: String?

  @Option(help: "How many times each measurement is taken; the median counts.")
  var rounds = 15

  @Option(help: "How many records the store that is made gets.")
  var records = 1_000_000

  @Option(help: "Measure a custom migration of the store that is made instead: sql or policy.")
  var customMigration: CustomMigrationBenchmark.Way?

  func validate() throws {
    if store != nil, model == nil { throw ValidationError("Give the store's model with --model.") }
    if rounds < 1 { throw ValidationError("Give at least one round.") }
  }

  func run() throws {
    let subject =
      try store.map { try BenchmarkStore(store: $0, model: model ?? "") } ?? BenchmarkStore(records: records)
    print("store: \(subject.path.string), \(subject.bytes / 1_000_000) MB")
    if let customMigration {
      let benchmark = CustomMigrationBenchmark(subject: subject, old: BenchmarkStore.garage, way: customMigration)
      return try benchmark.run()
    }
    try OpeningBenchmark(subject: subject, rounds: rounds).run()
    try InspectBenchmark(subject: subject, rounds: rounds).run()
    try PageReaderBenchmark(subject: subject, rounds: min(rounds, 5)).run()
  }
}

/// Measures migrations against hand-written SQL for the same change.
struct MigrationBenchmarkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Measures migrating generated stores against hand-written SQL.")

  @Argument(help: "Folders with store.sqlite and BenchHistory.xcdatamodeld, the smallest store first.")
  var folders: [String]

  @Option(help: "How many times each migration is run; the median counts.")
  var rounds = 3

  func validate() throws {
    if rounds < 1 { throw ValidationError("Give at least one round.") }
  }

  func run() throws {
    try MigrationBenchmark(subjects: folders.map { .init(folder: FilePath($0)) }, rounds: rounds).run()
  }
}
