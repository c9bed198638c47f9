import GRDB
import Lazaret
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

/// The recovery kits that an opening notes in the background.
struct RecoveryKitNoteTests {
  @Test func aHealthyStoreGetsAKitOnceADay() throws {
    let scene = try Scene()
    try scene.makeStore()
    let coordinator = try scene.coordinator(home: scene.home, notesKits: true)
    let opening = try coordinator.open(scene.store())
    try opening.store.write { try $0.execute(sql: "CREATE TABLE OTHER (X)") }
    guard case .noted(let event) = opening.backgroundPass?.wait().kit else {
      Issue.record("no kit was noted")
      return
    }
    #expect(event.kind == .recoveryKit)
    let path = try #require(event.path.path)
    #expect(path == scene.home.appending("Recovery").appending("App").appending("2026-11-21-10-11-12.kit"))
    let kit = try RecoveryKit(contentsOf: path)
    #expect(kit.storeUUID == "00000000-0000-4000-8000-000000000000")
    // The app's own connection is not disturbed.
    try opening.store.write { try $0.execute(sql: "INSERT INTO OTHER VALUES (1)") }
    try opening.store.close()
    #expect(try scene.names() == ["App.sqlite"])
    let again = try coordinator.open(scene.store())
    guard case .notDue = again.backgroundPass?.wait().kit else {
      Issue.record("a second kit was noted on the same day")
      return
    }
    try again.store.close()
  }

  @Test func noKitIsNotedWithoutAHomeOrOfANewStore() throws {
    let scene = try Scene()
    let created = try scene.coordinator(home: scene.home, notesKits: true).open(scene.store())
    #expect(created.backgroundPass == nil)
    try created.store.close()
    let opening = try scene.coordinator(notesKits: true).open(scene.store())
    #expect(opening.backgroundPass == nil)
    try opening.store.close()
  }

  @Test func noKitIsNotedOfAStoreThatWasPutInPlaceOfOneThatSQLiteRefused() throws {
    let scene = try Scene()
    try scene.makeStoreThatOnlySQLiteRefuses()
    let opening = try scene.coordinator(model: try AppModel.load(scene.schema), home: scene.home, notesKits: true)
      .open(scene.store())
    #expect(opening.events.map(\.kind) == [.quarantine, .salvage])
    #expect(opening.backgroundPass == nil)
    try opening.store.close()
  }
}
