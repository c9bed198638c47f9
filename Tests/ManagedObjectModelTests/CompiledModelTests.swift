import Foundation
import ManagedObjectModel
import Platform
import TestSupport
import Testing

@Suite struct CompiledModelTests {
  let model: ManagedObjectModel

  init() throws { model = try ManagedObjectModel(source: Array(garageSource.utf8)) }

  @Test func givesBackTheModelThatWasWritten() throws {
    let copy = try ManagedObjectModel(compiled: model.compiledBytes())
    for (name, entity) in model.entities {
      for (propertyName, property) in entity.properties {
        var expected = property
        // Archives do not name composite types.
        if case .attribute(var attribute) = property {
          attribute.compositeTypeName = nil
          attribute.compositeElements = attribute.compositeElements.map {
            var leaf = $0
            leaf.compositeTypeName = nil
            return leaf
          }
          expected = .attribute(attribute)
        }
        #expect(copy.entities[name]?.properties[propertyName] == expected)
      }
      #expect(copy.entities[name]?.properties.count == entity.properties.count)
      #expect(copy.entities[name]?.fetchIndexes == entity.fetchIndexes)
      #expect(copy.entities[name]?.uniquenessConstraints == entity.uniquenessConstraints)
      #expect(copy.entities[name]?.compoundIndexes == entity.compoundIndexes)
      #expect(copy.entities[name]?.userInfo == entity.userInfo)
      #expect(copy.entities[name]?.explicitRenamingIdentifier == entity.explicitRenamingIdentifier)
      #expect(copy.entities[name]?.parentName == entity.parentName)
      #expect(copy.entities[name]?.className == entity.className)
    }
    #expect(copy.configurations == model.configurations)
    #expect(copy.fetchRequests == model.fetchRequests)
    #expect(copy.versionIdentifiers == model.versionIdentifiers)
    #expect(copy.versionHashes() == model.versionHashes())
  }

  @Test func givesBackTheModelThatWasCached() throws {
    let cache = try model.modelCache()
    let copy = try ManagedObjectModel(modelCache: cache)
    #expect(try copy.modelCache() == cache)
    #expect(copy.versionChecksum() == model.versionChecksum())
  }

  @Test func repeatsInheritedPropertiesInSubentities() throws {
    let root = try KeyedArchive(model.compiledBytes()).root
    let entities = try #require(root.object("NSEntities")?.entries)
    let car = try #require(entities.first { $0.key == "SportsCar" }?.value)
    let properties = try #require(car.object("NSProperties")?.entries)
    #expect(Set(properties.map(\.key)) == Set(model.properties(of: "SportsCar").keys))
    #expect(properties.allSatisfy { $0.value.object("NSEntity")?.number == car.number })
    #expect(car.object("NSSuperentity")?.string("NSEntityName") == "Car")
    let vehicle = try #require(entities.first { $0.key == "Vehicle" }?.value)
    #expect(vehicle.object("NSSubentities")?.entries?.map(\.key) == ["Car"])
    #expect(entities.map(\.key) == ["Car", "Person", "SportsCar", "Trip", "Vehicle"])
  }

  @Test(arguments: [
    ("Person", "name", 241 as Int64), ("Person", "favorite", 241), ("Person", "friends", 243),
    ("Car", "trips", 1267), ("Car", "tripCount", 247), ("Car", "scratch", 251), ("Car", "similar", 191),
    ("Vehicle", "plate", 0x1C1),
  ])
  func sumsUpTheFlags(_ entity: String, _ property: String, _ flags: Int64) throws {
    let entities = try #require(try KeyedArchive(model.compiledBytes()).root.object("NSEntities")?.entries)
    let properties = entities.first { $0.key == entity }?.value.object("NSProperties")?.entries
    #expect(properties?.first { $0.key == property }?.value.integer("_P") == flags)
  }

  @Test func archivesTheDerivationAsAnExpression() throws {
    let entities = try #require(try KeyedArchive(model.compiledBytes()).root.object("NSEntities")?.entries)
    let properties = entities.first { $0.key == "Car" }?.value.object("NSProperties")?.entries
    let expression = properties?.first { $0.key == "tripCount" }?.value.object("NSDerivationExpression")
    #expect(expression?.className == "NSFunctionExpression")
    #expect(expression?.string("NSSelectorName") == "count:")
    let path = expression?.object("NSArguments")?.elements?.first
    #expect(path?.string("NSSelectorName") == "valueForKey:")
    #expect(path?.object("NSArguments")?.elements?.first?.string("NSKeyPath") == "trips")
  }

