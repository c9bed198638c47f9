import GRDB
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that people released, damaged, and opened with the model that they carry.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealSalvagingTests {
  static let stores = [
    "bergier-migration/Example_v1.2.0.sqlite", "ddg-bookmarks/Bookmarks_V4.sqlite",
    "coredataplus/SampleModel/Fixtures/SampleModel_V1.sqlite",
    "coredataplus/SampleModel2/Fixtures/SampleModel2_V2.sqlite",
  ]

  @Test(arguments: stores, ["header", "page1", "roots"])
  func opensWithItsRecords(store: String, kind: String) throws {
    let real = try #require(RealMaterial.folder)
    let folder = try TemporaryFolder()
    let source = try RealMaterial.copy(
      real.appending("stores").pushing(FilePath(store)), into: folder, as: "Original.sqlite")
    let examination = try Examiner().examine(source)
    let model = try #require(examination.storeModel)
    let bundle = try #require(
      ModelBundle(name: "Own", versions: [ModelVersion(name: "V1", model: model, isCurrent: true)]))
    let place = folder.appending("Store.sqlite")
    _ = try DamagedCopy.make(of: source, at: place, kinds: [try DamageKind(kind)], seed: 3)
    let before = try StoreFileSet(main: place).members(in: FileSystem()).filter { $0.status.kind == .regular }.map {
      try FileDigest(of: FileSystem().open($0.path)).hexadecimal
    }
    let coordinator = StoreCoordinator(
      model: .coreData(bundle), policy: OpeningPolicy(depth: .full), home: folder.appending("Home"),
      surroundings: .still())
    let opening = try coordinator.open(place)
    defer { print("\(store) \(kind): \(opening.events.map(\.words))") }
    guard opening.examination.verdict == .damaged else {
      try opening.store.close()
      return
    }
    #expect(opening.salvage?.isInstalled == true, "\(opening.events)")
    // The entities of a hierarchy share a table.
    var counts: [String: Int64] = [:]
    for entity in examination.entities where model.entities[entity.name] != nil {
      counts[entity.table, default: 0] += Int64(entity.rows ?? 0)
    }
    for (table, rows) in counts.sorted(by: { $0.key < $1.key }) {
      let found = try opening.store.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM \"\(table)\"") } ?? 0
      // A small table may be one page, its root, and that takes its rows along; of a header nothing hangs on it.
      if kind == "header" { #expect(found == rows, "\(table)") }
      #expect(found <= rows, "\(table)")
    }
    try opening.store.close()
    let stored = try #require(try Quarantines(home: folder.appending("Home")).stores().first)
    let after = try stored.files.members(in: FileSystem()).filter { $0.status.kind == .regular }.map {
      try FileDigest(of: FileSystem().open($0.path)).hexadecimal
    }
    #expect(after == before)
    let again = try coordinator.open(place)
    #expect(again.events.isEmpty)
    try again.store.close()
  }
}
