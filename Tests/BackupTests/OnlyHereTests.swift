import Backup
import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

/// Originals with records that their migration removed: kept whatever the policy says, until they are released.
struct OnlyHereTests {
  private static let id = "b-2026-11-20-09-00-00"
  private static let noteName = "\(id).only-here.json"
  private static let note = #"{"version":1,"step":"V1 → V2","entities":[{"entity":"Person","rows":12}]}"#
  private static let entities = [OnlyHereNote.Entity(name: "Person", rows: 12)]
  private let lastOne = RetentionPolicy(last: .number(1))

  /// A place with an original, its note, and a backup that was taken later.
  private func makeScene(note: String? = OnlyHereTests.note) throws -> BackupScene {
    let scene = try BackupScene(rows: 50)
    if let note { try scene.folder.write(note, to: "Backups/App/\(Self.noteName)") }
    try scene.folder.write(try scene.bytes(scene.store), to: "Backups/App/\(Self.id).sqlite")
    try scene.back(up: 0)
    return scene
  }

  private func identifier() throws -> BackupIdentifier { try #require(BackupIdentifier(Self.id)) }

  private func pruner(_ scene: BackupScene, _ fileSystem: FileSystem = FileSystem()) -> BackupPruner {
    BackupPruner(of: FolderPlace(scene.placePath, in: fileSystem), surroundings: .still(fileSystem: fileSystem))
  }

  private func keptOriginal(_ scene: BackupScene) throws -> StoredBackup {
    try BackupCatalog(of: scene.place).backup(try identifier())
  }

  // MARK: The note

  @Test func theNoteBelongsToItsOriginal() throws {
    let scene = try makeScene()
    let catalog = try BackupCatalog(of: scene.place)
    #expect(catalog.strays.isEmpty)
    #expect(catalog.backups.map { $0.manifest?.kind } == [.full, .original])
    #expect(catalog.backups.first?.onlyHere == nil)
    let original = try keptOriginal(scene)
    #expect(original.isWhole && !original.isApart)
    #expect(original.onlyHere?.step == "V1 → V2")
    #expect(original.onlyHere?.entities == Self.entities)
    #expect(original.objects.map(\.name) == [Self.noteName, "\(Self.id).sqlite"])
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    #expect(try prover.prove(original.id, in: scene.place).result == .proven)
    let path = scene.folder.appending("Restored/App.sqlite")
    try FileSystem().makeDirectory(path.folder)
    #expect(try BackupRestorer(of: scene.place, surroundings: .still()).restore(original.id, to: path).isComplete)
    #expect(try FileSystem().entries(of: path.folder).allSatisfy { $0.extension != "json" })
  }

  @Test func whatAMigrationWritesIsRead() throws {
    let scene = try makeScene(note: nil)
    let main = scene.placePath.appending("\(Self.id).sqlite")
    let note = OnlyHereNote(step: "V1 → V2", entities: Self.entities)
    try FileSystem().writeAtomically(try note.json(), to: OnlyHereNote.path(beside: main), replacing: true)
    #expect(try keptOriginal(scene).onlyHere == note)
    #expect(
      try JSONDecoder().decode(OnlyHereNote.self, from: Data(Self.note.utf8))
        == JSONDecoder().decode(OnlyHereNote.self, from: Data(try note.json())))
  }