  @Test func refusesOtherFormsByName() throws {
    #expect { try ManagedObjectModel(compiled: Array("momv2$rest".utf8)) } throws: {
      ($0 as? ModelError)?.kind == .optimizedFormat
    }
    let foreign = "<?xml version=\"1.0\"?><plist><dict><key>$objects</key><array/></dict></plist>"
    #expect { try ManagedObjectModel(compiled: Array(foreign.utf8)) } throws: {
      ($0 as? ModelError)?.kind == .foreignArchive
    }
    #expect { try ManagedObjectModel(compiled: PropertyList.dictionary([:]).binaryBytes()) } throws: {
      ($0 as? ModelError)?.kind == .notAModel
    }
    var writer = KeyedArchiveWriter()
    let array = writer.array([])
    #expect { try ManagedObjectModel(compiled: writer.bytes(root: array)) } throws: {
      ($0 as? ModelError)?.kind == .notAModel
    }
  }

  @Test func refusesCachesThatUnpackWithoutEnd() throws {
    // 64 KB of raw DEFLATE that unpack to 64 MB of zeros: one literal, then runs of 258.
    let bomb = [0xED, 0xC1, 0x01, 0x01] + [UInt8](repeating: 0, count: 3)
    #expect(throws: ModelError.self) { try ManagedObjectModel(modelCache: bomb) }
    #expect(throws: ModelError.self) { try ManagedObjectModel(modelCache: []) }
    #expect(throws: ModelError.self) { try ManagedObjectModel(modelCache: [UInt8](repeating: 0, count: 1000)) }
  }

  @Test func refusesEntitiesThatShareTheirProperties() throws {
    var writer = KeyedArchiveWriter()
    var properties: [(String, KeyedArchiveWriter.Reference)] = []
    for index in 0..<300 {
      let name = writer.string("p\(index)")
      let reference = writer.add(
        classes: ["NSAttributeDescription"], ["NSPropertyName": name.value, "NSAttributeType": .integer(700)])
      properties.append(("p\(index)", reference))
    }
    let shared = writer.dictionary(properties)
    var entities: [(String, KeyedArchiveWriter.Reference)] = []
    for index in 0..<2000 {
      let name = writer.string("E\(index)")
      let reference = writer.add(
        classes: ["NSEntityDescription"], ["NSEntityName": name.value, "NSProperties": shared.value])
      entities.append(("E\(index)", reference))
    }
    let list = writer.dictionary(entities)
    let root = writer.add(classes: ["NSManagedObjectModel"], ["NSEntities": list.value])
    #expect { try ManagedObjectModel(compiled: writer.bytes(root: root)) } throws: {
      ($0 as? ModelError)?.kind == .damaged
    }
  }

  @Test func survivesMutations() throws {
    let rounds = mutationCount(usually: 400)
    let seed = UInt64.random(in: 0...UInt64.max)
    print("mutations of a compiled model, its cache and its source: \(rounds), seed \(seed)")
    var mutation = Mutation(seed: seed)
    let archive = try model.compiledBytes()
    let cache = try model.modelCache()
    for _ in 0..<rounds {
      for attempt in 0..<3 {
        do throws(ModelError) {
          let damaged =
            switch attempt {
            case 0: try ManagedObjectModel(compiled: mutation.apply(to: archive))
            case 1: try ManagedObjectModel(modelCache: mutation.apply(to: cache))
            default: try ManagedObjectModel(source: mutation.apply(to: Array(garageSource.utf8)))
            }
          _ = damaged.versionHashes()
          _ = damaged.validate()
          _ = ModelListing(ModelVersion(name: "damaged", model: damaged, isCurrent: true)).text
          _ = ModelDifference(from: model, to: damaged)
          _ = try ManagedObjectModel(modelCache: damaged.modelCache())
        } catch {
          #expect(!error.detail.isEmpty && !error.hint.isEmpty)
        }
      }
    }
  }
}
