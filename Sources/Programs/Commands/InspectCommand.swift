import ArgumentParser
import Migration
import StoreCoordination

/// `lazaret inspect`: looks at a store and says what can be done with it.
struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Says what a store is, whether it is sound, and whether the app's model opens it.",
    usage: "lazaret inspect <store> [--model <model> …] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it.

      A repairable store has sound pages, but lacks something of its own model; what it lacks is listed.

      Exits with 2 for a damaged or a repairable store, and where --check data finds something, with 3 for one that is unavailable or encrypted.

      EXAMPLE
        lazaret inspect Stores/App.sqlite --model App.xcdatamodeld

      \(ExitStatus.help)
      """)

  @Argument(help: "The store's main file.")
  var store: PathArgument

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema; of several, or of those in a folder, the one that fits the store is taken. If not given, what LAZARET_MODEL names.",
      valueName: "model"))
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp(
      "How closely to look: at some pages first (quick), at every page (full), or at references, constraints and mandatory values of a Core Data store too (data).",
      valueName: "depth"))
  var check: InspectCheck = .full

  @Flag(inversion: .prefixedNo, help: "Count the records of each entity.")
  var counts = true

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let model = try versionOrder.loadAppModel(ModelOption.chosen(model), fitting: store.path, json: output.json)
      let line = ProgressLine()
      let options = Examiner.Options(depth: check == .quick ? .quick : .full, countsRecords: counts) { done, total in
        line.show("Checking", Int64(done), of: Int64(total), .things("pages"))
        return true
      }
      let examination = try Examiner().examine(store.path, model: model, options: options)
      let data = try check == .data ? Self.checkData(of: examination) : nil
      let nearest = NearestVersion(to: examination, in: model)
      line.clear()
      try output.print(
        JSON.Object(examination, ["path": PathText(store.path), "data": data, "nearestVersion": nearest]),
        ExaminationText(examination: examination, path: store.path, data: data, nearest: nearest).text)
      if TextStyle.current.isQuiet, !output.json, examination.verdict != .compatible {
        // The exit code does not tell this: a mistyped path would look like a sound store.
        Terminal.standardError.write(
          "lazaret: \(printable(store.path.string)): \(examination.verdict.rawValue). \(examination.reason.words)\n")
      }
      switch examination.verdict {
      case .unavailable:
        let isFolder = examination.reason.code == FileError.Kind.isDirectory.rawValue
        throw isFolder ? ExitStatus.usage : ExitStatus.unavailable
      case .damaged, .repairable: throw ExitStatus.doubtful
      case .compatible, .outdated, .incompatible, .missing: break
      }
      if data?.isClean == false { throw ExitStatus.doubtful }
    }
  }

  /// Checks the records of a store whose pages are sound against its own model; nil where that cannot be done.
  private static func checkData(of examination: Examination) throws -> DataCheck? {
    guard examination.kind == .coreData, examination.verdict != .damaged, let files = examination.files,
      let model = examination.storeModel, examination.drift != nil
    else { return nil }
    return try DataCheck(of: files, layout: try StoreLayout(model))
  }
}

/// How closely `inspect` looks.
enum InspectCheck: String, CaseIterable, ExpressibleByArgument {
  /// At some pages, and at all where these are damaged.
  case quick

  /// At every page.
  case full

  /// At every page and at what the records refer to.
  case data
}
