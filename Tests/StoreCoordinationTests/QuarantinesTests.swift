import Lazaret
import Platform
import SystemPackage
import TestSupport
import Testing

/// The quarantined stores of a home.
struct QuarantinesTests {
  private func quarantines(_ scene: Scene) -> Quarantines { Quarantines(home: scene.home, surroundings: .still()) }

  @Test func addedStoresAreListedShownAndPutBack() throws {
    let scene = try Scene()
    try scene.makeStore()
    try scene.makeCompanions()
    let before = try scene.parts(scene.store())
    let quarantines = quarantines(scene)
    let stored = try quarantines.add(scene.store(), model: try scene.appModel(), reason: "a test", appVersion: "7.1")
    #expect(stored.receipt?.reason == .init(code: "by-request", words: "a test"))
    #expect(try scene.names() == ["Incompatible"])
    #expect(try quarantines.stores() == [stored])
    #expect(try quarantines.stores(at: scene.stores) == [stored])
    #expect(try quarantines.stores(at: scene.incompatible) == [stored])
    #expect(try quarantines.stores(at: scene.store()) == [stored])
    #expect(try quarantines.store(FilePath(stored.id)) == stored)
    // Any of its files names it.
    for name in [".sqlite", ".json", ".sqlite-wal"] {
      #expect(try quarantines.store(scene.incompatible.appending(stored.id + name)) == stored)
    }
    let (place, replaced) = try quarantines.release(FilePath(stored.id))
    #expect(place.main == scene.store())
    #expect(replaced == nil)
    #expect(try scene.parts(scene.store()) == before)
    #expect(try quarantines.stores().isEmpty)
    #expect(throws: LazaretError.self) { try quarantines.store(FilePath(stored.id)) }
  }

  @Test func aSoundStoreNeedsNoReason() throws {
    let scene = try Scene()
    try scene.makeStore()
    let stored = try quarantines(scene).add(scene.store(), model: try scene.appModel())
    #expect(stored.receipt?.reason.code == "by-request")
    #expect(stored.receipt?.model?.version == "V2")
    #expect(stored.receipt?.entities?.map(\.name) == ["Car"])
  }

  @Test func nothingIsNothingToQuarantine() throws {
    let scene = try Scene()
    let error = try #require(throws: LazaretError.self) { try quarantines(scene).add(scene.store()) }
    #expect(error.kind == .nothingToQuarantine)
    #expect(try scene.names().isEmpty)
    #expect(try scene.system.status(of: scene.home) == nil)
  }

