import Backup
import Foundation
import LazaretTesting
import Platform
import SystemPackage
import TestSupport
import Testing

/// Large values that records refer to and that a backup does not have: what is told of them, held against the files beside the store
/// that was backed up.
struct LostValuesTests {
  private typealias Value = (name: String, bytes: [UInt8])

  /// A store whose persons have six large values in files of their own, and whose ships have a text that looks like the name of one.
  private func store(_ scene: RestoreScene) throws -> FilePath {
    let store = try scene.store("Ships.sqlite", seed: 5, records: 60, profile: .sparse)
    func reference(_ number: Int) -> (name: String, sql: String) {
      let name = "0F0E0D0C-0B0A-4908-8706-05040302010\(number)"
      return (name, "x'02\(Array(name.utf8).hexadecimal)00'")
    }
    var sql = "UPDATE ZSHIP SET ZLOG = \(reference(9).sql) WHERE Z_PK = (SELECT min(Z_PK) FROM ZSHIP);"
    for number in 0..<6 {
      let (name, value) = reference(number)
      try scene.folder.write(
        [UInt8](repeating: UInt8(number), count: 5000 + number), to: ".Ships_SUPPORT/_EXTERNAL_DATA/\(name)")
      sql += "UPDATE ZPERSON SET ZPHOTO = \(value) WHERE Z_PK = (SELECT Z_PK FROM ZPERSON LIMIT 1 OFFSET \(number));"
    }
    try scene.change(store, sql)
    return store
  }

  /// Such a store, and a backup that lacks some of the values without a word.
  private func scene(lacking count: Int = 1) throws -> (scene: RestoreScene, store: FilePath, values: [Value]) {
    let scene = try RestoreScene()
    let store = try store(scene)
    let values = try scene.values(of: store)
    try #require(values.count == 6)
    try scene.backups.add(1, try scene.bytes(store), values: Array(values.dropFirst(count)))
    return (scene, store, values)
  }

  @Test func aRestoreNamesThem() throws {
    let (scene, store, values) = try scene(lacking: 2)
    for salvages in [false, true] {
      let path = scene.folder.appending("Other\(salvages).sqlite")
      let report = try scene.restorer().restore(MadeBackups.id(1), to: path, options: .init(salvages: salvages))
      #expect(report.lostValues == values.prefix(2).map(\.name))
      #expect(report.values == values.count - 2)
      #expect(!report.isComplete && report.isContentRight && report.lostBlocks.isEmpty)
      #expect(try scene.bytes(path) == scene.bytes(store))
    }
  }

  @Test func thoseOfTheRecordsThatWereTakenAreNamed() throws {
    let (scene, _, values) = try scene(lacking: 2)
    func extract(_ entity: String) throws -> ExtractionReport {
      try scene.restorer().extract(
        EntitySelection(entities: [entity]), from: MadeBackups.id(1), to: scene.folder.appending("\(entity).sqlite"),
        temporary: scene.folder.path)
    }
    let persons = try extract("Person")
    #expect(persons.lostValues == values.prefix(2).map(\.name))
    #expect(persons.values == values.count - 2 && !persons.isComplete)
    // Ports have no large values: nothing of theirs is lost.
    let ports = try extract("Port")
    #expect(ports.lostValues.isEmpty && ports.values == 0 && ports.isComplete)
  }

  @Test func thoseThatAreDamagedAndThoseThatAreMissingAreNamedOnce() throws {
    let (scene, _, values) = try scene()
    // The values that are there lie one behind the other.
    try scene.backups.damage(1, .externalData, at: 100)
    let options = BackupRestorer.Options(salvages: true)
    let all = try scene.restorer().restore(
      MadeBackups.id(1), to: scene.folder.appending("Other.sqlite"), options: options)
    #expect(Set(all.lostValues).count == all.lostValues.count)
    let there = try scene.values(of: scene.folder.appending("Other.sqlite")).map(\.name)
    #expect(Set(all.lostValues) == Set(values.map(\.name)).subtracting(there) && !there.contains(values[0].name))
    #expect(all.values == there.count)
    let persons = try scene.restorer().extract(
      EntitySelection(entities: ["Person"]), from: MadeBackups.id(1), to: scene.folder.appending("Some.sqlite"),
      options: options, temporary: scene.folder.path)
    #expect(Set(persons.lostValues) == Set(all.lostValues) && persons.isContentRight && !persons.isComplete)
    let ports = try scene.restorer().extract(
      EntitySelection(entities: ["Port"]), from: MadeBackups.id(1), to: scene.folder.appending("Ports.sqlite"),
      options: options, temporary: scene.folder.path)
    #expect(ports.isComplete)
  }

