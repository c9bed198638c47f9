import Backup
import Platform
import SystemPackage
import TestSupport
import Testing

/// Folders of earlier versions, in which the backups of several stores lie.
@Suite("Backups of earlier versions")
struct BringingOverTests {
  private static let one = "11111111-1111-4111-8111-111111111111"
  private static let two = "22222222-2222-4222-8222-222222222222"
  private static let original = "b-2026-11-21-09-30-00"

  /// Two stores of one name with two backups each, one of them dropped, and an original of the second.
  private static func scene() throws -> PlacesScene {
    let scene = try PlacesScene()
    try scene.make("A/App.sqlite", mark: "a", uuid: one)
    try scene.make("B/App.sqlite", mark: "b", uuid: two)
    for minute in 0..<4 {
      try scene.backUpAsBefore(minute.isMultiple(of: 2) ? "A/App.sqlite" : "B/App.sqlite", minute, isFull: true)
    }
    try scene.backUpAsBefore("B/App.sqlite", 4, isFull: true)
    let place = FolderPlace(scene.home.appending("Backups/App"))
    // The oldest of B goes to the trash.
    let oldest = try #require(BackupIdentifier("b-2026-11-21-09-01-12"))
    let record = """
      {"format":"lazaret-dropped-backup","version":1,"id":"\(oldest)","date":"2026-11-21T10:00:00Z","reasons":["test"],\
      "wasProvenGood":true,"objects":[]}
      """
    let objects = try BackupCatalog(of: place).backup(oldest).objects
    for object in objects { try place.move(object.name, from: .kept, to: .trash) }
    try place.replace("\(oldest).dropped.json", with: Array(record.utf8), in: .trash)
    try scene.system.writeAtomically(
      try scene.system.contents(of: scene.path("B/App.sqlite"), limit: 1 << 28),
      to: place.path.appending("\(original).sqlite"), replacing: true)
    return scene
  }

