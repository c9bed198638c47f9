import ArgumentParser
import Lazaret
import Salvage

/// `lazaret salvage`: gets the rows out of a damaged store.
struct SalvageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Gets every row that is still in the bytes of a store into a new database.",
    usage: "lazaret salvage <store> [--model <model> | --schema <sql>] -o <out> --raw [<options>]",
    discussion: """
      Touches nothing of the store: it is only read, byte by byte, and never opened as a database.

      With --raw the rows are written as they are found, in the version they were in. Rows that are not live, or not \
      certain, are in tables of their own, whose names begin with lazaret_; lazaret_provenance says where each one is \
      from and why it is doubtful.

      Exits with 2 where anything was lost or is doubtful.

      EXAMPLE
        lazaret salvage Broken.sqlite --model App.xcdatamodeld --raw -o Rescued.sqlite

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(help: "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom.")
  var model: PathArgument?

  @Option(help: "The schema of a plain SQLite store, a .sql file.")
  var schema: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(name: [.customShort("o"), .customLong("output")], help: "The new database; nothing may have its name.")
  var out: PathArgument

  @Flag(help: "Look for deleted rows too; they are kept apart.")
  var deleted = false

  @Flag(help: "Write the rows as found: nothing repaired, nothing migrated.")
  var raw = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard raw else { throw ValidationError("Only --raw is part of this version.") }
    guard model == nil || schema == nil else { throw ValidationError("Give a model or a schema, not both.") }
  }

  func run() throws {
    try report(json: output.json) {
      let known = try (model ?? schema).map { try AppModel.load($0.path, order: versionOrder.order) }
      let line = ProgressLine()
      let options = Salvager.Options(findsDeleted: deleted) { phase, done, total in
        line.show(phase.words, done, of: total)
        return true
      }
      let report = try Salvager().salvageRaw(
        store.path, to: out.path, model: known.map(SalvageModel.init), options: options)
      line.clear()
      Terminal.standardOutput.write(
        output.json
          ? JSONText.pretty(SalvageJSON(report, store: store.path, output: out.path))
          : SalvageText(report, store: store.path, output: out.path).text)
      if !report.isComplete { throw ExitStatus.doubtful }
    }
  }
}

extension SalvageModel {
  fileprivate init(_ model: AppModel) {
    switch model {
    case .coreData(let bundle): self = .coreData(bundle)
    case .sqlite(let script, _): self = .sqlite(script)
    }
  }
}

extension SalvagePhase {
  fileprivate var words: String {
    switch self {
    case .survey: "Reading"
    case .placement: "Placing"
    case .rows: "Salvaging"
    }
  }
}
