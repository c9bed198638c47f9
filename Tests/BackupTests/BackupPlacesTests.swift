import Backup
import Platform
import SystemPackage
import TestSupport
import Testing

/// Which backups are those of a store: a test for each row of the tables in `BACKUP_FORMAT.md`.
@Suite("Whose backups they are")
struct BackupPlacesTests {
  private static let one = "11111111-1111-4111-8111-111111111111"
  private static let two = "22222222-2222-4222-8222-222222222222"

  @Test("stores of one name share no history, no delta, no kit and no trash")
  func sameName() throws {
    let scene = try PlacesScene()
    let names = ["A/App.sqlite", "B/App.sqlite", "A/App.db"]
    for name in names { try scene.make(name, mark: name, rows: 500) }
    for minute in 0..<9 {
      let name = names[minute % 3]
      try scene.run(name, "INSERT INTO marks VALUES ('\(name)', NULL)")
      try scene.back(up: name, minute)
    }
    let places = try names.map { try scene.find($0) }
    #expect(Set(places.map(\.path)).count == 3)
    #expect(try scene.places().all().count == 3)
    for (name, place) in zip(names, places) {
      let catalog = try BackupCatalog(of: place)
      #expect(catalog.backups.count == 3 && catalog.others.isEmpty)
      #expect(Set(try scene.marks(in: place).flatMap(\.self)) == [name])
      let own = Set(catalog.backups.map(\.id))
      #expect(catalog.backups.compactMap(\.manifest?.parent).allSatisfy { own.contains($0) })
      #expect(catalog.backups.contains { $0.manifest?.kind == .delta })
      #expect(catalog.backups.allSatisfy { $0.manifest?.store.relativePath == PathText(FilePath(name)) })
    }
    let pruner = BackupPruner(of: places[0], surroundings: .still())
    try scene.back(up: names[0], 20, isFull: true)
    _ = try pruner.prune(RetentionPolicy(last: .number(1)))
    #expect(try pruner.trash().count == 3)
    #expect(try BackupPruner(of: places[1], surroundings: .still()).trash().isEmpty)
    #expect(try BackupCatalog(of: places[1]).backups.count == 3)
  }

  @Test("two copies of one store are kept apart")
  func copies() throws {
    let scene = try PlacesScene()
    try scene.make("A/App.sqlite", mark: "a", uuid: Self.one)
    try scene.back(up: "A/App.sqlite", 0)
    try scene.make("B/App.sqlite", mark: "b", uuid: Self.one)
    try scene.back(up: "B/App.sqlite", 1)
    #expect(try scene.marks(in: scene.find("A/App.sqlite")) == [["a"]])
    #expect(try scene.marks(in: scene.find("B/App.sqlite")) == [["b"]])
    #expect(try scene.find("B/App.sqlite").owner?.movedFrom == nil)
  }

  @Test("a store that was started over goes on with its history, and no delta spans the two")
  func startedOver() throws {
    let scene = try PlacesScene()
    try scene.make("App.sqlite", mark: "old", uuid: Self.one, rows: 500)
    try scene.back(up: "App.sqlite", 0)
    try scene.system.unlink(scene.path("App.sqlite"))
    try scene.make("App.sqlite", mark: "new", uuid: Self.two, rows: 500)
    let second = try scene.back(up: "App.sqlite", 1)
    #expect(second.manifest?.kind == .full)
    #expect(try scene.marks(in: scene.find("App.sqlite")) == [["new"], ["old"]])
    #expect(try scene.back(up: "App.sqlite", 2).manifest?.parent == second.id)
  }

