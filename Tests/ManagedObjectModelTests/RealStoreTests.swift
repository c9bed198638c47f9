import Foundation
import GRDB
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

/// The models that real stores carry in their cache.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealStoreTests {
  /// What a store says about its model.
  struct Recorded {
    var metadata: PropertyList

    /// The content of `Z_MODELCACHE`; nil in stores from before it.
    var cache: [UInt8]?
  }

  /// Opens a private copy: the original is never touched.
  static func read(_ store: FilePath) throws -> Recorded {
    let folder = try TemporaryFolder()
    let copy = try RealMaterial.copy(store, into: folder)
    let queue = try DatabaseQueue(path: copy.string)
    defer { try? queue.close() }
    return try queue.read { database in
      let metadata = try Data.fetchOne(database, sql: "SELECT Z_PLIST FROM Z_METADATA")
      let hasCache = try database.tableExists("Z_MODELCACHE")
      let cache = hasCache ? try Data.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE") : nil
      return Recorded(metadata: try PropertyList(Array(metadata ?? Data())), cache: cache.map { Array($0) })
    }
  }

  @Test(arguments: RealMaterial.stores) func cacheHashesLikeTheMetadata(_ store: FilePath) throws {
    let recorded = try Self.read(store)
    guard let cache = recorded.cache else { return }
    let model = try ManagedObjectModel(modelCache: cache)
    let hashes = try #require(recorded.metadata["NSStoreModelVersionHashes"]?.dictionary)
    #expect(model.versionHashes().mapValues(\.bytes) == hashes.compactMapValues(\.data))
    if let digest = recorded.metadata["NSStoreModelVersionHashesDigest"]?.string {
      #expect(model.versionHashesDigest() == digest)
    }
    if let checksum = recorded.metadata["NSStoreModelVersionChecksumKey"]?.string {
      #expect(model.versionChecksum() == checksum)
    }
    #expect(model.validate().filter(\.isStructural).isEmpty)
    #expect(!model.validate().contains { $0.kind == .overriddenProperty })
  }

  @Test func manyStoresHaveACache() throws {
    let stores = try RealMaterial.stores.map { try Self.read($0) }
    #expect(stores.count { $0.cache != nil } >= 35)
    #expect(stores.count { $0.metadata["NSStoreModelVersionChecksumKey"] != nil } >= 8)
    #expect(stores.count { $0.metadata["NSStoreModelVersionHashesDigest"] != nil } >= 20)
  }

  @Test(arguments: RealMaterial.stores) func cacheIsGivenBack(_ store: FilePath) throws {
    guard let cache = try Self.read(store).cache else { return }
    let model = try ManagedObjectModel(modelCache: cache)
    let copy = try ManagedObjectModel(modelCache: model.modelCache())
    #expect(copy.withoutOpaqueDefaults == model.withoutOpaqueDefaults)
    #expect(copy.versionHashes() == model.versionHashes())
  }

  /// Keys that real caches have and ours do not, by class, and the other way round.
  @Test func classesHaveTheKeysOfRealCaches() throws {
    var real: [String: Set<String>] = [:]
    var own: [String: Set<String>] = [:]
    var always: [String: Set<String>] = [:]
    for store in RealMaterial.stores {
      guard let cache = try Self.read(store).cache else { continue }
      let model = try ManagedObjectModel(modelCache: cache)
      let archive = try KeyedArchive(ManagedObjectModel.unpacked(modelCache: cache))
      for (name, keys) in archive.keysByClass() {
        for set in keys {
          real[name, default: []].formUnion(set)
          always[name] = always[name].map { $0.intersection(set) } ?? set
        }
      }
      for (name, keys) in try KeyedArchive(model.compiledBytes()).keysByClass() {
        for set in keys { own[name, default: []].formUnion(set) }
      }
    }
    for name in Set(real.keys).union(own.keys).sorted() {
      let missing = (real[name] ?? []).subtracting(own[name] ?? [])
      let extra = (own[name] ?? []).subtracting(real[name] ?? [])
      if !missing.isEmpty || !extra.isEmpty {
        print("\(name): only real \(missing.sorted()), only ours \(extra.sorted())")
      }
    }
    let core = [
      "NSManagedObjectModel", "NSEntityDescription", "NSAttributeDescription", "NSRelationshipDescription",
      "NSDerivedAttributeDescription", "NSFetchedPropertyDescription", "NSFetchIndexDescription",
      "NSFetchIndexElementDescription", "NSFetchRequest", "NSKnownKeysDictionary1", "NSKnownKeysMappingStrategy1",
      "NSKeyPathExpression", "NSFunctionExpression", "NSComparisonPredicate", "NSComparisonPredicateOperator",
      "NSEqualityPredicateOperator", "NSInPredicateOperator", "NSCompoundPredicate", "NSDecimalNumberPlaceholder",
    ]
    for name in core {
      let mandatory = try #require(always[name], "\(name)")
      #expect(mandatory.isSubset(of: own[name] ?? []), "\(name)")
      #expect((own[name] ?? []).isSubset(of: real[name] ?? []), "\(name)")
    }
  }
}

extension ManagedObjectModel {
  /// The model without default values of kinds that are not read, which no cache of ours can hold.
  fileprivate var withoutOpaqueDefaults: ManagedObjectModel {
    var copy = self
    for (name, entity) in entities {
      for (propertyName, property) in entity.properties {
        guard case .attribute(var attribute) = property, case .opaque? = attribute.defaultValue else { continue }
        attribute.defaultValue = nil
        copy.entities[name]?.properties[propertyName] = .attribute(attribute)
      }
    }
    return copy
  }
}

extension KeyedArchive {
  /// The keys of every object, by class.
  fileprivate func keysByClass() -> [String: [Set<String>]] {
    var result: [String: [Set<String>]] = [:]
    for content in objects {
      guard let fields = content.dictionary, let number = content["$class"]?.uid,
        let name = objects[Int(number)]["$classname"]?.string
      else { continue }
      result[name, default: []].append(Set(fields.keys))
    }
    return result
  }
}
