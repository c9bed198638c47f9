import GRDB
import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A sound store of another model: every record kept and told, and everything undone by one command.
struct WrongModelTests {
  private static let contents = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
      <entity name="Boat" syncable="YES"><attribute name="name" optional="YES" attributeType="String"/></entity>
    </model>
    """

  /// A store with 92 cars at the app's place, and the model of an app that has boats.
  private func scene() throws -> (scene: Scene, boats: AppModel) {
    let scene = try Scene()
    try scene.makeStore()
    try scene.addCars(92, last: "PRAGMA journal_mode = DELETE")
    try scene.folder.write(Self.contents, to: "Boats.xcdatamodeld/V1.xcdatamodel/contents")
    return (scene, try AppModel.load(scene.folder.appending("Boats.xcdatamodeld")))
  }

  /// The policy of an app that knows that the path is its own.
  private var replacing: OpeningPolicy {
    var policy = OpeningPolicy()
    policy.whenForeign = .replace
    return policy
  }

  @Test func anotherAppsStoreStays() throws {
    let (scene, boats) = try scene()
    let queue = try DatabaseQueue(path: scene.store("Plain.sqlite").string)
    try queue.write { try $0.execute(sql: "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)") }
    try queue.close()
    try scene.folder.write([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], to: "Stores/Picture.sqlite")
    let schema = try AppModel.load(scene.schema)
    let before = try scene.names()
    for (name, model, code) in [
      ("App.sqlite", boats, "foreign-store"), ("App.sqlite", schema, "foreign-store"),
      ("Plain.sqlite", boats, "foreign-store"), ("Plain.sqlite", schema, "foreign-store"),
      ("Picture.sqlite", boats, "not-a-store"),
    ] {
      let parts = try scene.parts(scene.store(name))
      for home in [scene.home, nil] {
        let error = try #require(throws: LazaretError.self) {
          try scene.coordinator(model: model, home: home).open(scene.store(name))
        }
        #expect(error.code == code && !error.isEnvironmental, "\(name): \(error)")
      }
      #expect(try scene.parts(scene.store(name)) == parts, "\(name)")
    }
    #expect(try scene.names() == before)
  }

  @Test(arguments: ["opened", "quarantined", "backed up"])
  func atThePathOfTheAppsOwnItIsQuarantined(how: String) throws {
    let (scene, boats) = try scene()
    switch how {
    case "opened":
      let opening = try scene.coordinator(home: scene.home, notesKits: true).open(scene.store())
      _ = opening.backgroundPass?.wait()
      try opening.store.close()
    case "quarantined":
      let quarantines = Quarantines(home: scene.home, surroundings: .still())
      let stored = try quarantines.add(scene.store(), reason: "a test")
      _ = try quarantines.release(stored.files.main)
    default: _ = try Backups(home: scene.home, surroundings: .still()).create(scene.store())
    }
    let opening = try scene.coordinator(model: boats, home: scene.home).open(scene.store())
    #expect(opening.events.contains { $0.kind == .quarantine && $0.records == 92 })
    try opening.store.close()
  }

  @Test func itsRecordsAreToldAndAReleaseUndoesIt() throws {
    let (scene, boats) = try scene()
    let before = try scene.parts(scene.store())
    let opening = try scene.coordinator(replacing, model: boats, home: scene.home).open(scene.store())
    #expect(opening.examination.reason.code == "other-model")
    #expect(try opening.store.recordCount(of: "Boat") == 0)
    try opening.store.close()
    let event = try #require(opening.events.first { $0.kind == .quarantine })
    #expect(event.records == 92)
    #expect(event.words.contains("92 records are in quarantine"))
    #expect(opening.notice != nil)
    #expect(opening.salvage?.recovered == 0 && opening.salvage?.lost == 0)
    #expect(opening.salvage?.failure?.code == "model-fits-nothing")
    let stored = try #require(try Quarantines(home: scene.home, surroundings: .still()).stores().first)
    let (place, replaced) = try Quarantines(home: scene.home, surroundings: .still()).release(
      stored.files.main, replacing: true)
    #expect(place.main == scene.store() && replaced != nil)
    #expect(try scene.parts(scene.store()) == before)
  }

  @Test func neitherASalvageNorAnInstallationByItMovesAnything() throws {
    let (scene, boats) = try scene()
    let quarantines = Quarantines(home: scene.home, surroundings: .still())
    let stored = try quarantines.add(scene.store(), model: try scene.appModel(), reason: "a test")
    let salvaged = try quarantines.salvage(stored.files.main, model: try scene.appModel())
    #expect(salvaged.result.isUsable && salvaged.result.recovered == 92)
    let result = try scene.system.contents(of: salvaged.store, limit: 1 << 24)
    let error = try #require(throws: LazaretError.self) { try quarantines.salvage(stored.files.main, model: boats) }
    #expect(error.kind == .salvageFailed && !error.isEnvironmental)
    #expect(error.detail.contains("no entity") && error.detail.contains("Car"), "\(error.detail)")
    // What was salvaged before is there still.
    #expect(try scene.system.contents(of: salvaged.store, limit: 1 << 24) == result)
    let refusal = try #require(throws: LazaretError.self) {
      try quarantines.install(stored.files.main, model: boats)
    }
    #expect(refusal.kind == .salvageUnusable)
    #expect(try scene.parts(scene.store()).isEmpty)
    _ = try quarantines.install(stored.files.main, model: try scene.appModel())
    #expect(try !scene.parts(scene.store()).isEmpty)
  }

  @Test func ofSeveralModelsTheOneThatFitsIsTaken() throws {
    let (scene, boats) = try scene()
    let cars = try scene.appModel()
    let schema = try AppModel.load(scene.schema)
    for models in [[boats, cars, schema], [schema, boats, cars], [cars, boats]] {
      let found = try #require(AppModel.fitting(models, scene.store()))
      #expect(found.currentVersionName == cars.currentVersionName)
    }
    #expect(AppModel.fitting([], scene.store()) == nil)
  }

  @Test func aPlainStoreThatLacksPartsOfItsSchemaIsOpened() throws {
    let scene = try Scene()
    let queue = try DatabaseQueue(path: scene.store().string)
    try queue.write { try $0.execute(sql: "CREATE TABLE cars (id INTEGER PRIMARY KEY); INSERT INTO cars VALUES (7)") }
    try queue.close()
    let opening = try scene.coordinator(model: try AppModel.load(scene.schema)).open(scene.store())
    #expect(opening.examination.verdict == .compatible)
    #expect(opening.examination.health.notes.contains { $0.code == "lacks-tables" && $0.words.contains("cars.name") })
    #expect(opening.events.isEmpty && opening.notice == nil)
    // What its migrator does next.
    try opening.store.write { try $0.execute(sql: "ALTER TABLE cars ADD COLUMN name TEXT") }
    try opening.store.close()
    let again = try scene.coordinator(model: try AppModel.load(scene.schema)).open(scene.store())
    #expect(again.examination.reason.code == "has-schema")
    #expect(try again.store.read { try Int.fetchAll($0, sql: "SELECT id FROM cars") } == [7])
    try again.store.close()
  }
}
