import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("What a salvage leaves behind")
struct ResultTests {
  @Test("Nothing is overwritten, least of all the store")
  func targets() throws {
    let scene = try SalvageScene(seed: 1, books: 20)
    let store = try scene.folder.write(scene.main, to: "Store.sqlite")
    let taken = try scene.folder.write("here", to: "Taken.sqlite")
    for target in [store, scene.folder.appending("Store.sqlite-wal"), taken] {
      #expect(throws: SalvageError.self) { try Salvager().salvageRaw(store, to: target) }
    }
    #expect(try FileSystem().contents(of: taken, limit: 10) == Array("here".utf8))
    #expect(try FileSystem().contents(of: store, limit: 1 << 26) == scene.main)
  }

  @Test("What is no database is an error, and leaves no file")
  func nothing() throws {
    let folder = try TemporaryFolder()
    let store = try folder.write(Array(repeating: 7, count: 9000), to: "Store.sqlite")
    let error = #expect(throws: SalvageError.self) {
      try Salvager().salvageRaw(store, to: folder.appending("Out.sqlite"))
    }
    #expect(error?.code == "nothing-to-salvage")
    #expect(try FileSystem().entries(of: folder.path).map(\.string) == ["Store.sqlite"])
  }

  @Test("It can be cancelled, and leaves no file")
  func cancelled() throws {
    let scene = try SalvageScene(seed: 1, books: 20)
    let store = try scene.folder.write(scene.main, to: "Store.sqlite")
    let error = #expect(throws: SalvageError.self) {
      try Salvager().salvageRaw(
        store, to: scene.folder.appending("Out.sqlite"), options: .init { phase, _, _ in phase != .placement })
    }
    #expect(error?.kind == .cancelled)
    #expect(try !FileSystem().entries(of: scene.folder.path).contains { $0.string.contains("Out") })
  }

  @Test("Every row has its provenance")
  func provenance() throws {
    let scene = try SalvageScene(seed: 6)
    var random = SeededGenerator(seed: 6)
    let damaged = scene.tearing(scene.pages(ofKind: [13]), &random)
    let result = try damaged.salvage()
    let queue = try DatabaseQueue(path: result.folder.appending("Out.sqlite").string)
    try queue.read { db in
      let rows = try Int.fetchOne(db, sql: "SELECT sum(\"rows\") FROM lazaret_pages WHERE \"table\" = 'ZBOOK'") ?? 0
      let rebuilt = result.report.entities.first { $0.table == "ZBOOK" }?.rebuilt ?? 0
      #expect(rows + Int(rebuilt) == result.rows["ZBOOK"]?.count)
      let reasons = try Int.fetchOne(db, sql: "SELECT count(*) FROM lazaret_provenance WHERE reason IS NULL")
      #expect(reasons == 0)
      // A page all of whose rows are doubtful is one note.
      let doubtful = try ["lazaret_provenance", "lazaret_pages"].map { table in
        try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table) WHERE certainty = 'doubtful'") ?? 0
      }
      #expect(doubtful.reduce(0, +) > 0)
    }
    try queue.close()
    let pages = result.report.pages
    #expect(pages.total == scene.pageCount)
    #expect(pages.counts.values.reduce(0, +) == pages.total)
  }

  @Test("Malformed databases are read without a crash or a hang", .enabled(if: RealMaterial.isAvailable))
  func malformed() throws {
    for path in RealMaterial.files(below: "damaged/sqlite-malformed", ending: ".db") {
      let folder = try TemporaryFolder()
      do {
        _ = try Salvager().salvageRaw(
          path, to: folder.appending("Out.sqlite"), options: .init(findsDeleted: true))
      } catch {
        #expect(error.kind == .nothingFound, "\(path)")
      }
    }
  }
}
