import GRDB
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A store whose records are all there and whose join table is not.
@Suite("Lost pairs of a many-to-many relationship are told by an opening")
struct LostPairsTests {
  private static let records = 33

  /// A store of cars and tags with pairs between them, and the model.
  private func scene() throws -> (folder: TemporaryFolder, model: ModelBundle, store: FilePath, pairs: Int64) {
    let folder = try TemporaryFolder()
    func entity(_ name: String, _ property: String, _ destination: String, _ inverse: String) -> String {
      """
      <entity name="\(name)" representedClassName="\(name)" syncable="YES">
      <attribute name="name" optional="YES" attributeType="String"/>
      <relationship name="\(property)" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="\(destination)" \
      inverseName="\(inverse)" inverseEntity="\(destination)"/></entity>
      """
    }
    try folder.write(
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
      \(entity("Car", "tags", "Tag", "cars"))\(entity("Tag", "cars", "Car", "tags"))</model>
      """, to: "App.xcdatamodeld/V1.xcdatamodel/contents")
    let bundle = try ModelBundle.load(path: folder.appending("App.xcdatamodeld"), order: nil)
    let model = bundle.current.model
    let store = try folder.write(
      StoreCreation(
        model: model, uuid: "00000000-0000-4000-8000-000000000000", modelCache: try model.modelCache()
      ).bytes(), to: "Stores/App.sqlite")
    let join = try #require(try StoreLayout(model).joinTables.first)
    let columns = "\(join.sourceColumn), \(join.destinationColumn)"
    let queue = try DatabaseQueue(path: store.string)
    let (pairs, roots, size) = try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(Self.records))
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, 1, 1, 'car ' || i FROM n;
          INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT Z_PK, 2, 1, 'tag ' || Z_PK FROM ZCAR;
          INSERT INTO \(join.name) (\(columns)) SELECT a.Z_PK, b.Z_PK FROM ZCAR a, ZTAG b WHERE (a.Z_PK + b.Z_PK) % 11 = 0;
          UPDATE Z_PRIMARYKEY SET Z_MAX = \(Self.records); PRAGMA wal_checkpoint(TRUNCATE)
          """)
      return (
        try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(join.name)") ?? 0,
        try Int.fetchAll(
          database, sql: "SELECT rootpage FROM sqlite_master WHERE tbl_name = ?", arguments: [join.name]),
        try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 4096
      )
    }
    try queue.close()
    // All pairs are on the root pages of the table and of the index of its key.
    var bytes = try FileSystem().contents(of: store, limit: 1 << 24)
    for root in roots {
      for offset in ((root - 1) * size)..<(root * size) { bytes[offset] = 0 }
    }
    try folder.write(bytes, to: "Stores/App.sqlite")
    return (folder, bundle, store, pairs)
  }

  @Test func theyAreNoWholeRecovery() throws {
    let (folder, model, store, pairs) = try scene()
    #expect(pairs > 0)
    var policy = OpeningPolicy(depth: .full)
    (policy.recoveryKitInterval, policy.checkInterval) = (nil, nil)
    let opening = try StoreCoordinator(
      model: .coreData(model), policy: policy, home: folder.appending("Home"), migration: Migrator.Options(),
      surroundings: .still()
    ).open(store)
    let kept = try opening.store.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") }
    try opening.store.close()
    let salvage = try #require(opening.salvage)
    #expect(kept == Int64(Self.records) && salvage.recovered == Int64(2 * Self.records))
    #expect(opening.isWithLosses && !salvage.isComplete)
    #expect(salvage.percent != 100)
    let told = try #require(salvage.pairs)
    #expect(told.recovered == 0 && (told.lost == pairs || !told.lostIsExact))
    let event = try #require(opening.events.last { $0.kind == .salvage })
    let notice = try #require(opening.notice)
    #expect(event.words.contains("pairs of many-to-many relationships") && !event.words.contains("100 %"))
    #expect(notice.key == "lazaret.notice.salvaged-with-losses")
    // The receipt says the same.
    let stored = try #require(try Quarantines(home: folder.appending("Home"), surroundings: .still()).stores().first)
    let result = try #require(stored.receipt?.salvage?.result)
    #expect(result.count == salvage.count && result.pairs?.count == 1)
  }
}
