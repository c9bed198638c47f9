import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Salvage
import StoreFiles
import SystemPackage
import TestSupport
import Testing

@Suite("Stores whose entities have other numbers than their model would give them")
struct EntityNumberTests {
  private static let numbers = [1: 17, 2: 3, 3: 9, 4: 1, 5: 12]

  private func scene(_ statements: String...) throws -> (scene: RebuildScene, other: FilePath) {
    let scene = try RebuildScene(seed: 41)
    let other = try RealMaterial.copy(scene.store, into: scene.folder, as: "Other.sqlite")
    let queue = try DatabaseQueue(path: other.string)
    try LostSchema.renumber(queue, Self.numbers)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
    }
    try queue.vacuum()
    try queue.close()
    return (scene, other)
  }

  @Test("The store's list of entities tells")
  func listed() throws {
    let (scene, other) = try scene()
    let result = try scene.rebuild(other)
    #expect(result.differences == [])
    #expect(result.report.entities.first { $0.name == "Ferry" }?.recovered ?? 0 > 0)
  }

  @Test("Without that list, tables and inheritance do")
  func unlisted() throws {
    let (scene, other) = try scene("DELETE FROM Z_PRIMARYKEY")
    let result = try scene.rebuild(other)
    #expect(result.count(.extraRecord) == 0)
    #expect(result.count(.value) == 0)
    #expect(!result.differences.contains { $0.entityName == "Person" && $0.kind == .missingRecord })
    #expect(!result.differences.contains { $0.entityName == "Ferry" && $0.kind == .missingRecord })
  }

  @Test("Rows as found keep their numbers and names")
  func raw() throws {
    let (scene, other) = try scene()
    let out = scene.folder.appending("Raw.sqlite")
    let report = try Salvager().salvageRaw(other, to: out, model: .coreData(scene.bundle))
    #expect(report.entities.allSatisfy { $0.keptApart == 0 })
    try DatabaseQueue(path: out.string).read { database in
      let pairs = try Int.fetchOne(database, sql: "SELECT count(Z_9PORTS) FROM Z_1PORTS") ?? 0
      #expect(pairs > 0)
      let ships = try Int.fetchAll(database, sql: "SELECT DISTINCT Z_ENT FROM ZSHIP ORDER BY 1")
      #expect(ships == [1, 12])
    }
  }

  @Test("A relationship keeps its pairs in another model that has it too")
  func otherModel() throws {
    let folder = try TemporaryFolder()
    let store = folder.appending("Ships.sqlite")
    let own = RebuildScene.model()
    let more = ManagedObjectModel(
      entities: Array(own.entities.values)
        + ["Anchor", "Barge"].map { name in
          Entity(
            name: name,
            properties: [
              .attribute(Attribute(traits: PropertyTraits(name: "mark", isOptional: true), type: .string))
            ])
        })
    try StoreGenerator(more, options: .init(.typical, seed: 5, records: 300)).write(to: store)
    let out = folder.appending("Out.sqlite")
    let report = try Salvager().salvage(
      store, to: out, model: .coreData(try RebuildScene.bundle()), options: .init(migrates: false, fitsModel: true))
    func pairs(_ path: FilePath, _ layout: StoreLayout) throws -> Set<[Int64]> {
      let table = try #require(layout.joinTables.first)
      return try DatabaseQueue(path: path.string).read { database in
        Set(
          try Row.fetchAll(database, sql: "SELECT \(table.sourceColumn), \(table.destinationColumn) FROM \(table.name)")
            .map { [$0[0], $0[1]] })
      }
    }
    let before = try pairs(store, StoreLayout(more))
    let after = try pairs(out, StoreLayout(own))
    #expect(!before.isEmpty && before == after)
    #expect(report.rebuild?.referencesCut.isEmpty == true)
    // The owner of a flag is in a column with a number in its name.
    let queue = try DatabaseQueue(path: out.string)
    let columns = try StoreLayout(own).table(of: "Flag")?.columns.filter {
      if case .owner = $0.role { true } else { false }
    }
    let column = try #require(columns?.first?.name)
    let owned = try queue.read { try Int.fetchOne($0, sql: "SELECT count(\(column)) FROM ZFLAG") }
    #expect(owned ?? 0 > 0)
  }
}