  @Test func releaseRefusesATakenPlaceUnlessToldToReplace() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let old = try scene.parts(scene.store())
    let quarantines = quarantines(scene)
    let stored = try quarantines.add(scene.store())
    try scene.makeStore()
    let current = try scene.parts(scene.store())
    let error = try #require(throws: LazaretError.self) { try quarantines.release(FilePath(stored.id)) }
    #expect(error.kind == .placeTaken)
    #expect(try scene.parts(scene.store()) == current)
    let (_, replaced) = try quarantines.release(FilePath(stored.id), replacing: true)
    #expect(try scene.parts(scene.store()) == old)
    let set = try #require(replaced)
    #expect(try scene.parts(set.files.main) == current)
    #expect(set.receipt?.reason.words.contains(stored.id) == true)
  }

  @Test func changedEvidenceIsNotReleasedAndNothingMakesRoomForIt() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let quarantines = quarantines(scene)
    let stored = try quarantines.add(scene.store())
    try scene.makeStore()
    try scene.folder.write("changed", to: "Stores/Incompatible/\(stored.id).sqlite")
    let before = try FolderContents(of: scene.folder.path)
    let error = try #require(throws: LazaretError.self) {
      try quarantines.release(FilePath(stored.id), replacing: true)
    }
    #expect(error.kind == .evidenceChanged)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func aStoreWhoseFilesAreGoneIsNamedByItsReceipt() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let quarantines = quarantines(scene)
    let stored = try quarantines.add(scene.store())
    for member in try stored.files.members(in: FileSystem()) { try FileSystem().removeTree(member.path) }
    #expect(try quarantines.stores().isEmpty)
    #expect(try quarantines.stores(includingMissing: true).map(\.id) == [stored.id])
    for name in [FilePath(stored.id), stored.files.main] {
      let error = #expect(throws: LazaretError.self) { try quarantines.salvage(name) }
      #expect(error?.kind == .evidenceMissing)
    }
    _ = try quarantines.discard(FilePath(stored.id))
    #expect(try quarantines.stores(includingMissing: true).isEmpty)
  }

  @Test func aFailedReleasePutsBackWhatMadeRoomForIt() throws {
    let rehearsal = Trouble(.death, atStep: 0)
    for step in 0...200 {
      let scene = try Scene()
      try scene.makeDamagedStore()
      let old = try scene.parts(scene.store())
      let stored = try quarantines(scene).add(scene.store())
      try scene.makeStore()
      let current = try scene.parts(scene.store())
      let trouble = step == 0 ? rehearsal : Trouble(.failure(.noSpace), atStep: step)
      let troubled = Quarantines(home: scene.home, surroundings: .still(fileSystem: trouble.fileSystem))
      do { _ = try troubled.release(FilePath(stored.id), replacing: true) } catch let error as any ReportableError {
        #expect(error.isEnvironmental || error.code == "place-taken", "step \(step): \(error)")
      }
      if step > 0, step >= rehearsal.steps { break }
      // Both stores are whole, one of them is in the place or can be brought there.
      _ = try? quarantines(scene).add(scene.store("nothing"))
      var found = try quarantines(scene).stores(at: scene.stores).map { try scene.parts($0.files.main) }
      found.append(try scene.parts(scene.store()))
      #expect(found.contains(old), "step \(step)")
      #expect(found.contains(current), "step \(step)")
      // Asking again does it, wherever it had stopped.
      if try scene.parts(scene.store()) != old {
        let id = try #require(
          try quarantines(scene).stores(at: scene.stores).first { try scene.parts($0.files.main) == old }
        ).id
        _ = try quarantines(scene).release(FilePath(id), replacing: true)
      }
      #expect(try scene.parts(scene.store()) == old, "step \(step)")
    }
  }

  @Test func releaseGoesElsewhereToo() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let stored = try quarantines(scene).add(scene.store())
    let (place, _) = try quarantines(scene).release(FilePath(stored.id), to: scene.folder.appending("Copy.db"))
    #expect(place.main == scene.folder.appending("Copy.db"))
    #expect(try scene.parts(place.main) == before)
    // A place whose folder is missing is refused, and the store stays.
    try scene.makeDamagedStore()
    let second = try quarantines(scene).add(scene.store())
    #expect(throws: FileError.self) {
      try quarantines(scene).release(FilePath(second.id), to: scene.folder.appending("no/such/App.sqlite"))
    }
    #expect(try scene.quarantined().map(\.id) == [second.id])
  }

  @Test func aNameThatTwoFoldersHaveIsAmbiguous() throws {
    let first = try Scene()
    let second = try Scene()
    let quarantines = quarantines(first)
    for scene in [first, second] {
      try scene.makeDamagedStore()
      _ = try quarantines.add(scene.store())
    }
    #expect(try quarantines.stores().count == 2)
    let error = try #require(throws: LazaretError.self) { try quarantines.store("2026-11-21-10-11-12") }
    #expect(error.kind == .ambiguous)
    #expect(error.hint.contains(second.incompatible.string))
    let path = second.incompatible.appending("2026-11-21-10-11-12.sqlite")
    #expect(try quarantines.store(path).files.main == path)
    _ = try quarantines.discard(path)
    #expect(try quarantines.store("2026-11-21-10-11-12").files.main.folder == first.incompatible)
  }

  @Test func discardRemovesItForGood() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    try scene.makeStore("Other.sqlite")
    let quarantines = quarantines(scene)
    let first = try quarantines.add(scene.store())
    let second = try quarantines.add(scene.store("Other.sqlite"))
    _ = try quarantines.discard(FilePath(first.id))
    #expect(try quarantines.stores() == [second])
    #expect(
      try scene.system.entries(of: scene.incompatible).map(\.string) == ["\(second.id).json", "\(second.id).sqlite"])
  }

  @Test func aMissingCatalogueIsNoError() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let stored = try quarantines(scene).add(scene.store())
    try scene.system.unlink(scene.home.appending("Quarantines.json"))
    #expect(try quarantines(scene).stores().isEmpty)
    #expect(try quarantines(scene).stores(at: scene.stores) == [stored])
    #expect(try quarantines(scene).store(stored.files.main) == stored)
  }

  @Test(arguments: ["", "{", "[]", "{\"format\":1}", "\u{0}\u{1}"])
  func aCatalogueThatCannotBeReadMovesNothing(content: String) throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    try scene.folder.write(content, to: "Home/Quarantines.json")
    let before = try FolderContents(of: scene.stores)
    for attempt in [{ _ = try quarantines(scene).stores() }, { _ = try quarantines(scene).add(scene.store()) }] {
      let error = try #require(throws: LazaretError.self, performing: attempt)
      #expect(error.kind == .catalogueUnreadable)
      #expect(!error.hint.isEmpty)
    }
    #expect(try FolderContents(of: scene.stores) == before)
  }

  @Test func aFolderThatHasGoneIsLeftOut() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    _ = try quarantines(scene).add(scene.store())
    TemporaryFolder.remove(scene.stores)
    #expect(try quarantines(scene).stores().isEmpty)
  }

  @Test func aLostReceiptCostsTheStoreItsPlaceOnly() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let before = try scene.parts(scene.store())
    let stored = try quarantines(scene).add(scene.store())
    try scene.system.unlink(stored.receiptPath)
    #expect(try quarantines(scene).stores().map(\.receipt) == [nil])
    let error = try #require(throws: LazaretError.self) { try quarantines(scene).release(FilePath(stored.id)) }
    #expect(error.kind == .receiptUnreadable)
    #expect(error.hint == LazaretErrorKind.givePlace)
    _ = try quarantines(scene).release(FilePath(stored.id), to: scene.store())
    #expect(try scene.parts(scene.store()) == before)
  }
}
