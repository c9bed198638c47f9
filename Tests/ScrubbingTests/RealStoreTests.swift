import Platform
import SystemPackage
import TestSupport
import Testing

/// Real stores, sound and damaged, where they are there.
@Suite("Scrubbing real stores", .enabled(if: RealMaterial.isAvailable, Comment(rawValue: RealMaterial.skipped)))
struct RealStoreTests {
  @Test("Real stores") func stores() throws {
    for store in RealMaterial.stores {
      let folder = try TemporaryFolder()
      let scene = ScrubScene(folder, try RealMaterial.copy(store, into: folder))
      guard try FileSystem().status(of: scene.store)?.size ?? 0 < 4 << 20 else { continue }
      let name = store.lastComponent?.string ?? ""
      let (scrubbed, _) = try scene.scrubbed()
      DamagedStoreTests.expectSame(scrubbed.salvage(), scene.salvage(), "\(store.string): salvage")
      DamagedStoreTests.expectSame(try scrubbed.integrityCheck(), try scene.integrityCheck(), "\(name): check")
    }
  }

  @Test("Malformed databases") func malformed() throws {
    for store in RealMaterial.files(below: "damaged/sqlite-malformed", ending: ".db") {
      let folder = try TemporaryFolder()
      let scene = ScrubScene(folder, try RealMaterial.copy(store, into: folder))
      let (scrubbed, _) = try scene.scrubbed()
      let size = try scene.files()["main"]?.count
      #expect(try scrubbed.files()["main"]?.count == size)
    }
  }
}