  @Test("a store that moved within the home keeps its history, and that is told until the next backup")
  func moved() throws {
    let scene = try PlacesScene()
    try scene.make("A/App.sqlite", mark: "a", uuid: Self.one)
    try scene.back(up: "A/App.sqlite", 0)
    try scene.system.makeDirectory(scene.path("C"))
    try scene.system.rename(scene.path("A/App.sqlite"), to: scene.path("C/Other.sqlite"))
    let place = try scene.find("C/Other.sqlite")
    #expect(place.owner?.movedFrom == PathText("A/App.sqlite"))
    #expect(try scene.marks(in: place) == [["a"]])
    try scene.back(up: "C/Other.sqlite", 1)
    #expect(try scene.find("C/Other.sqlite").owner?.movedFrom == nil)
    #expect(try BackupCatalog(of: scene.find("C/Other.sqlite")).backups.count == 2)
    // Its old path still leads to them, unless another store is there.
    #expect(try BackupCatalog(of: scene.find("A/App.sqlite")).backups.count == 2)
    try scene.make("A/App.sqlite", mark: "later", uuid: Self.two)
    #expect(try BackupCatalog(of: scene.find("A/App.sqlite")).backups.isEmpty)
    try scene.back(up: "A/App.sqlite", 2)
    #expect(try scene.marks(in: scene.find("A/App.sqlite")) == [["later"]])
    #expect(try BackupCatalog(of: scene.find("C/Other.sqlite")).backups.count == 2)
  }

  @Test("where another store has taken its path, or two could be it, a store that moved begins anew")
  func movedInDoubt() throws {
    let scene = try PlacesScene()
    try scene.make("A.sqlite", mark: "a", uuid: Self.one)
    try scene.back(up: "A.sqlite", 0)
    try scene.system.rename(scene.path("A.sqlite"), to: scene.path("B.sqlite"))
    try scene.make("A.sqlite", mark: "other", uuid: Self.two)
    #expect(try BackupCatalog(of: scene.find("B.sqlite")).backups.isEmpty)
    #expect(try BackupCatalog(of: scene.find("A.sqlite")).backups.count == 1)
    try scene.back(up: "B.sqlite", 1)
    try scene.system.unlink(scene.path("A.sqlite"))
    try scene.make("A.sqlite", mark: "copy", uuid: Self.one)
    try scene.back(up: "A.sqlite", 2)
    try scene.system.rename(scene.path("A.sqlite"), to: scene.path("C.sqlite"))
    try scene.system.unlink(scene.path("B.sqlite"))
    #expect(try BackupCatalog(of: scene.find("C.sqlite")).backups.isEmpty)
  }

  @Test("a plain store is told by its path alone, and a store that is not there too")
  func plain() throws {
    let scene = try PlacesScene()
    try scene.make("A.sqlite", mark: "a")
    try scene.back(up: "A.sqlite", 0)
    try scene.system.rename(scene.path("A.sqlite"), to: scene.path("B.sqlite"))
    #expect(try BackupCatalog(of: scene.find("B.sqlite")).backups.isEmpty)
    #expect(try scene.marks(in: scene.find("A.sqlite")) == [["a"]])
  }

  @Test("a home that was moved still has the backups of its stores", arguments: [nil, one])
  func movedHome(uuid: String?) throws {
    let scene = try PlacesScene()
    try scene.make("Stores/App.sqlite", mark: "a", uuid: uuid, rows: 500)
    try scene.make("Old.sqlite", mark: "old", uuid: uuid.map { _ in Self.two })
    try scene.back(up: "Stores/App.sqlite", 0)
    try scene.backUpAsBefore("Old.sqlite", 1)
    let elsewhere = scene.folder.appending("Elsewhere")
    try scene.system.rename(scene.home, to: elsewhere)
    let places = BackupPlaces(home: elsewhere, surroundings: .still())
    for (name, mark) in [("Stores/App.sqlite", "a"), ("Old.sqlite", "old")] {
      let place = try places.find(elsewhere.appending(name))
      #expect(try scene.marks(in: place) == [[mark]], "\(name)")
      // A restore goes to where the store is now.
      #expect(try place.owner?.present == scene.system.realPath(elsewhere).appending(name), "\(name)")
    }
    let place = try places.claim(elsewhere.appending("Stores/App.sqlite"))
    let next = try BackupCreator(surroundings: .still(), temporary: scene.folder.path)
      .create(elsewhere.appending("Stores/App.sqlite"), in: place)
    #expect(next.manifest?.kind == .delta)
  }

