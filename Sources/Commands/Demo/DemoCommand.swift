import ArgumentParser
import GRDB
import Inspector
import Lazaret
import LazaretTesting
import ManagedObjectModel
import Migration
import SQLiteFormat
import Salvage

/// `lazaret demo`: opens example stores damaged in several ways.
struct DemoCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "demo", abstract: "Makes example stores, breaks them in several ways, and opens each as an app would.",
    usage: "lazaret demo [--folder <dir>] [--no-browser] [<options>]",
    discussion: """
      The stores are damaged as stores are: cut off, without a first page, with nothing but a log, beside the log of another. \
      Everything happens in a folder of its own, which is left for you to look at. On a terminal it ends in the browser, on a \
      store that was rescued; Ctrl-C ends it.
      """, examples: "lazaret demo --no-browser")

  @Option(help: .text("The folder that the demonstration's own folder is made in.", "dir"))
  var folder: PathArgument?

  @Option(help: .text("The folder with Garage.xcdatamodeld.", "dir")) var examples: PathArgument?

  @Flag(help: "Do not end in the browser; say how to get there.") var noBrowser = false

  @OptionGroup var output: OutputOptions

  func perform() throws {
    let modelPath = try ExampleFolder.find(examples?.path).appending("Garage.xcdatamodeld")
    let model = try AppModel.load(modelPath)
    let stage = try DemoStage(in: folder?.path ?? "Demo", model: model)
    let home = ChosenHome(stage.home, because: .option)
    var scenes: [JSON.Object] = []
    if !output.json { say(Self.prologue(stage)) }
    for (number, scene) in DemoScene.allCases.enumerated() {
      if !output.json { say("\n\(tinted("\(number + 1). \(scene.title)", .strong))\n   \(scene.story)\n") }
      switch try stage.play(scene) {
      case .opened(let opening):
        scenes.append(["name": scene.rawValue, "opening": opening.payload(nil, in: home)])
        if !output.json { say(Self.account(of: opening)) }
      case .leftAlone(let error):
        scenes.append(["name": scene.rawValue, "error": error.json])
        if !output.json { say("   → left as it is: \(error.detail).\n     \(error.hint)\n") }
      }
    }
    if output.json { return say(try JSON.shown(["folder": PathText(stage.folder), "scenes": scenes] as JSON.Object)) }
    say(try epilogue(stage, modelPath))
    // Without a terminal, do not wait.
    if !noBrowser, Terminal.standardOutput.isInteractive { try show(stage, model) }
  }

  /// Serves the inspector, with a link to the most complete partial salvage.
  private func show(_ stage: DemoStage, _ model: AppModel) throws {
    var options = InspectorOptions(home: stage.home, publicFolder: try PublicFolder.find())
    options.models = InspectorModel.named([("Garage", model)])
    var run = InspectorRun(options: options, listening: ListeningPlace(), opensBrowser: true, json: false)
    run.start = { inspector in
      let stores = try inspector.catalogue.quarantined()
      func recovered(_ store: ListedStore) -> Int {
        let result = store.quarantined?.receipt?.salvage?.result
        // A complete salvage has little to show.
        return result.map { $0.isComplete || $0.count.percent == 100 ? 0 : $0.count.percent ?? 0 } ?? 0
      }
      return stores.max { recovered($0) < recovered($1) }.map { .store($0.id) } ?? .to("stores")
    }
    try run.run()
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
      table.append(
        store.id, store.receipt?.originalPath.path?.lastComponent.map { printable($0.string) } ?? "?",
        readableSize(store.receipt?.totalBytes ?? 0), store.receipt?.salvage?.word ?? "–",
        store.receipt?.reason.word ?? "?")
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
    let found = try candidates.first { try system.status(of: $0.appending("Garage.xcdatamodeld")) != nil }
    if let found { return found }
    throw FileError(
      .notFound, operation: "find the example models", path: "Examples/Garage.xcdatamodeld",
      detail: "it is neither in the current folder nor near the executable",
      hint: "Run the command from the checkout, or say where the folder is with --examples.")
  }
}

struct DemoStage {
  enum Ending {
    case opened(Opening)
    case leftAlone(any ReportableError)
  }

  let folder: FilePath
  let bundle: ModelBundle

  private let system = FileSystem()

  var stores: FilePath { folder.appending("Stores") }

  var home: FilePath { folder }

  init(in parent: FilePath, model: AppModel) throws {
    guard case .coreData(let bundle) = model else {
      throw FileError(.notFound, operation: "find the example models", path: parent)
    }
    self.bundle = bundle
    try system.makeDirectory(parent)
    let place = try system.realPath(parent)
    let time = Surroundings.machine.now().fileName
    var name = time
    var number = 1
    while try system.status(of: place.appending(name)) != nil {
      number += 1
      name = "\(time)-\(number)"
    }
    folder = place.appending(name)
    try system.makeDirectory(stores)
  }

  func play(_ scene: DemoScene) throws -> Ending {
    let path = stores.appending(scene.fileName)
    let appModel = try makeStore(for: scene, at: path)
    var policy = OpeningPolicy()
    if scene == .unrepaired { policy.whenRepairable = .refuse }
    do {
      let opening = try StoreCoordinator(
        model: appModel, policy: policy, home: home, appVersion: "2.0 (demonstration)"
      ).open(path)
      _ = opening.backgroundPass?.wait()
      try opening.store.close()
      return .opened(opening)
    } catch let error as LazaretError where !error.kind.isOfQuarantine {
      return .leftAlone(error)
    }
  }