  @Test func aPreviewSaysWhichOfThemThePresentStoreHas() throws {
    let (scene, store, values) = try scene()
    func preview() throws -> RestorePreview {
      try scene.restorer().preview(MadeBackups.id(1), over: store, temporary: scene.folder.path)
    }
    let first = try preview()
    #expect(first.values.lost == 1 && first.values.changed == 0 && first.values.added == 0)
    #expect(!first.isHarmless && first.changesSomething && first.valueWords.count == 1)
    // What the present store has not either cannot be lost.
    let folder = StoreFileSet(main: store).path(of: .externalData)
    try scene.system.unlink(folder.appending(values[0].name))
    #expect(try preview().isHarmless)
    try scene.system.unlink(folder.appending(values[1].name))
    let second = try preview()
    #expect(second.values.added == 1 && second.isHarmless)
    var other = values[2].bytes
    other[other.count / 2] ^= 1
    try scene.system.writeAtomically(other, to: folder.appending(values[2].name), replacing: true)
    let third = try preview()
    #expect(third.values.changed == 1 && third.values.lost == 0 && !third.isHarmless)
  }

  @Test func aVerificationSaysThatTheBackupLacksThem() throws {
    let (scene, _, _) = try scene(lacking: 3)
    let prover = BackupProver(surroundings: .still(), temporary: scene.folder.path)
    let proof = try prover.prove(MadeBackups.id(1), in: scene.backups.place)
    #expect(proof.result == .proven)
    #expect(proof.warnings?.map(\.code) == ["large-value-missing"])
    #expect(proof.warnings?.first?.words.hasPrefix("3 large values ") == true)
  }

  // MARK: Without a manifest

  /// Takes a backup, and its manifests away.
  private func withoutManifests(_ scene: RestoreScene, _ store: FilePath) throws -> StoredBackup {
    let place = scene.backups.place
    let backup = try BackupCreator(
      surroundings: .still(at: "2026-11-21T10:11:12Z", fileSystem: scene.system), temporary: scene.folder.path
    ).create(store, in: place)
    let carrier = try #require(backup.manifest?.carrier)
    let file = place.path.appending(carrier.name)
    let bytes = try scene.bytes(file)
    try scene.system.writeAtomically(Array(bytes[..<Int(carrier.bytes)]), to: file, replacing: true)
    for name in ["\(backup.id).json", "\(backup.id).proof.json"] {
      try scene.system.unlink(place.path.appending(name))
    }
    return backup
  }

  @Test func anArchiveThatIsLostWithTheManifestsIsNotForgotten() throws {
    let scene = try RestoreScene()
    let store = try store(scene)
    let values = try scene.values(of: store)
    let backup = try withoutManifests(scene, store)
    let archive = try #require(backup.manifest?.file(.externalData))
    try scene.system.unlink(scene.backups.place.path.appending(archive.name))
    let report = try scene.restorer().restore(backup.id, to: scene.folder.appending("Other.sqlite"))
    #expect(report.lostValues == values.map(\.name) && report.values == 0 && !report.isComplete)
    let proof = try BackupProver(surroundings: .still(), temporary: scene.folder.path)
      .prove(backup.id, in: scene.backups.place)
    #expect(proof.result == .failed)
    #expect(Set(proof.problems.map(\.code)) == ["large-value-lost"])
  }

