import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import Testing

/// Models made at random: whatever they say, the layout is consistent and SQLite takes it.
@Suite struct LayoutPropertyTests {
  private static let words = [
    "a", "A", "b", "aB", "Ab", "_pk", "name", "NAME", "1a", "x\"y", "ü", "Ü", "é", "e\u{301}", "fok_a",
  ]
  private static let types = AttributeType.allCases

  private func model(_ random: inout SeededGenerator) -> ManagedObjectModel {
    let count = Int.random(in: 1...12, using: &random)
    let names = (0..<count).map { "\(Self.words.randomElement(using: &random) ?? "x")\($0 % 5)" }
    var entities: [Entity] = []
    for (index, name) in names.enumerated() {
      let properties = (0..<Int.random(in: 0...10, using: &random)).map { _ in property(names, &random) }
      let propertyNames = properties.map(\.name)
      let fetchIndex = FetchIndex(
        name: Self.words.randomElement(using: &random) ?? "i",
        elements: (0..<Int.random(in: 0...3, using: &random)).map { _ in
          FetchIndexElement(
            propertyName: propertyNames.randomElement(using: &random),
            kind: Bool.random(using: &random) && Bool.random(using: &random) ? .rTree : .binary)
        }, partialIndexPredicate: Bool.random(using: &random) ? "name == 1" : nil)
      entities.append(
        Entity(
          name: name,
          parentName: index > 0 && Bool.random(using: &random) ? names[Int.random(in: 0..<index, using: &random)] : nil,
          properties: properties, uniquenessConstraints: [propertyNames.prefix(2).map(\.self)],
          fetchIndexes: [fetchIndex]))
    }
    return ManagedObjectModel(entities: entities)
  }

  private func property(_ entities: [String], _ random: inout SeededGenerator) -> Property {
    let name = Self.words.randomElement(using: &random) ?? "p"
    let destination = entities.randomElement(using: &random) ?? "e"
    let inverse = Bool.random(using: &random) ? Self.words.randomElement(using: &random) : nil
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return toOne(name, destination, inverse: inverse)
    case 1, 2: return toMany(name, destination, inverse: inverse, ordered: Bool.random(using: &random))
    default:
      let expressions = ["now()", "count:(a)", "a.name", "sum:(b.name)", "lowercase:(name)", "nonsense:(x", nil, nil]
      return attribute(
        name, Self.types.randomElement(using: &random) ?? .string, indexed: Bool.random(using: &random),
        derived: expressions.randomElement(using: &random) ?? nil,
        elements: [leaf("l", .integer16), leaf("L", .string)])
    }
  }

  @Test func laysOutAnyModel() throws {
    let rounds = ProcessInfo.processInfo.environment["LAZARET_MUTATIONS"].flatMap { Int($0) } ?? 150
    let seed = ProcessInfo.processInfo.environment["LAZARET_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)
    print("LayoutPropertyTests: seed \(seed), \(rounds) models")
    var random = SeededGenerator(seed: seed)
    var laidOut = 0
    for round in 0..<rounds {
      let model = model(&random)
      let layout: StoreLayout
      do {
        layout = try StoreLayout(model)
      } catch {
        continue
      }
      laidOut += 1
      #expect(try StoreLayout(model).statements == layout.statements, "round \(round)")
      #expect(layout.entities.count == model.entities.count)
      let schema = try SQLSchema(layout)
      for table in layout.tables {
        #expect(schema.tables[table.name]?.columns.map(\.name) == table.columns.map(\.name), "round \(round)")
      }
      for table in layout.joinTables {
        #expect(schema.tables[table.name]?.columns.map(\.name) == table.columns, "round \(round)")
      }
      for entity in model.entities.values {
        for property in entity.properties.values where !property.traits.isTransient {
          let storage = layout.storage(of: PropertyKey(entityName: entity.name, name: property.name))
          #expect(storage != nil, "round \(round): \(entity.name).\(property.name)")
        }
      }
      #expect(try StoreCreation(model: model, uuid: testUUID, modelCache: nil).bytes().count >= 4096)
    }
    #expect(laidOut > rounds / 10)
  }
}
