import Foundation
import GRDB
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import TestSupport
import Testing

/// Salvaging from the quarantine, again and again, in the background, and installing what came out.
struct QuarantineSalvageTests {
  private func quarantines(_ scene: SalvagingScene) -> Quarantines {
    Quarantines(home: scene.scene.home, surroundings: .still())
  }

  /// A scene whose store lies in quarantine.
  private func quarantined(_ kind: String = "header") throws -> (SalvagingScene, QuarantinedStore) {
    let scene = try SalvagingScene(kind)
    let stored = try quarantines(scene).add(scene.scene.store(), reason: "a test", appVersion: "7.1")
    return (scene, stored)
  }

  @Test func theSameEvidenceGivesTheSameAgain() throws {
    let (scene, stored) = try quarantined()
    let quarantines = quarantines(scene)
    let model = try scene.scene.appModel()
    let first = try quarantines.salvage(stored.files.main, model: model)
    let kept = scene.scene.folder.appending("First.sqlite")
    _ = try scene.scene.system.copy(first.store, to: kept)
    let second = try quarantines.salvage(stored.files.main, model: model)
    #expect(first.store != second.store)
    #expect(try scene.scene.system.status(of: first.store) == nil)
    #expect(try scene.scene.system.status(of: first.reportPath) == nil)
    #expect(first.result.entities == second.result.entities)
    var version: ManagedObjectModel?
    if case .coreData(let bundle) = model { version = bundle.current.model }
    let stores = [kept, second.store].map { path in Result { try PersistentStore(opening: path, model: version) } }
    let comparison = try StoreComparison(try stores[0].get(), try stores[1].get())
    #expect(comparison.differences.filter { $0.kind != .metadata }.isEmpty)
    for store in stores { try store.get().close() }
    // The third time the first names are free again.
    #expect(try quarantines.salvage(stored.files.main, model: model).store == first.store)
    try scene.scene.expectQuarantined(scene.before, in: try scene.scene.quarantined())
    #expect(
      try quarantines.stores().first?.receipt?.history.map(\.kind) == [.quarantined, .salvaged, .salvaged, .salvaged])
    #expect(try scene.leftovers().isEmpty)
  }

  @Test func changedEvidenceIsNeverTheSameEvidence() throws {
    let (scene, stored) = try quarantined()
    let quarantines = quarantines(scene)
    let model = try scene.scene.appModel()
    let first = try quarantines.salvage(stored.files.main, model: model)
    #expect(first.result.evidence?.changes == nil && first.result.evidence?.digest != nil)
    // One byte of free space or of a value; the size stays.
    var bytes = try scene.scene.system.contents(of: stored.files.main, limit: 1 << 26)
    bytes[bytes.count - 1] ^= 0xFF
    try scene.scene.system.writeAtomically(bytes, to: stored.files.main, replacing: true)
    let second = try quarantines.salvage(stored.files.main, model: model)
    let name = try #require(stored.files.main.lastComponent?.string)
    #expect(second.result.evidence?.changes?.map(\.name.text) == [name])
    #expect(second.result.evidence?.changes?.map(\.kind) == [.content])
    #expect(!second.result.isComplete && !second.report.isComplete)
    #expect(second.report.remarks.contains { $0.contains(name) })
    let comparison = try #require(second.comparison)
    #expect(!comparison.evidence.isEmpty && !comparison.words.contains("same evidence"))
    #expect(comparison.evidence.contains { $0.contains(name) })
    // A third one reads the same changed files, and says that they are not what was quarantined.
    let third = try quarantines.salvage(stored.files.main, model: model)
    #expect(third.comparison?.words.contains("same evidence") == false)
  }

  @Test func aFailureKeepsTheEarlierResult() throws {
    let (scene, stored) = try quarantined()
    let model = try scene.scene.appModel()
    let first = try quarantines(scene).salvage(stored.files.main, model: model)
    let rehearsal = Trouble(.death, atStep: 0)
    for step in stride(from: 0, through: 400, by: 3) {
      let trouble = step == 0 ? rehearsal : Trouble(.failure(.noSpace), atStep: step)
      let troubled = Quarantines(home: scene.scene.home, surroundings: .still(fileSystem: trouble.fileSystem))
      do {
        _ = try troubled.salvage(stored.files.main, model: model)
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      let now = try #require(try quarantines(scene).stores().first?.receipt?.salvage)
      #expect(now.state == .salvaged, "step \(step)")
      let result = try #require(now.result)
      let path = scene.scene.incompatible.pushing(try #require(result.name.path))
      #expect(try FileDigest(of: scene.scene.system.open(path)).hexadecimal == result.sha256, "step \(step)")
      #expect(result.entities == first.result.entities, "step \(step)")
      if step > rehearsal.steps { break }
    }
    try scene.scene.expectQuarantined(scene.before, in: try scene.scene.quarantined())
  }

  @Test func withoutAModelTheStoresOwnIsTaken() throws {
    let (scene, stored) = try quarantined("header")
    let salvaged = try quarantines(scene).salvage(stored.files.main)
    #expect(salvaged.result.isUsable)
    #expect(salvaged.result.recovered >= Int64(SalvagingScene.records))
  }

  @Test func whatHoldsNothingSaysSo() throws {
    let scene = try Scene()
    try scene.makeDamagedStore()
    let quarantines = Quarantines(home: scene.home, surroundings: .still())
    let stored = try quarantines.add(scene.store(), appVersion: "7.1")
    let before = try scene.parts(stored.files.main)
    let error = #expect(throws: LazaretError.self) { try quarantines.salvage(stored.files.main) }
    #expect(error?.code == "salvage-failed")
    let now = try #require(try quarantines.stores().first)
    #expect(now.receipt?.salvage?.state == .failed)
    #expect(now.receipt?.salvage?.failure?.code == "nothing-to-salvage")
    #expect(now.receipt?.history.map(\.kind) == [.quarantined, .salvageFailed])
    #expect(try scene.parts(stored.files.main) == before)
  }

  @Test func aReceiptOfAnEarlierVersionIsReadAndGoesOn() throws {
    let (scene, stored) = try quarantined()
    var text = String(
      decoding: try scene.scene.system.contents(of: stored.receiptPath, limit: 1 << 20), as: UTF8.self)
    let start = try #require(text.range(of: "  \"timeline\""))
    let end = try #require(text.range(of: "],\n", range: start.lowerBound..<text.endIndex))
    text.removeSubrange(start.lowerBound..<end.upperBound)
    try scene.scene.folder.write(text, to: "Stores/Incompatible/\(stored.id).json")
    let old = try #require(try quarantines(scene).stores().first?.receipt)
    #expect(old.timeline == nil && old.salvage == nil)
    #expect(old.history.map(\.kind) == [.quarantined])
    _ = try quarantines(scene).salvage(stored.files.main, model: try scene.scene.appModel())
    #expect(try quarantines(scene).stores().first?.receipt?.history.map(\.kind) == [.quarantined, .salvaged])
  }

  @Test func aLostReceiptCostsTheStateOnly() throws {
    let (scene, stored) = try quarantined()
    try scene.scene.system.unlink(stored.receiptPath)
    let salvaged = try quarantines(scene).salvage(stored.files.main, model: try scene.scene.appModel())
    #expect(salvaged.result.recovered >= Int64(SalvagingScene.records))
    #expect(try scene.scene.parts(stored.files.main) == scene.before)
  }

  // MARK: Installing

  @Test func aSalvagedStoreThatWasChangedIsNotInstalled() throws {
    let (scene, stored) = try quarantined()
    let salvaged = try quarantines(scene).salvage(stored.files.main, model: try scene.scene.appModel())
    let file = try scene.scene.system.update(salvaged.store)
    try file.write([1, 2, 3])
    let error = #expect(throws: LazaretError.self) { try quarantines(scene).install(stored.files.main) }
    #expect(error?.kind == .evidenceChanged)
    #expect(try scene.scene.parts(scene.scene.store()).isEmpty)
  }

  @Test func aStoreThatIsOpenIsNotReplaced() throws {
    let scene = try SalvagingScene()
    let opening = try scene.coordinator(OpeningPolicy(whenDamaged: .salvageLater)).open(scene.scene.store())
    let stored = try #require(try quarantines(scene).stores().first)
    _ = try quarantines(scene).salvage(stored.files.main, model: try scene.scene.appModel())
    let error = #expect(throws: FileError.self) { try quarantines(scene).install(stored.files.main) }
    #expect(error?.isEnvironmental == true)
    #expect(try scene.scene.quarantined().map(\.id) == [stored.id])
    try opening.store.write {
      try $0.execute(
        sql:
          "INSERT INTO ZCAR (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 'here'); "
          + "UPDATE Z_PRIMARYKEY SET Z_MAX = 1")
    }
    try opening.store.close()
    _ = try quarantines(scene).install(stored.files.main)
    let again = try scene.coordinator().open(scene.scene.store())
    #expect(try SalvagingScene.names(again.store) == SalvagingScene.allNames())
    try again.store.close()
  }

  @Test func releasingAndDiscardingTakeTheSalvageAlong() throws {
    let (scene, stored) = try quarantined()
    _ = try quarantines(scene).salvage(stored.files.main, model: try scene.scene.appModel())
    _ = try quarantines(scene).release(stored.files.main)
    #expect(try scene.scene.parts(scene.scene.store()) == scene.before)
    let second = try quarantines(scene).add(scene.scene.store())
    _ = try quarantines(scene).salvage(second.files.main, model: try scene.scene.appModel())
    _ = try quarantines(scene).discard(second.files.main)
    let names = try scene.scene.system.entries(of: scene.scene.incompatible).map(\.string)
    #expect(names.allSatisfy { !$0.contains(second.id + ".") || second.id == stored.id }, "\(names)")
    #expect(try quarantines(scene).stores().isEmpty)
  }

  @Test func oneSalvageAtATime() throws {
    let (scene, stored) = try quarantined()
    let inside = Mutex<(any Error)?>(nil)
    let other = quarantines(scene)
    let observer = OpeningObserver { progress in
      guard progress.salvagePhase == .rows, inside.withLock({ $0 == nil }) else { return }
      do { _ = try other.discard(stored.files.main) } catch { inside.withLock { $0 = error } }
    }
    _ = try quarantines(scene).salvage(
      stored.files.main, model: try scene.scene.appModel(), observer: observer)
    let error = try #require(inside.withLock { $0 } as? FileError)
    #expect(error.kind == .locked)
    try scene.scene.expectQuarantined(scene.before, in: try scene.scene.quarantined())
  }
}