  /// Returns the opening app's model.
  private func makeStore(for scene: DemoScene, at path: FilePath) throws -> AppModel {
    let current = bundle.current
    switch scene {
    case .firstStart: break
    case .healthy: try ExampleStore(model: current.model).create(at: path)
    case .overwritten:
      try ExampleStore(model: current.model).create(at: path)
      try change(path) { bytes in
        let page = Array("<!DOCTYPE html><html><head><title>503 Service Unavailable</title></head><body>".utf8)
        bytes.replaceSubrange(0..<page.count, with: page)
      }
    case .truncated:
      try largeStore.create(at: path)
      try change(path) { bytes in bytes.removeLast(bytes.count / 8) }
    case .firstPageLost:
      try largeStore.create(at: path)
      try change(path) { bytes in bytes.replaceSubrange(0..<4096, with: repeatElement(0, count: 4096)) }
    case .logAlone: try writeLogAlone(of: path)
    case .foreignLog:
      try ExampleStore(model: current.model).create(at: path)
      try writeForeignLog(beside: path)
    case .lostTables: try ExampleStore(model: Self.otherApp).create(at: path)
    case .older:
      if let first = bundle.versions.first { try ExampleStore(model: first.model).create(at: path) }
    case .newer:
      try ExampleStore(model: current.model).create(at: path)
      if let first = bundle.versions.first, let old = ModelBundle(name: bundle.name, versions: [first]) {
        return .coreData(old)
      }
    case .repaired, .unrepaired: try makeLacking(at: path)
    }
    return .coreData(bundle)
  }

  /// A store large enough to keep most records after damage.
  private var largeStore: ExampleStore { ExampleStore(model: bundle.current.model, vehicles: 3000) }

  /// Leaves only the write-ahead log of a vacuumed store, which holds every page.
  private func writeLogAlone(of path: FilePath) throws {
    let whole = folder.appending(".logged.sqlite")
    try largeStore.create(at: whole)
    let queue = try DatabaseQueue(path: whole.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL; VACUUM") }
    let log = try system.contents(of: StoreFileSet(main: whole).path(of: .wal), limit: 1 << 26)
    try queue.close()
    for member in try StoreFileSet(main: whole).members(in: system) { try system.unlink(member.path) }
    try system.writeAtomically(log, to: StoreFileSet(main: path).path(of: .wal), replacing: false)
  }

  private func change(_ path: FilePath, _ damage: (inout [UInt8]) -> Void) throws {
    var bytes = try system.contents(of: path, limit: 1 << 26)
    damage(&bytes)
    try system.writeAtomically(bytes, to: path, replacing: true)
  }

  /// Makes a store that violates its model, with two vehicles of missing owners.
  private func makeLacking(at path: FilePath) throws {
    let whole = folder.appending(".whole.sqlite")
    try ExampleStore(model: bundle.current.model).create(at: whole)
    let store = try PersistentStore(opening: whole)
    try store.write { try $0.execute(sql: "UPDATE ZVEHICLE SET ZOWNER = 99 WHERE Z_PK IN (8, 16)") }
    try store.close()
    _ = try DamagedCopy.make(
      of: whole, at: path,
      kinds: ["drift:column", "drift:key-maximum", "drift:index"].map { try DamageKind($0) }, seed: 4)
    for member in try StoreFileSet(main: whole).members(in: system) { try system.unlink(member.path) }
  }

  private func writeForeignLog(beside path: FilePath) throws {
    let other = folder.appending(".other.sqlite")
    try ExampleStore(model: Self.otherApp).create(at: other)
    let connection = try PersistentStore(opening: other)
    try connection.write { database in
      for number in 1...50 {
        try database.execute(
          sql: "INSERT INTO ZSTAR (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, ?)", arguments: ["star \(number)"])
      }
    }
    let log = try system.contents(of: StoreFileSet(main: other).path(of: .wal), limit: 1 << 26)
    try connection.close()
    for member in try StoreFileSet(main: other).members(in: system) { try system.unlink(member.path) }
    try system.writeAtomically(log, to: StoreFileSet(main: path).path(of: .wal), replacing: true)
  }

  private static let otherApp = ManagedObjectModel(entities: [
    Entity(name: "Star", properties: [.attribute(Attribute(traits: PropertyTraits(name: "name"), type: .string))])
  ])
}

struct ExampleStore {
  let model: ManagedObjectModel

  var vehicles = 200

  func create(at path: FilePath) throws {
    let uuid = Surroundings.machine.makeUUID().description
    let bytes = try StoreCreation(model: model, uuid: uuid, modelCache: try model.modelCache()).bytes()
    try FileSystem().writeAtomically(bytes, to: path, replacing: false)
    // The store has this layout; models without these entities stay empty.
    guard let layout = try? StoreLayout(model), let car = layout.entity(named: "Car"),
      let motorbike = layout.entity(named: "Motorbike"), let owner = layout.entity(named: "Owner")
    else { return }
    let store = try PersistentStore(opening: path, model: model)
    try store.write { database in
      for number in 1...12 {
        try database.execute(
          sql: "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZID) VALUES (?, ?, 1, ?, randomblob(16))",
          arguments: [number, owner.number, "Owner \(number)"])
      }
      for number in 1...max(1, vehicles) {
        let isCar = number % 4 != 0
        try database.execute(
          sql: """
            INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT, ZOWNER, ZMAKER, ZPLATE, ZDOORS, ZHASSIDECAR)
            VALUES (?, ?, 1, ?, ?, ?, ?, ?)
            """,
          arguments: [
            number, isCar ? car.number : motorbike.number, number % 12 + 1, "Maker \(number % 7)",
            "GA \(1000 + number)", isCar ? 4 : nil, isCar ? nil : 0,
          ])
      }
      for (root, highest) in [("Owner", 12), ("Vehicle", vehicles)] {
        try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_NAME = ?", arguments: [highest, root])
      }
    }
    try store.close()
  }
}
