import Platform
import SupportBundle
import TestSupport
import Testing

/// Bytes that promise nothing.
@Suite("Scrubbing hostile bytes")
struct HostileStoreTests {
  @Test("Mutated stores and logs neither crash nor hang it")
  func mutated() throws {
    let scene = try ScrubScene.plain(
      seed: 2, rows: 120, setup: "PRAGMA page_size = 1024", journal: "WAL",
      finish: ["UPDATE people SET note = note || ' more' WHERE id % 3 = 0"])
    let files = try scene.files()
    for seed in UInt64(1)...UInt64(mutationCount(usually: 24)) {
      var mutation = Mutation(seed: seed)
      let folder = try TemporaryFolder()
      let store = try folder.write(mutation.apply(to: files["main"] ?? []), to: "Store.sqlite")
      try folder.write(mutation.apply(to: files["wal"] ?? []), to: "Store.sqlite-wal")
      let mutated = ScrubScene(folder, store)
      let (scrubbed, _) = try mutated.scrubbed()
      let sizes = try mutated.files().mapValues(\.count)
      #expect(try scrubbed.files().mapValues(\.count) == sizes, "seed \(seed)")
    }
  }

  @Test("Files that are no store at all")
  func noStore() throws {
    for bytes in [[], Array("hello, this is a letter to somebody\n".utf8), [UInt8](repeating: 0, count: 5000)] {
      let folder = try TemporaryFolder()
      let scene = ScrubScene(folder, try folder.write(bytes, to: "Store.sqlite"))
      let (scrubbed, result) = try scene.scrubbed()
      #expect(try scrubbed.files()["main"]?.count == bytes.count)
      if bytes.count == 36 { #expect(try scrubbed.files()["main"] != bytes) }
      #expect(!result.report.remarks.isEmpty)
    }
  }

  @Test("A folder that has such files is left alone")
  func taken() throws {
    let scene = try ScrubScene.plain(seed: 1, rows: 20)
    #expect(throws: FileError.self) {
      try StoreScrubber(key: .random()).scrub(StoreFileSet(main: scene.store), into: scene.folder.path)
    }
  }

  @Test("A cancelled scrub leaves nothing")
  func cancelled() throws {
    let scene = try ScrubScene.plain(seed: 1, rows: 20)
    let target = try TemporaryFolder()
    #expect(throws: SupportBundleError.self) {
      try StoreScrubber(key: .random()).scrub(StoreFileSet(main: scene.store), into: target.path) { phase, _, _ in
        phase != .check
      }
    }
    #expect(try FileSystem().entries(of: target.path).isEmpty)
  }
}
