import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Salvages whose result cannot be installed yet, or was on its way when a run ended.
struct WaitingSalvageTests {
  @Test func aStoreThatTurnsOutNewerIsSalvagedOnceAndWaits() throws {
    // Without its first page the store does not say of which version it is until its metadata is salvaged.
    let scene = try SalvagingScene("page1:zero", version: "V3")
    for round in 1...3 {
      let error = try #require(throws: LazaretError.self) { try scene.coordinator().open(scene.scene.store()) }
      #expect(error.kind == .unavailable, "round \(round)")
      #expect(error.code == "newer-version", "round \(round): \(error)")
      #expect(error.hint.contains("quarantine"), "round \(round): \(error.hint)")
      let receipt = try #require(try scene.scene.quarantined().first?.receipt)
      #expect(receipt.history.map(\.kind).count == 2, "round \(round)")
      #expect(receipt.salvage?.state == .salvaged)
      #expect(receipt.salvage?.isWanted == true)
      #expect(receipt.salvage?.failure?.code == Receipt.Salvage.newerAppCode)
      #expect(try scene.scene.parts(scene.scene.store())["main"] == nil)
    }
    // A newer app has it at once.
    let bundle = try ModelBundle.load(path: scene.scene.model, order: ["V1", "V2", "V3"])
    let versions = bundle.versions.map { ModelVersion(name: $0.name, model: $0.model, isCurrent: $0.name == "V3") }
    let newer = try #require(ModelBundle(name: "App", versions: versions))
    let opening = try StoreCoordinator(
      model: .coreData(newer), policy: .init(checkInterval: nil, recoveryKitInterval: nil), home: scene.scene.home,
      surroundings: .still()
    ).open(scene.scene.store())
    #expect(try SalvagingScene.names(opening.store) == SalvagingScene.allNames())
    try opening.store.close()
  }

  @Test func aSalvageThatCannotFitMovesNothing() throws {
    let scene = try SalvagingScene()
    let needed = try SalvageNeeds(of: StoreFileSet(main: scene.scene.store()), in: FileSystem()).installingBytes(nil)
    #expect(needed > 2 * Int64(scene.before["main"]?.count ?? 0))
  }

  @Test func anInstallationElsewhereThatWasKilledIsListedAndEnded() throws {
    let rehearsal = Trouble(.death, atStep: 0)
    var interruptions = 0
    for step in 0...400 {
      let scene = try SalvagingScene()
      let quarantines = Quarantines(home: scene.scene.home, surroundings: .still())
      let model = try scene.scene.appModel()
      let stored = try quarantines.add(scene.scene.store(), model: model)
      _ = try quarantines.salvage(stored.files.main, model: model)
      let elsewhere = try scene.scene.folder.write("something else", to: "Elsewhere/Other.sqlite")
      let trouble = step == 0 ? rehearsal : Trouble(.death, atStep: step)
      let troubled = Quarantines(home: scene.scene.home, surroundings: .still(fileSystem: trouble.fileSystem))
      do {
        _ = try troubled.install(stored.files.main, to: elsewhere, model: model)
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      let now = try quarantines.store(stored.files.main)
      let isEmpty = try scene.scene.system.status(of: elsewhere) == nil
      let interrupted = try quarantines.interruptedInstallation(of: now)
      #expect((interrupted != nil) == isEmpty, "step \(step)")
      if isEmpty {
        interruptions += 1
        #expect(interrupted?.lastComponent == elsewhere.lastComponent)
        _ = try quarantines.install(stored.files.main, to: elsewhere, model: model)
        let bundle = try ModelBundle.load(path: scene.scene.model, order: ["V1", "V2", "V3"])
        let store = try PersistentStore(opening: elsewhere, model: bundle.current.model)
        #expect(try SalvagingScene.names(store) == SalvagingScene.allNames(), "step \(step)")
        try store.close()
        #expect(try quarantines.interruptedInstallation(of: quarantines.store(stored.files.main)) == nil)
      }
      if step > 0, step > rehearsal.steps { break }
    }
    #expect(interruptions > 0)
  }
}