  @Test(arguments: ["cut off", "flipped"])
  func anArchiveThatCannotBeReadToItsEndIsDamaged(kind: String) throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 20, profile: .sparse)
    // No record refers to these, so that the archive alone tells of them.
    for (number, name) in ["A", "B", "C", "D"].enumerated() {
      var generator = SeededGenerator(seed: UInt64(number))
      let bytes = (0..<800_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
      try scene.folder.write(bytes, to: ".Ships_SUPPORT/_EXTERNAL_DATA/\(name)")
    }
    let backup = try withoutManifests(scene, store)
    let archive = try #require(backup.manifest?.file(.externalData))
    let members = try #require(archive.members)
    try #require(members.count == 4)
    let file = scene.backups.place.path.appending(archive.name)
    var bytes = try scene.bytes(file)
    if kind == "cut off" {
      bytes.removeSubrange((members[0] + members[1] + members[2])...)
    } else {
      bytes[members[0] + members[1] + members[2] + members[3] / 2] ^= 1
    }
    try scene.system.writeAtomically(bytes, to: file, replacing: true)
    let path = scene.folder.appending("Other.sqlite")
    let error = #expect(throws: BackupError.self) { _ = try scene.restorer().restore(backup.id, to: path) }
    #expect(error?.kind == .damaged)
    let report = try scene.restorer().restore(backup.id, to: path, options: .init(salvages: true))
    #expect(!report.isComplete)
    #expect(report.lostBlocks.map { "\($0.file) \($0.block)" } == ["\(archive.name) 3"])
    #expect(report.values == 3)
  }

  // MARK: After an interruption

  @Test func theNextRestoreSaysWhatTheInterruptedOneHadLost() throws {
    let source = try scene()
    func copy() throws -> RestoreScene {
      let scene = try RestoreScene()
      try scene.backups.add(1, try source.scene.bytes(source.store), values: Array(source.values.dropFirst()))
      return scene
    }
    let rehearsal = Trouble(.death, atStep: 0)
    let first = try copy()
    _ = try first.restorer(rehearsal.fileSystem).restore(MadeBackups.id(1), to: first.folder.appending("App.sqlite"))
    var finished = 0
    for step in 1...rehearsal.steps {
      let scene = try copy()
      let path = scene.folder.appending("App.sqlite")
      do {
        _ = try scene.restorer(Trouble(.death, atStep: step).fileSystem).restore(MadeBackups.id(1), to: path)
      } catch { #expect(BackupError(any: error).isEnvironmental, "\(step): \(error)") }
      let isReady = try scene.system.status(of: scene.folder.appending(".App.sqlite.restoring/ready.json")) != nil
      do {
        let report = try scene.restorer().restore(MadeBackups.id(1), to: path)
        #expect(report.lostValues == [source.values[0].name] && !report.isComplete, "\(step)")
        #expect(report.values == source.values.count - 1, "\(step)")
        if isReady { finished += 1 }
      } catch { #expect(BackupError(any: error).code == "place-taken", "\(step)") }
    }
    #expect(finished > 0)
  }

  /// Notes of earlier versions, and of a very long account, do not say what was restored: the backup says it again.
  @Test(arguments: ["older", "long", "some records"])
  func aNoteWithoutAnAccountIsMadeGood(kind: String) throws {
    let source = try scene()
    let scene = try RestoreScene()
    try scene.backups.add(1, try source.scene.bytes(source.store), values: Array(source.values.dropFirst()))
    let path = scene.folder.appending("App.sqlite")
    let folder = RestoreFolder(for: StoreFileSet(main: path), in: scene.system)
    let note = scene.folder.appending(".App.sqlite.restoring/ready.json")
    do {
      let working = try folder.make()
      var report = try scene.restorer().stage(MadeBackups.id(1), in: folder)
      if kind == "long" {
        report.lostValues = (0..<150_000).map { "00000000-0000-4000-8000-" + String(100_000_000_000 + $0) }
      }
      if kind == "some records" { try scene.change(folder.store.main, "DELETE FROM ZPORT") }
      try folder.markReady(MadeBackups.id(1), report)
      _ = consume working
    }
    var said = try #require(
      try JSONSerialization.jsonObject(with: Data(try scene.system.contents(of: note, limit: 1 << 24)))
        as? [String: Any])
    if kind == "long" {
      #expect(said["restored"] == nil)
    } else {
      (said["restored"], said["whole"]) = (nil, nil)
      try scene.system.writeAtomically(
        Array(try JSONSerialization.data(withJSONObject: said)), to: note, replacing: true)
    }
    if kind == "some records" {
      let error = #expect(throws: FileError.self) { _ = try scene.restorer().restore(MadeBackups.id(1), to: path) }
      #expect(error?.code == "place-taken")
      return
    }
    let report = try scene.restorer().restore(MadeBackups.id(1), to: path)
    #expect(report.path == path && report.lostValues == [source.values[0].name] && !report.isComplete)
    #expect(report.values == source.values.count - 1)
    #expect(try scene.bytes(path) == source.scene.bytes(source.store))
    #expect(try scene.system.status(of: note) == nil)
  }

  @Test func aStoreOfSomeRecordsIsNeverToldAsTheWholeBackup() throws {
    let source = try RestoreScene()
    let store = try source.store("Ships.sqlite", seed: 5, records: 60)
    let bytes = try source.bytes(store)
    let options = EntitySelection(entities: ["Port"])
    let rehearsal = Trouble(.death, atStep: 0)
    func extract(_ scene: RestoreScene, _ trouble: Trouble) throws {
      try scene.backups.add(1, bytes)
      _ = try scene.restorer(trouble.fileSystem).extract(
        options, from: MadeBackups.id(1), to: scene.folder.appending("App.sqlite"), temporary: scene.folder.path)
    }
    try extract(try RestoreScene(), rehearsal)
    for step in 1...rehearsal.steps {
      let scene = try RestoreScene()
      do {
        try extract(scene, Trouble(.death, atStep: step))
      } catch { #expect(BackupError(any: error).isEnvironmental, "\(step): \(error)") }
      let path = scene.folder.appending("App.sqlite")
      do {
        _ = try scene.restorer().restore(MadeBackups.id(1), to: path)
        #expect(try scene.bytes(path) == bytes, "\(step)")
      } catch { #expect(BackupError(any: error).code == "place-taken", "\(step)") }
    }
  }
}