  private static func check(_ scene: PlacesScene, _ told: Comment, withOriginal: Bool = true) throws {
    let (a, b) = (try scene.find("A/App.sqlite"), try scene.find("B/App.sqlite"))
    let marks = try scene.marks(in: a)
    #expect(marks == [["a"], ["a"]], told)
    let kept = try BackupCatalog(of: b).backups.filter { $0.manifest?.kind != .original && $0.isWhole }
    #expect(kept.count == 2, told)
    for backup in kept { #expect(try scene.marks(of: backup.id, in: b) == ["b"], told) }
    guard withOriginal else { return }
    let found = try BackupCatalog(of: b).backups.first { $0.manifest?.kind == .original }
    #expect(found?.id.description == original, told)
    if let found { #expect(try scene.marks(of: found.id, in: b) == ["b"], told) }
    #expect(try BackupPruner(of: b).trash().map(\.id.description) == ["b-2026-11-21-09-01-12"], told)
    #expect(try BackupPruner(of: a).trash().isEmpty, told)
  }

  @Test("They are told apart as they lie, and nothing is written")
  func reading() throws {
    let scene = try Self.scene()
    let before = try FolderContents(of: scene.home)
    try Self.check(scene, "as they lie")
    let all = try scene.places().all()
    #expect(all.compactMap { $0.owner?.path?.text }.sorted() == ["A/App.sqlite", "B/App.sqlite"])
    #expect(try all.map { try BackupCatalog(of: $0).backups.count }.reduce(0, +) == 5)
    let foreign = try #require(try BackupCatalog(of: scene.find("B/App.sqlite")).backups.first).id
    let restorer = BackupRestorer(of: try scene.find("A/App.sqlite"), surroundings: .still())
    #expect(throws: BackupError.self) { try restorer.choose(foreign) }
    #expect(try restorer.choose().manifest?.store.path == PathText(scene.system.realPath(scene.path("A/App.sqlite"))))
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("The next backup gives each store its own folder")
  func bringingOver() throws {
    let scene = try Self.scene()
    _ = try scene.places().claim(scene.path("B/App.sqlite"))
    try Self.check(scene, "brought over")
    let (a, b) = (try scene.find("A/App.sqlite"), try scene.find("B/App.sqlite"))
    #expect(a.path != b.path)
    for place in [a, b] { #expect(try BackupCatalog(of: place).others.isEmpty, "\(place.location)") }
    let before = try FolderContents(of: scene.home)
    _ = try scene.places().claim(scene.path("B/App.sqlite"))
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("After an end at any write every backup is there, and the next one does the rest")
  func interrupted() throws {
    let scene = try Self.scene()
    let whole = Trouble(.death, atStep: 0)
    _ = try scene.places(whole.fileSystem).claim(scene.path("A/App.sqlite"))
    #expect(whole.steps > 10)
    for step in 1...whole.steps {
      let scene = try Self.scene()
      let told = Comment(rawValue: "step \(step) of \(whole.steps)")
      #expect(throws: (any Error).self, told) {
        try scene.places(Trouble(.death, atStep: step).fileSystem).claim(scene.path("A/App.sqlite"))
      }
      try Self.check(scene, told, withOriginal: false)
      _ = try scene.places().claim(scene.path("A/App.sqlite"))
      try Self.check(scene, told)
      for name in ["A/App.sqlite", "B/App.sqlite"] {
        let place = try scene.find(name)
        #expect(try BackupCatalog(of: place).others.isEmpty, told)
        #expect(try scene.system.entries(of: place.path).allSatisfy { !$0.string.hasSuffix(".arriving") }, told)
      }
      #expect(try scene.system.entries(of: scene.home.appending("Backups")).count == 2, told)
    }
  }

  @Test("A delta that builds on another store's backup is still whole, and nothing new builds on it")
  func spanning() throws {
    let scene = try PlacesScene()
    try scene.make("A/App.sqlite", mark: "a", rows: 500)
    try scene.system.makeDirectory(scene.path("B"))
    try scene.system.duplicate(scene.path("A/App.sqlite"), to: scene.path("B/App.sqlite"))
    try scene.run("B/App.sqlite", "UPDATE marks SET mark = 'b' WHERE mark = 'a'")
    let first = try scene.backUpAsBefore("A/App.sqlite", 0)
    let second = try scene.backUpAsBefore("B/App.sqlite", 1)
    #expect(second.manifest?.parent == first.id)
    try scene.back(up: "A/App.sqlite", 2, isFull: true)
    let (a, b) = (try scene.find("A/App.sqlite"), try scene.find("B/App.sqlite"))
    #expect(try BackupCatalog(of: a).backups.map(\.id).contains(second.id) == false)
    #expect(try BackupCatalog(of: b).backups.map(\.id) == [second.id])
    let pruner = BackupPruner(of: a, surroundings: .still())
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    #expect(try scene.marks(in: b) == [["b"]])
    #expect(try scene.back(up: "B/App.sqlite", 3).manifest?.kind == .full)
  }

  @Test("A folder with originals alone is that of the store with their identifier")
  func originals() throws {
    let scene = try PlacesScene()
    try scene.make("A/App.sqlite", mark: "a", uuid: Self.one)
    try scene.make("B/App.sqlite", mark: "b", uuid: Self.two)
    try scene.system.makeDirectory(scene.home.appending("Backups/App"))
    try scene.system.duplicate(
      scene.path("B/App.sqlite"), to: scene.home.appending("Backups/App/\(Self.original).sqlite"))
    #expect(try BackupCatalog(of: scene.find("A/App.sqlite")).backups.isEmpty)
    #expect(try scene.marks(in: scene.find("B/App.sqlite")) == [["b"]])
    try scene.back(up: "A/App.sqlite", 0)
    #expect(try scene.marks(in: scene.find("A/App.sqlite")) == [["a"]])
    #expect(try scene.marks(in: scene.find("B/App.sqlite")) == [["b"]])
  }
}
