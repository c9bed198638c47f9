import Backup
import Platform
import SystemPackage
import TestSupport
import Testing

/// Folders of encrypted backups: what their names and bytes tell of the store, and how they are found again.
@Suite("Places that tell nothing")
struct OpaquePlaceTests {
  private static let uuid = "5E7C1D0A-0B1C-4D2E-8F3A-9B4C5D6E7F80"
  private static let name = "Kundenakten/Insolvenzen.sqlite"
  private static let rows = 7_353
  private let owner = AgeIdentity()

  private func scene() throws -> PlacesScene {
    let scene = try PlacesScene()
    try scene.make(Self.name, mark: "Geheimnis", uuid: Self.uuid, rows: Self.rows)
    return scene
  }

  /// Takes an encrypted backup at a minute of an hour; as earlier versions did, in a folder named after the store.
  @discardableResult
  private func back(
    up scene: PlacesScene, _ minute: Int, asBefore: Bool = false, name: String = Self.name
  ) throws -> (place: FolderPlace, backup: StoredBackup) {
    var request = BackupRequest()
    let key = scene.home.appending("BackupKeys/delta.key")
    request.encryption = BackupEncryption(to: [owner.recipient], deltaKeyFile: key)
    let time = "2026-11-21T09:\(minute < 10 ? "0" : "")\(minute):12Z"
    let creator = BackupCreator(surroundings: .still(at: time), temporary: scene.folder.path)
    let place = try scene.places().claim(scene.path(name), encryptedTo: asBefore ? [] : [owner.recipient])
    return (place, try creator.create(scene.path(name), in: place, request))
  }

  /// The least of some numbers.
  private final class Least: Sendable {
    private let least = Mutex(Int.max)
    var value: Int { least.withLock { $0 } }
    func add(_ number: Int) { least.withLock { $0 = min($0, number) } }
  }

  /// The whole backups of all folders of a home, as they are listed without a key.
  private static func listed(_ home: FilePath) throws -> Int {
    var count = 0
    for place in try BackupPlaces(home: home, surroundings: .still()).all() {
      count += try BackupCatalog(of: place).backups.count { $0.isWhole }
    }
    return count
  }

  /// The names and the bytes of everything in a folder, one behind the other.
  private static func everything(in folder: FilePath) throws -> [UInt8] {
    let system = FileSystem()
    var all: [UInt8] = []
    for name in try system.entries(of: folder) {
      all += Array(name.string.utf8) + [0]
      let path = folder.appending(name)
      switch try system.status(of: path, followingLinks: false)?.kind {
      case .directory: all += try everything(in: path)
      case .regular: all += try system.contents(of: path, limit: 1 << 28) + [0]
      default: break
      }
    }
    return all
  }

