import ArgumentParser
import Migration
import PersistentStore
import Platform
import SystemPackage

struct InspectCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Says what a store is, whether it is sound, and whether the app's model opens it.",
    usage: "lazaret inspect <store> [--model <model> …] [<options>]",
    discussion: """
      Touches nothing: no byte of the store changes, and no file appears beside it.

      A repairable store has sound pages, but lacks something of its own model; what it lacks is listed.

      Exits with 1 where there is no store, with 2 for a damaged or a repairable one, where what was written last may be missing, and where --check data finds something or cannot be done, with 3 for one that is unavailable or encrypted. An outdated or incompatible store is told with 0.

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
      "How closely to look: at some pages first (quick), at every page (full), or at references, constraints, mandatory values and files of large values of a Core Data store too (data).",
      valueName: "depth"))
  var check: InspectCheck = .full

  @Flag(inversion: .prefixedNo, help: "Count the records of each entity.")
  var counts = true

  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let models = ModelOption.chosen(model)
    let model = try versionOrder.loadAppModel(models, fitting: store.path, json: output.json)
    let line = ProgressLine()
    let options = Examiner.Options(depth: check == .quick ? .quick : .full, countsRecords: counts) { done, total in
      line.show("Checking", Int64(done), of: Int64(total), .things("pages"))
      return true
    }
    var examination = try Examiner().examine(store.path, model: model, options: options)
    let obstacle = check == .data ? Self.obstacle(to: examination) : nil
    let data = try check == .data && obstacle == nil ? Self.checkData(of: examination) : nil
    if data?.lacksFiles == true { examination.tellMissingFiles() }
    if data?.hasContradictions == true { examination.tellContradictions() }
    if data?.isClean == true { examination.tellCleanRecords() }
    examination.reason.hint = OptionHints.worded(examination.reason.hint)
    let nearest = NearestVersion(to: examination, in: model)
    line.clear()
    try output.print(
      JSON.Object(
        examination,
        [
          "path": PathText(store.path), "data": data, "dataNotChecked": obstacle, "nearestVersion": nearest,
        ]),
      ExaminationText(
        examination: examination, path: store.path, model: models.count == 1 ? models[0] : nil, data: data,
        dataObstacle: obstacle, nearest: nearest
      ).text)
    if TextStyle.current.isQuiet, !output.json {
      // The exit code cannot distinguish a mistyped path from a sound store.
      let isAsItShouldBe = examination.verdict == .compatible && !examination.health.mayLackCommits
      var words = isAsItShouldBe ? [] : [examination.reason.words]
      if data?.hasContradictions == true { words.append("Its records contradict its model.") }
      if data?.lacksFiles == true { words.append("Files that its records refer to are missing.") }
      if let obstacle { words.append("The records were not checked: \(obstacle).") }
      if !words.isEmpty {
        Terminal.standardError.write(
          "lazaret: \(printable(store.path.string)): \(examination.verdictWord). "
            + "\(words.joined(separator: " "))\n")
      }
    }
    switch examination.verdict {
    case .unavailable:
      let isFolder = examination.reason.code == FileError.Kind.isDirectory.rawValue
      throw isFolder ? ExitStatus.usage : ExitStatus.unavailable
    case .damaged, .repairable: throw ExitStatus.doubtful
    case .missing: throw ExitStatus.failed
    case .compatible, .outdated, .incompatible: break
    }
    if data?.isClean == false || obstacle != nil || examination.health.mayLackCommits { throw ExitStatus.doubtful }
  }

  private static func obstacle(to examination: Examination) -> String? {
    switch examination.verdict {
    case .missing: return "there is no store"
    case .damaged: return "the store is damaged"
    case .unavailable where examination.metadata == nil: return "the store is unavailable"
    case .compatible, .repairable, .outdated, .incompatible, .unavailable: break
    }
    if examination.kind != .coreData { return "it is not a Core Data store" }
    if examination.storeModel == nil {
      return "the store carries no model of its own, and none that it was written with was given with --model"
    }
    return examination.drift == nil ? "the store cannot be compared with its model" : nil
  }

  private static func checkData(of examination: Examination) throws -> DataCheck? {
    guard let files = examination.files, let model = examination.storeModel else { return nil }
    return try DataCheck(of: files, layout: try StoreLayout(model))
  }
}

enum InspectCheck: String, CaseIterable, ExpressibleByArgument {
  /// Some pages; all if these are damaged.
  case quick

  case full

  /// Every page and the records' references.
  case data
}
