import ArgumentParser
import Inspector
import Lazaret
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

/// `lazaret demo`: opens example stores damaged in several ways.
struct DemoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Makes example stores, breaks them in several ways, and opens each as an app would.",
    usage: "lazaret demo [--folder <dir>] [--no-browser] [<options>]",
    discussion: """
      The stores are damaged as stores are: cut off, without a first page, with nothing but a log, beside the log of another. \
      Everything happens in a folder of its own, which is left for you to look at. On a terminal it ends in the browser, on a \
      store that was rescued; Ctrl-C ends it.

      EXAMPLE
        lazaret demo --no-browser

      \(ExitStatus.help)
      """)

  @Option(help: ArgumentHelp("The folder that the demonstration's own folder is made in.", valueName: "dir"))
  var folder: PathArgument?

  @Option(help: ArgumentHelp("The folder with Garage.xcdatamodeld.", valueName: "dir"))
  var examples: PathArgument?

  @Flag(help: "Do not end in the browser; say how to get there.")
  var noBrowser = false

  @OptionGroup var output: OutputOptions

  private struct Listing: Encodable {
    struct Scene: Encodable {
      var name: String
      var opening: JSON.Object?
      var error: JSON.Value?
    }

    var folder: PathText
    var scenes: [Scene]
  }

  func run() throws {
    try report(json: output.json) {
      let modelPath = try ExampleFolder.find(examples?.path).appending("Garage.xcdatamodeld")
      let model = try AppModel.load(modelPath)
      let stage = try DemoStage(in: folder?.path ?? "Demo", model: model)
      let home = ChosenHome(stage.home, because: .option)
      var listing = Listing(folder: PathText(stage.folder), scenes: [])
      if !output.json { say(Self.prologue(stage)) }
      for (number, scene) in DemoScene.allCases.enumerated() {
        if !output.json { say("\n\(tinted("\(number + 1). \(scene.title)", .strong))\n   \(scene.story)\n") }
        switch try stage.play(scene) {
        case .opened(let opening):
          listing.scenes.append(.init(name: scene.rawValue, opening: opening.payload(nil, in: home)))
          if !output.json { say(Self.account(of: opening)) }
        case .leftAlone(let error):
          listing.scenes.append(.init(name: scene.rawValue, error: error.json))
          if !output.json { say("   → left as it is: \(error.detail).\n     \(error.hint)\n") }
        }
      }
      if output.json { return say(try JSON.shown(listing)) }
      say(try epilogue(stage, modelPath))
      // Without a terminal, do not wait.
      if !noBrowser, Terminal.standardOutput.isInteractive { try show(stage, model) }
    }
  }

  /// Serves the inspector, with a link to the most complete partial salvage.
  private func show(_ stage: DemoStage, _ model: AppModel) throws {
    var options = InspectorOptions(home: stage.home, publicFolder: try PublicFolder.find())
    options.models = InspectorModel.named([("Garage", model)])
    try InspectorRun(options, ListeningPlace(), opensBrowser: true, json: false) { inspector in
      let stores = try inspector.catalogue.quarantined()
      func recovered(_ store: ListedStore) -> Int {
        let result = store.quarantined?.receipt?.salvage?.result
        // A complete salvage has little to show.
        return result.map { $0.isComplete || $0.count.percent == 100 ? 0 : $0.count.percent ?? 0 } ?? 0
      }
      return stores.max { recovered($0) < recovered($1) }.map { .store($0.id) } ?? .to("stores")
    }.run()
  }

  private func say(_ text: String) { Terminal.standardOutput.write(text) }

  private static func prologue(_ stage: DemoStage) -> String {
    """
    A garage keeps its vehicles in a Core Data store. This is what its app does at the start, with one call for each of \
    these stores:
      \(printable(stage.folder.string))

    """
  }

  private static func account(of opening: Opening) -> String {
    let verdict = opening.examination.verdict
    var text = "   → \(tinted(verdict.rawValue, verdict.tint)): \(opening.examination.reason.words)\n"
    for event in opening.events {
      text += "     \(event.words)\n       \(printable(event.path.text))\n"
      for change in event.repair?.changes ?? [] { text += "       \(change.text)\n" }
    }
    for entity in opening.salvage?.entities ?? [] where entity.recovered > 0 || entity.hasLosses {
      let lost = !entity.hasLosses ? "" : ", \(RecoveryCount(entity).lostNumber) lost"
      text += "       \(printable(entity.name)): \(grouped(entity.recovered)) recovered\(lost)\n"
    }
    text += "     The app has an open store.\n"
    return text
  }

  private func epilogue(_ stage: DemoStage, _ model: FilePath) throws -> String {
    let stores = try Quarantines(home: stage.home).stores()
    var text = "\nIn quarantine, with a receipt beside each:\n"
    var table = TextTable(["id", "came from", "size", "salvage", "why"], numericColumns: [2], shrinking: [1])
    for store in stores {
      table.append([
        store.id, store.receipt?.originalPath.path?.lastComponent.map { printable($0.string) } ?? "?",
        readableSize(store.receipt?.totalBytes ?? 0), store.receipt?.salvage?.word ?? "–",
        store.receipt?.reason.word ?? "?",
      ])
    }
    text += table.text()
    let home = shellQuoted(stage.home)
    let repairable = shellQuoted(stage.stores.appending(DemoScene.unrepaired.fileName))
    let tool = shellQuoted(FilePath(CommandLine.arguments.first ?? "lazaret"))
    text += """

      Look further:
        \(tool) serve --home \(home)
        \(tool) quarantine list --home \(home)
        \(tool) quarantine show \(stores.first?.id ?? "ID") --home \(home)
        \(tool) inspect \(shellQuoted(stage.stores.appending("Healthy.sqlite"))) --check full
        \(tool) repair \(repairable) --home \(home) --model \(shellQuoted(model)) --dry-run
      Remove it all with: rm -r \(shellQuoted(stage.folder))

      """
    return text
  }
}

enum ExampleFolder {
  /// Returns the given folder, else `share/lazaret/Examples` or `Examples` above the executable, else `Examples` here.
  static func find(_ given: FilePath?) throws -> FilePath {
    let system = FileSystem()
    if let given { return given }
    var candidates: [FilePath] = []
    if var folder = PublicFolder.executable(system)?.removingLastComponent() {
      while folder.lastComponent != nil {
        candidates += [folder.appending("share/lazaret/Examples"), folder.appending("Examples")]
        folder.removeLastComponent()
      }
    }
    candidates.append("Examples")
    for candidate in candidates where try system.status(of: candidate.appending("Garage.xcdatamodeld")) != nil {
      return candidate
    }
    throw FileError(
      .notFound, operation: "find the example models", path: "Examples/Garage.xcdatamodeld",
      detail: "it is neither in the current folder nor near the executable",
      hint: "Run the command from the checkout, or say where the folder is with --examples.")
  }
}