  private static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let needle = Array(text.utf8)
    guard let first = needle.first, bytes.count >= needle.count else { return false }
    for start in bytes.indices.dropLast(needle.count - 1)
    where bytes[start] == first && bytes[start..<(start + needle.count)].elementsEqual(needle) { return true }
    return false
  }

  @Test("Neither names nor bytes have a name, path, identifier or count of the store")
  func nothingIsTold() throws {
    let scene = try scene()
    let place = try back(up: scene, 0).place
    try scene.run(Self.name, "UPDATE marks SET mark = 'Geheimnis 2' WHERE rowid = 1")
    #expect(try back(up: scene, 1).backup.manifest?.kind == .delta)
    try scene.run(Self.name, "DELETE FROM marks WHERE rowid > 1")
    let last = try back(up: scene, 2)
    #expect(last.place.path == place.path)
    // One is proven with the key, and one is dropped.
    let open = last.place.unlocked(with: [owner])
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    #expect(try prover.prove(last.backup.id, in: open).result == .proven)
    _ = try BackupPruner(of: open, surroundings: .still(at: "2026-11-21T10:00:00Z")).prune(
      RetentionPolicy(last: .number(1)))
    let home = try scene.system.realPath(scene.home)
    let needles = [
      "Insolvenzen", "Kundenakten", "Geheimnis", Self.uuid, "marks", "filler", "CREATE TABLE", "Z_METADATA", "ZCAR",
      home.string, ":\(Self.rows + 1)", ": \(Self.rows + 1)", "\"entities\"", "store.json",
    ]
    let bytes = try Self.everything(in: scene.home.appending("Backups"))
    #expect(bytes.count > 10_000)
    for needle in needles { #expect(!Self.contains(bytes, needle), "\(needle)") }
    // The same search finds them where they are.
    let outside = try Self.everything(in: scene.home)
    for needle in ["Insolvenzen", "Geheimnis", "marks"] { #expect(Self.contains(outside, needle), "\(needle)") }
    #expect(
      try scene.system.entries(of: scene.home.appending("Backups")).map(\.string) == [place.path.lastComponent?.string])
  }

  @Test("The machine that takes them finds the folder by what it keeps in the home, for its owner alone")
  func foundAgain() throws {
    let scene = try scene()
    let place = try back(up: scene, 0).place
    #expect(try scene.find(Self.name).path == place.path)
    #expect(place.owner?.path?.text == Self.name)
    let name = try #require(place.path.lastComponent?.string)
    let note = scene.home.appending("BackupKeys/\(name).store.json")
    #expect(try scene.system.status(of: note)?.permissions == .ownerReadWrite)
    #expect(try scene.system.status(of: note.folder)?.permissions == .ownerReadWriteExecute)
    // Another store has another one, and a store that moves within the home keeps its own.
    try scene.make("Other/Insolvenzen.sqlite", mark: "other")
    #expect(try back(up: scene, 1, name: "Other/Insolvenzen.sqlite").place.path != place.path)
    try scene.system.makeDirectory(scene.path("Moved"))
    try scene.system.rename(scene.path(Self.name), to: scene.path("Moved/App.sqlite"))
    let moved = try back(up: scene, 2, name: "Moved/App.sqlite").place
    #expect(moved.path == place.path)
    #expect(try BackupCatalog(of: scene.find("Moved/App.sqlite")).backups.count == 2)
    var places = scene.places()
    places.identities = [owner]
    try scene.system.removeTree(note.folder)
    #expect(try places.find(scene.path("Moved/App.sqlite")).path == place.path)
  }

  @Test("Where that is lost a new folder begins, and the holder of a key sees both as one store's")
  func lostNote() throws {
    let scene = try scene()
    let first = try back(up: scene, 0)
    try scene.system.removeTree(scene.home.appending("BackupKeys"))
    #expect(try BackupCatalog(of: scene.find(Self.name)).backups.isEmpty)
    let second = try back(up: scene, 1)
    #expect(second.place.path != first.place.path && second.backup.manifest?.kind == .full)
    let all = try scene.places().all()
    #expect(Set(all.map(\.path)) == [first.place.path, second.place.path])
    #expect(all.compactMap(\.owner?.path?.text) == [Self.name])
    var places = scene.places()
    places.identities = [owner]
    let own = try places.findAll(scene.path(Self.name))
    #expect(own.map(\.path) == [second.place.path, first.place.path])
    #expect(own.map { $0.owner?.path?.text } == [Self.name, Self.name])
    for (place, backup) in zip(own, [second.backup, first.backup]) {
      let catalog = try BackupCatalog(of: place.unlocked(with: [owner]))
      #expect(catalog.backups.map(\.id) == [backup.id])
    }
    places.identities = [AgeIdentity()]
    #expect(try places.findAll(scene.path(Self.name)).map(\.path) == [second.place.path])
    // The next one goes on with the new folder.
    #expect(try back(up: scene, 2).place.path == second.place.path)
  }

  @Test("A folder of the earlier form is renamed, its backups listed at every moment")
  func renamed() throws {
    let scene = try scene()
    for minute in 0..<2 { try back(up: scene, minute, asBefore: true) }
    let old = scene.home.appending("Backups/Insolvenzen")
    #expect(try scene.find(Self.name).path == old)
    let (home, least) = (scene.home, Least())
    let watched = FileSystem { (_: FileOperation) throws(Errno) in
      // What cannot be listed counts as nothing.
      least.add((try? Self.listed(home)) ?? 0)
    }
    let place = try scene.places(watched).claim(scene.path(Self.name), encryptedTo: [owner.recipient])
    #expect(least.value == 2)
    #expect(place.path != old)
    #expect(try scene.system.status(of: old) == nil)
    #expect(try scene.system.status(of: place.path.appending("store.json")) == nil)
    #expect(try BackupCatalog(of: scene.find(Self.name)).backups.count == 2)
    #expect(!Self.contains(try Self.everything(in: scene.home.appending("Backups")), "Insolvenzen"))
    let before = try FolderContents(of: scene.home)
    _ = try scene.places().claim(scene.path(Self.name), encryptedTo: [owner.recipient])
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("After an end at any write every backup is listed, and the next one does the rest")
  func interrupted() throws {
    func earlier() throws -> PlacesScene {
      let scene = try PlacesScene()
      try scene.make(Self.name, mark: "Geheimnis", uuid: Self.uuid, rows: 10)
      for minute in 0..<2 { try back(up: scene, minute, asBefore: true) }
      return scene
    }
    let rehearsal = try earlier()
    let counted = Trouble(.death, atStep: 0)
    _ = try rehearsal.places(counted.fileSystem).claim(rehearsal.path(Self.name), encryptedTo: [owner.recipient])
    #expect(counted.steps > 10)
    for step in 1...counted.steps {
      let scene = try earlier()
      let told = Comment(rawValue: "step \(step) of \(counted.steps)")
      #expect(throws: (any Error).self, told) {
        try scene.places(Trouble(.death, atStep: step).fileSystem).claim(
          scene.path(Self.name), encryptedTo: [owner.recipient])
      }
      #expect(try Self.listed(scene.home) == 2, told)
      #expect(try BackupCatalog(of: scene.find(Self.name)).backups.count == 2, told)
      let place = try back(up: scene, 2).place
      #expect(try Self.listed(scene.home) == 3, told)
      #expect(try BackupCatalog(of: scene.find(Self.name)).backups.count == 3, told)
      #expect(!Self.contains(try Self.everything(in: scene.home.appending("Backups")), "Insolvenzen"), told)
      let names = try scene.system.entries(of: scene.home.appending("Backups")).map(\.string)
      #expect(names == [place.path.lastComponent?.string], told)
      let notes = try scene.system.entries(of: scene.home.appending("BackupKeys")).map(\.string)
      #expect(notes.filter { $0.hasSuffix(".store.json") }.count == 1, told)
    }
  }

  @Test("A folder with a backup in clear, which names the store itself, keeps its name until that is gone")
  func mixed() throws {
    let scene = try scene()
    let plain = try scene.back(up: Self.name, 0)
    let place = try back(up: scene, 1).place
    #expect(place.path == scene.home.appending("Backups/Insolvenzen"))
    for object in try BackupCatalog(of: place).backup(plain.id).objects {
      try place.delete(object.name, in: .kept)
    }
    let next = try back(up: scene, 2)
    #expect(next.place.path != place.path)
    #expect(try BackupCatalog(of: scene.find(Self.name)).backups.count == 2)
  }
}