  @Test("a store outside the home stays the same where the home alone is moved")
  func outside() throws {
    let scene = try PlacesScene()
    try scene.make("../Outside/App.sqlite", mark: "out")
    try scene.back(up: "../Outside/App.sqlite", 0)
    let elsewhere = scene.folder.appending("Deep")
    try scene.system.makeDirectory(elsewhere)
    try scene.system.rename(scene.home, to: elsewhere.appending("Home"))
    let places = BackupPlaces(home: elsewhere.appending("Home"), surroundings: .still())
    #expect(try scene.marks(in: places.find(scene.folder.appending("Outside/App.sqlite"))) == [["out"]])
  }

  @Test("a link to a store, and a second name of its file, are the store")
  func links() throws {
    let scene = try PlacesScene()
    try scene.make("App.sqlite", mark: "a")
    try scene.back(up: "App.sqlite", 0)
    _ = try ChildProcess.run("ln", ["-s", "App.sqlite", scene.path("Link.sqlite").string])
    try scene.system.link(scene.path("App.sqlite"), to: scene.path("Second.sqlite"))
    for name in ["Link.sqlite", "Second.sqlite"] {
      #expect(try scene.find(name).path == scene.find("App.sqlite").path, "\(name)")
      try scene.back(up: name, name.utf8.count)
      #expect(try scene.find("App.sqlite").owner?.path == PathText("App.sqlite"), "\(name)")
    }
    #expect(try BackupCatalog(of: scene.find("App.sqlite")).backups.count == 3)
    #expect(try scene.places().all().count == 1)
  }

  @Test("odd names each have their own place")
  func oddNames() throws {
    let scene = try PlacesScene()
    let names = [
      ".hidden.sqlite", "..sqlite", "App", "app.sqlite", "App.sqlite", "\u{e9}.sqlite", "e\u{301}.sqlite",
      "a b\n.sqlite",
      String(repeating: "x", count: 230) + ".sqlite", String(repeating: "x", count: 230) + ".db",
      String(repeating: "\u{20ac}", count: 80) + ".db", "App-2.sqlite",
    ]
    for (minute, name) in names.enumerated() {
      try scene.make(name, mark: "mark \(minute)")
      try scene.back(up: name, minute)
    }
    #expect(Set(try names.map { try scene.find($0).path }).count == names.count)
    for (minute, name) in names.enumerated() {
      #expect(try scene.marks(in: scene.find(name)) == [["mark \(minute)"]], "\(minute)")
    }
    #expect(try scene.places().all().count == names.count)
    let folders = try scene.system.entries(of: scene.home.appending("Backups")).map(\.string)
    #expect(folders.allSatisfy { !$0.hasPrefix(".") && $0.utf8.count <= 205 })
  }

  @Test("a note that cannot be read counts as none, and one of a later version is not replaced")
  func notes() throws {
    let scene = try PlacesScene()
    try scene.make("App.sqlite", mark: "a")
    try scene.back(up: "App.sqlite", 0)
    let note = try scene.find("App.sqlite").path.appending("store.json")
    try scene.system.writeAtomically(Array("nonsense".utf8), to: note, replacing: true)
    #expect(try scene.marks(in: scene.find("App.sqlite")) == [["a"]])
    try scene.back(up: "App.sqlite", 1)
    #expect(try BackupCatalog(of: scene.find("App.sqlite")).backups.count == 2)
    let later = #"{"format":"lazaret-backup-place","version":2}"#
    try scene.system.writeAtomically(Array(later.utf8), to: note, replacing: true)
    #expect(throws: FileError.self) { try scene.back(up: "App.sqlite", 2) }
    #expect(try scene.system.contents(of: note, limit: 1000) == Array(later.utf8))
  }
}