  @Test func aNoteThatCannotBeReadKeepsItAllTheSame() throws {
    let scene = try makeScene()
    let notes = [
      "", "{}", "[]", "null", "nothing like JSON", #"{"version":2,"step":"x","entities":[{"entity":"Car","rows":1}]}"#,
      #"{"version":1,"step":"V1 → V2","entities":[]}"#, #"{"version":1,"entities":[{"entity":"Car","rows":-1}]}"#,
      #"{"version":1,"entities":[{"entity":"Car","rows":99999999999999999999}]}"#, #"{"version":1,"entities":[1]}"#,
      String(repeating: "[", count: 60_000), Self.note + String(repeating: " ", count: 1 << 16),
    ]
    for (number, text) in notes.enumerated() {
      try scene.folder.write(text, to: "Backups/App/\(Self.noteName)")
      try expectKept(scene, Comment(rawValue: "note \(number)"))
    }
    let path = scene.placePath.appending(Self.noteName)
    try FileSystem().unlink(path)
    try FileSystem().makeDirectory(path)
    try expectKept(scene, "a folder")
    try FileSystem().removeDirectory(path)
    try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: "/dev/zero")
    try expectKept(scene, "a link")
    // It can be released like any other.
    #expect(try pruner(scene).release(try identifier())?.entities.isEmpty == true)
    #expect(try pruner(scene).prune(lastOne).plan.dropped.map(\.id) == [try identifier()])
  }

  /// The original is kept by a note that says nothing.
  private func expectKept(_ scene: BackupScene, _ told: Comment) throws {
    let note = try #require(try keptOriginal(scene).onlyHere, told)
    #expect(note.entities.isEmpty && note.step == nil, told)
    let report = try pruner(scene).prune(lastOne, options: .init(trashDays: 0))
    #expect(report.plan.dropped.isEmpty && report.emptied.isEmpty, told)
    #expect(
      report.plan.kept.last?.reasons.map(\.words)
        == ["has a note of removed records that cannot be read, and is kept until it is released"], told)
  }

  @Test func mutatedNotesKeepItAllTheSame() throws {
    let scene = try makeScene()
    for seed in 0..<UInt64(mutationCount(usually: 100)) {
      var mutation = Mutation(seed: seed)
      try scene.folder.write(mutation.apply(to: Array(Self.note.utf8)), to: "Backups/App/\(Self.noteName)")
      #expect(try keptOriginal(scene).onlyHere != nil, "seed \(seed)")
    }
  }

  @Test func aNoteWithoutItsOriginalDoesNoHarm() throws {
    let scene = try BackupScene(rows: 10)
    try scene.folder.write(Self.note, to: "Backups/App/\(Self.noteName)")
    let catalog = try BackupCatalog(of: scene.place)
    #expect(catalog.backups.isEmpty && catalog.strays.map(\.name) == [Self.noteName])
    // A backup of the same second gets another name, and the note is none of its own.
    let second = try scene.creator(at: "2026-11-20T09:00:00Z").create(scene.store, in: scene.place)
    #expect(second.id.description == "\(Self.id)-2" && second.onlyHere == nil && second.isProvenGood)
    #expect(try pruner(scene).prune(lastOne).plan.kept.map(\.id) == [second.id])
    #expect(throws: BackupError.self) { try pruner(scene).release(try identifier()) }
    // Nor is one beside a backup of that name that is no original.
    for object in try scene.place.list(.kept) where object.name.hasPrefix("\(Self.id)-2.") {
      let bytes = try scene.place.read(object.name, in: .kept, at: 0, length: Int(object.bytes))
      try scene.folder.write(bytes, to: "Backups/App/\(Self.id)\(object.name.dropFirst(Self.id.utf8.count + 2))")
    }
    let mixed = try BackupCatalog(of: scene.place)
    #expect(mixed.strays.map(\.name) == [Self.noteName])
    #expect(mixed.backups.allSatisfy { $0.onlyHere == nil })
    // The original arrives after its note, and is left alone before it has no other name.
    let other = try makeScene()
    let elsewhere = other.folder.appending("Elsewhere.sqlite")
    try FileSystem().link(other.placePath.appending("\(Self.id).sqlite"), to: elsewhere)
    #expect(try BackupCatalog(of: other.place).strays.map(\.name) == [Self.noteName])
    try FileSystem().unlink(elsewhere)
    #expect(try keptOriginal(other).onlyHere?.entities == Self.entities)
  }

  // MARK: Pruning and releasing

  @Test func pruningKeepsItUntilItIsReleased() throws {
    let scene = try makeScene()
    let id = try identifier()
    let before = try FolderContents(of: scene.placePath)
    let policies = [
      lastOne, RetentionPolicy(within: RetentionDuration("1h")), RetentionPolicy(tags: [["none"]]), RetentionPolicy(),
    ]
    for policy in policies {
      let report = try pruner(scene).prune(policy, options: .init(trashDays: 0))
      let decision = try #require(report.plan.decisions.first { $0.id == id })
      #expect(decision.isKept && decision.reasons.map(\.code) == ["only-here"])
      #expect(
        decision.reasons.map(\.words)
          == ["holds 12 records of Person that its migration removed, and is kept until it is released"])
      #expect(report.plan.dropped.isEmpty && report.emptied.isEmpty && report.trash.isEmpty)
    }
    #expect(try FolderContents(of: scene.placePath) == before)
    #expect(try pruner(scene).release(id)?.entities == Self.entities)
    #expect(try FileSystem().status(of: scene.placePath.appending(Self.noteName)) == nil)
    #expect(try keptOriginal(scene).onlyHere == nil)
    // It is no error to release what was released.
    #expect(try pruner(scene).release(id) == nil)
    #expect(try pruner(scene).prune(lastOne).plan.dropped.map(\.id) == [id])
    #expect(try pruner(scene).trash().map(\.isWhole) == [true])
  }

  @Test func onlyABackupThatIsThereCanBeReleased() throws {
    let scene = try makeScene()
    let nowhere = scene.folder.appending("Backups/Other")
    do {
      _ = try BackupPruner(of: FolderPlace(nowhere), surroundings: .still()).release(try identifier())
      Issue.record("it is not there")
    } catch let error as BackupError { #expect(error.kind == .notFound) }
    #expect(try FileSystem().status(of: nowhere) == nil)
    // A backup that is no original has nothing to be released.
    let full = try #require(try BackupCatalog(of: scene.place).backups.first)
    #expect(try pruner(scene).release(full.id) == nil)
    #expect(try keptOriginal(scene).onlyHere != nil)
  }

  @Test(arguments: [BackupSection.trash, .kept])
  func whatIsInTheTrashStaysThereUntilItIsReleased(section: BackupSection) throws {
    let scene = try makeScene(note: nil)
    let id = try identifier()
    #expect(try pruner(scene).prune(lastOne).plan.dropped.map(\.id) == [id])
    // An earlier version of this software drops the original alone, and leaves the note behind.
    try scene.place.replace(Self.noteName, with: Array(Self.note.utf8), in: section)
    let later = BackupPruner(of: scene.place, surroundings: .still(at: "2026-12-21T10:11:12Z"))
    let report = try later.prune(lastOne, options: .init(trashDays: 0))
    #expect(report.emptied.isEmpty && report.trash.map(\.id) == [id])
    #expect(report.trash.allSatisfy { $0.expires == nil })
    #expect(try pruner(scene).undelete(id) == [id])
    #expect(try keptOriginal(scene).onlyHere?.entities == Self.entities)
    #expect(try BackupCatalog(of: scene.place).strays.isEmpty)
    #expect(try scene.place.list(.trash).isEmpty)
    #expect(try pruner(scene).prune(lastOne).plan.dropped.isEmpty)
    try pruner(scene).release(id)
    for _ in 0..<2 { _ = try pruner(scene).prune(lastOne, options: .init(trashDays: 0)) }
    #expect(try scene.place.list(.trash).isEmpty)
    #expect(try scene.place.list(.kept).allSatisfy { !$0.name.hasPrefix(Self.id) })
  }

  // MARK: Interruption

  @Test(arguments: [Trouble.Kind.death, .failure(.ioError), .failure(.noSpace)])
  func aReleaseMayBeCutShortAnywhere(kind: Trouble.Kind) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let id = try identifier()
    let whole = try makeScene()
    try pruner(whole, rehearsal.fileSystem).release(id)
    #expect(try keptOriginal(whole).onlyHere == nil)
    #expect(rehearsal.steps > 1)
    for step in 1...rehearsal.steps {
      let told = Comment(rawValue: "\(kind) at \(step)")
      let scene = try makeScene()
      let bytes = try scene.bytes(scene.placePath.appending("\(Self.id).sqlite"))
      // What it was cut short by is no matter.
      _ = try? pruner(scene, Trouble(kind, atStep: step).fileSystem).release(id)
      #expect(try scene.bytes(scene.placePath.appending("\(Self.id).sqlite")) == bytes, told)
      let note = try keptOriginal(scene).onlyHere
      #expect(note == nil || note?.entities == Self.entities, told)
      #expect(try pruner(scene).release(id) == note, told)
      #expect(try pruner(scene).prune(lastOne).plan.dropped.map(\.id) == [id], told)
    }
  }

  @Test(arguments: [Trouble.Kind.death, .failure(.ioError)])
  func bringingItBackMayBeCutShortAnywhere(kind: Trouble.Kind) throws {
    let id = try identifier()
    /// Brings one back whose note was left behind.
    func run(_ fileSystem: FileSystem) throws -> BackupScene {
      let scene = try makeScene(note: nil)
      _ = try pruner(scene).prune(lastOne)
      try scene.place.replace(Self.noteName, with: Array(Self.note.utf8), in: .kept)
      _ = try? pruner(scene, fileSystem).undelete(id)
      return scene
    }
    let rehearsal = Trouble(.death, atStep: 0)
    _ = try run(rehearsal.fileSystem)
    #expect(rehearsal.steps > 3)
    for step in 1...rehearsal.steps {
      let told = Comment(rawValue: "\(kind) at \(step)")
      let scene = try run(Trouble(kind, atStep: step).fileSystem)
      let report = try pruner(scene).prune(lastOne, options: .init(trashDays: 0))
      #expect(report.plan.dropped.isEmpty && report.emptied.isEmpty, told)
      if try !pruner(scene).trash().isEmpty { #expect(try pruner(scene).undelete(id) == [id], told) }
      #expect(try keptOriginal(scene).onlyHere?.entities == Self.entities, told)
      #expect(try scene.place.list(.trash).isEmpty, told)
      #expect(
        try scene.bytes(scene.placePath.appending("\(Self.id).sqlite")).count == scene.bytes(scene.store).count, told)
    }
  }
}
