import Backup
import GRDB
import LazaretTesting
import Platform
import SystemPackage
import TestSupport
import Testing

/// Restoring backups to a path.
struct RestoringTests {
  private func expectError(_ kind: BackupError.Kind, _ code: String? = nil, _ body: () throws -> Void) {
    let error = #expect(throws: (any Error).self) { try body() }.map { BackupError(any: $0) }
    if let code { #expect(error?.code == code) } else { #expect(error?.kind == kind) }
  }

  @Test(arguments: [StoreProfile.typical, .edge])
  func aStoreComesBackAsItWas(profile: StoreProfile) throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 3000, profile: profile)
    let (bytes, values) = (try scene.bytes(store), try scene.values(of: store))
    #expect(bytes.count > MadeBackups.blockLength)
    try scene.backups.add(1, bytes, values: values)
    let path = scene.folder.appending("Other.sqlite")
    let report = try scene.restorer().restore(MadeBackups.id(1), to: path)
    #expect(report.isComplete && report.values == values.count && report.bytes == Int64(bytes.count))
    #expect(try scene.bytes(path) == bytes)
    #expect(try scene.values(of: path).map(\.name) == values.map(\.name))
    #expect(try scene.values(of: path).map(\.bytes) == values.map(\.bytes))
    #expect(try scene.system.status(of: scene.folder.appending(".Other.sqlite.restoring")) == nil)
    expectError(.file, "place-taken") { _ = try scene.restorer().restore(MadeBackups.id(1), to: path) }
  }

  /// Three states of a store: the second has more pages than the first, the third fewer.
  private func chain(_ scene: RestoreScene) throws -> [[UInt8]] {
    let store = try scene.store("Ships.sqlite", records: 400)
    let first = try scene.bytes(store)
    try scene.change(
      store,
      "INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT Z_PK + 100000, Z_ENT, 1, hex(randomblob(600)) FROM ZPORT")
    let second = try scene.bytes(store)
    try scene.change(store, "DELETE FROM ZPORT WHERE Z_PK > 100000; UPDATE ZPERSON SET ZNAME = 'x' WHERE Z_PK % 7 = 0")
    try scene.change(store, "PRAGMA incremental_vacuum")
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { try $0.execute(sql: "VACUUM") }
    try queue.close()
    let third = try scene.bytes(store)
    #expect(second.count > first.count && third.count < second.count)
    try scene.backups.add(1, first)
    try scene.backups.add(2, second, parent: (1, first), depth: 2)
    try scene.backups.add(3, third, parent: (2, second), depth: 3)
    return [first, second, third]
  }

  @Test func everyLinkOfAChainComesBack() throws {
    let scene = try RestoreScene()
    for (place, bytes) in try chain(scene).enumerated() {
      let path = scene.folder.appending("Restored\(place).sqlite")
      let report = try scene.restorer().restore(MadeBackups.id(place + 1), to: path)
      #expect(report.chain.count == place + 1)
      #expect(try scene.bytes(path) == bytes)
    }
  }

  @Test func theNewestOrTheOneOfATimeIsChosen() throws {
    let scene = try RestoreScene()
    _ = try chain(scene)
    let restorer = scene.restorer()
    #expect(try restorer.choose().id == MadeBackups.id(3))
    #expect(try restorer.choose(notLaterThan: MadeBackups.id(2).date).id == MadeBackups.id(2))
    expectError(.notFound) { _ = try restorer.choose(notLaterThan: Timestamp(secondsSince1970: 0)) }
    expectError(.notFound) { _ = try restorer.choose(MadeBackups.id(9)) }
    let failed = BackupProof(id: MadeBackups.id(3), date: MadeBackups.id(3).date, result: .failed, depth: .files)
    try scene.backups.place.replace("\(failed.id).proof.json", with: try failed.json(), in: .kept)
    #expect(try restorer.choose().id == MadeBackups.id(2))
    let choice = try restorer.choice()
    #expect(choice.passedOver.map(\.id) == [MadeBackups.id(3)] && choice.passedOver.map(\.reason) == [.failed])
    #expect(try restorer.choice(MadeBackups.id(1)).passedOver.isEmpty)
  }

  @Test func oneThatIsDatedInTheFutureIsNotTheNewest() throws {
    let scene = try RestoreScene()
    let bytes = try scene.bytes(try scene.store("Ships.sqlite", records: 10))
    let now = Timestamp("2026-11-21T10:11:12Z")?.secondsSince1970 ?? 0
    let future = Int((now - MadeBackups.id(0).date.secondsSince1970) / 60) + 60
    try scene.backups.add(future, bytes)
    let restorer = scene.restorer()
    let error = #expect(throws: BackupError.self) { try restorer.choose() }
    #expect(error?.kind == .notFound && error?.detail.contains("dated in the future") == true)
    try scene.backups.add(1, bytes)
    try scene.backups.add(2, bytes)
    // One that lacks a file is passed over as well.
    try scene.backups.place.delete("\(MadeBackups.id(2)).sqlite.gz", in: .kept)
    let choice = try restorer.choice()
    #expect(choice.backup.id == MadeBackups.id(1))
    #expect(choice.passedOver.map(\.reason) == [.future, .broken])
    // One that is named is restored all the same.
    #expect(try restorer.choose(MadeBackups.id(future)).id == MadeBackups.id(future))
  }

  @Test func damageIsNamedAndTheRestIsSalvaged() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", records: 8000)
    let bytes = try scene.bytes(store)
    #expect(bytes.count > 3 * MadeBackups.blockLength)
    try scene.backups.add(1, bytes)
    try scene.backups.damage(1, .database, at: MadeBackups.blockLength * 3 / 2)
    let before = try scene.system.entries(of: scene.folder.path)
    let path = scene.folder.appending("Other.sqlite")
    expectError(.damaged) { _ = try scene.restorer().restore(MadeBackups.id(1), to: path) }
    #expect(try scene.system.entries(of: scene.folder.path) == before)
    let report = try scene.restorer().restore(MadeBackups.id(1), to: path, options: .init(salvages: true))
    #expect(!report.isComplete)
    #expect(report.lostBlocks.map(\.block) == [1])
    let (old, after) = (try RestoreScene.rows(store), try RestoreScene.rows(path))
    var (all, found) = (0, 0)
    for table in ["ZSHIP", "ZPERSON", "ZPORT", "ZFLAG"] {
      all += old[table]?.count ?? 0
      for (key, row) in after[table] ?? [:] where old[table]?[key]?["ZNAME"] == row["ZNAME"] { found += 1 }
    }
    // One block of several is gone; what stands in the others is back.
    #expect(found > all / 3 && found < all, "\(found) of \(all)")
  }

  @Test func aLostParentIsNamedAndItsDeltasAreSalvaged() throws {
    let scene = try RestoreScene()
    let states = try chain(scene)
    try scene.backups.damage(2, .delta, at: 5000)
    let path = scene.folder.appending("Other.sqlite")
    expectError(.damaged) { _ = try scene.restorer().restore(MadeBackups.id(2), to: path) }
    // Where every page that is lost has changed since, the next one is what it was.
    let third = scene.folder.appending("Third.sqlite")
    do {
      _ = try scene.restorer().restore(MadeBackups.id(3), to: third)
      #expect(try scene.bytes(third) == states[2])
    } catch let error as BackupError {
      #expect(error.kind == .damaged)
    }
    #expect(throws: Never.self) {
      try scene.restorer().restore(MadeBackups.id(1), to: scene.folder.appending("First.sqlite"))
    }
    for object in try scene.backups.place.list(.kept) where object.name.hasPrefix("\(MadeBackups.id(1))") {
      try scene.backups.place.delete(object.name, in: .kept)
    }
    expectError(.chainBroken) { _ = try scene.restorer().restore(MadeBackups.id(3), to: path) }
  }

  @Test func valuesThatAreDamagedAreNamed() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite")
    let values = [("_EXTERNAL_DATA/A", Array("first".utf8)), ("_EXTERNAL_DATA/B", Array("second".utf8))]
    try scene.backups.add(1, try scene.bytes(store), values: values)
    try scene.backups.damage(1, .externalData, at: 10 + 5 + 7)
    let path = scene.folder.appending("Other.sqlite")
    expectError(.damaged) { _ = try scene.restorer().restore(MadeBackups.id(1), to: path) }
    let report = try scene.restorer().restore(MadeBackups.id(1), to: path, options: .init(salvages: true))
    // Both stand in the one block that is lost; those that the records refer to were never backed up.
    #expect(report.lostValues == values.map(\.0) + (try scene.values(of: store).map(\.name)))
    #expect(try scene.bytes(path) == scene.bytes(store))
  }

  @Test func aValueThatWouldLeadElsewhereIsRefused() throws {
    for name in ["../../Evil", "/tmp/Evil", "_EXTERNAL_DATA/../../../Evil", "."] {
      let scene = try RestoreScene()
      let store = try scene.store("Ships.sqlite", records: 5)
      try scene.backups.add(1, try scene.bytes(store), values: [(name, [1, 2, 3])])
      let before = try FolderContents(of: scene.folder.path)
      expectError(.damaged) {
        _ = try scene.restorer().restore(MadeBackups.id(1), to: scene.folder.appending("Other.sqlite"))
      }
      #expect(try FolderContents(of: scene.folder.path) == before)
    }
  }

  @Test func aRestoreMayBeCutShortAnywhere() throws {
    let source = try RestoreScene()
    let store = try source.store("Ships.sqlite", records: 60)
    let bytes = try source.bytes(store)
    let values = [("_EXTERNAL_DATA/A", Array("first".utf8)), ("_EXTERNAL_DATA/B", Array("second".utf8))]
    func scene() throws -> RestoreScene {
      let scene = try RestoreScene()
      try scene.backups.add(1, bytes, values: values)
      return scene
    }
    let rehearsal = Trouble(.death, atStep: 0)
    let first = try scene()
    _ = try first.restorer(rehearsal.fileSystem).restore(MadeBackups.id(1), to: first.folder.appending("App.sqlite"))
    #expect(rehearsal.steps > 15)
    for kind: Trouble.Kind in [.death, .failure(.noSpace), .failure(.ioError)] {
      for step in 1...rehearsal.steps {
        let scene = try scene()
        let path = scene.folder.appending("App.sqlite")
        let told = Comment(rawValue: "\(kind) at \(step)")
        let trouble = Trouble(kind, atStep: step)
        do {
          _ = try scene.restorer(trouble.fileSystem).restore(MadeBackups.id(1), to: path)
        } catch { #expect(BackupError(any: error).isEnvironmental, "\(told): \(error)") }
        // Nothing there, or all of it: never a store without its values.
        if try scene.system.status(of: path) != nil {
          #expect(try scene.bytes(path) == bytes, told)
          #expect(try scene.values(of: path).map(\.bytes) == values.map(\.1), told)
          if try scene.system.status(of: scene.folder.appending(".App.sqlite.restoring")) == nil { continue }
        }
        do {
          _ = try scene.restorer().restore(MadeBackups.id(1), to: path)
        } catch {
          // It was in its place already, and nothing but an empty folder was left.
          #expect(BackupError(any: error).code == "place-taken", told)
        }
        #expect(try scene.bytes(path) == bytes, told)
        #expect(try scene.values(of: path).map(\.bytes) == values.map(\.1), told)
        #expect(try scene.system.status(of: scene.folder.appending(".App.sqlite.restoring")) == nil, told)
      }
    }
  }
}
