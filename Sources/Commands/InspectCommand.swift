public import ArgumentParser
public import Lazaret

/// `lazaret inspect`: looks at a store and says what can be done with it.
struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Says what a store is, whether it is sound, and whether the app's model opens it.",
    usage: "lazaret inspect <store> [--model <model> …] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it.

      Exits with 2 for a damaged store, with 3 for one that cannot be had now or is encrypted.

      EXAMPLE
        lazaret inspect Stores/App.sqlite --model App.xcdatamodeld

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, or a .sql schema; of several, or of those in a folder, the one that fits the store is taken.",
      valueName: "model"))
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp(
      "How closely to look: at every page (full), or at some first (quick), and at all where these are damaged.",
      valueName: "depth"))
  var check: Examination.Depth = .full

  @Flag(inversion: .prefixedNo, help: "Count the records of each entity.")
  var counts = true

  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let model = try versionOrder.loadAppModel(model.map(\.path), fitting: store.path)
      let line = ProgressLine()
      let options = Examiner.Options(depth: check, countsRecords: counts) { done, total in
        line.show("Checking", Int64(done), of: Int64(total))
        return true
      }
      let examination = try Examiner().examine(store.path, model: model, options: options)
      line.clear()
      Terminal.standardOutput.write(
        output.json
          ? JSONText.pretty(ExaminationJSON(examination: examination, path: store.path))
          : ExaminationText(examination: examination, path: store.path).text)
      switch examination.verdict {
      case .unavailable:
        let isFolder = examination.reason.code == FileError.Kind.isDirectory.rawValue
        throw isFolder ? ExitStatus.usage : ExitStatus.unavailable
      case .damaged: throw ExitStatus.doubtful
      case .compatible, .outdated, .incompatible, .missing: break
      }
    }
  }
}

extension Examination.Depth: ExpressibleByArgument {}
