import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Stores that people released, migrated along every version of their models that comes later.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMigrationTests {
  @Test func everyStoreGoesToEveryLaterVersion() throws {
    var bundles: [ModelBundle] = []
    for path in RealMappingTests.bundles {
      do throws(ModelError) {
        let bundle = try ModelBundle.load(path: path)
        if bundle.versions.count > 1 { bundles.append(bundle) }
      } catch {
        continue
      }
    }
    // Some models are there several times over; each pair of versions is gone through once for a store.
    var done: Set<[String]> = []
    var migrated: [String] = []
    var refused: [String] = []
    var inPlace = 0
    for store in RealMaterial.stores {
      let folder = try TemporaryFolder()
      let copy = try RealMaterial.copy(store, into: folder)
      guard let metadata = try? Self.metadata(copy) else { continue }
      for bundle in bundles {
        guard let start = bundle.version(matching: metadata.versionHashes),
          let index = bundle.versions.firstIndex(of: start)
        else { continue }
        // Of a hundred versions the nearest and some of the others.
        let later = Array(bundle.versions[(index + 1)...])
        let chosen = later.enumerated().filter { $0.offset < 2 || $0.offset % 16 == 7 || later.count < 10 }
        for version in chosen.map(\.element) where version.versionHashes != start.versionHashes {
          let steps = bundle.versions[index...].prefix { $0 != version }.map(\.checksum)
          guard done.insert([store.string] + steps + [version.checksum]).inserted else { continue }
          var options = Migrator.Options()
          options.version = version.name
          options.output = folder.appending("Out-\(bundle.name)-\(migrated.count)-\(refused.count).sqlite")
          let name = "\(store.lastComponent?.string ?? "") \(start.name) → \(version.name)"
          let plan = try Migrator(bundle, surroundings: .still()).plan(copy, options: options)
          do throws(MigrationError) {
            let result = try Migrator(bundle, surroundings: .still()).migrate(copy, options: options)
            migrated.append(name)
            let after = try? Self.metadata(result.store)
            #expect(after?.versionHashes == version.versionHashes, "\(name)")
            #expect(after?.uuid == metadata.uuid, "\(name)")
            #expect(plan.refusals.isEmpty && plan.failures.isEmpty, "\(name): \(plan.failures)")
            // What only running the steps tells is in the plan without a number.
            let lost = result.steps.flatMap(\.losses)
            #expect(Set(plan.losses.filter { $0.rows != nil }).isSubset(of: lost), "\(name)")
            let expected = Set(plan.losses.map(\.text))
            #expect(lost.allSatisfy { expected.contains($0.text) }, "\(name)")
            if result.steps.count == 1 { #expect(plan.losses == result.steps[0].losses, "\(name)") }
            let planned = plan.steps.last?.entities.filter { $0.destination != nil }.compactMap(\.rows).reduce(0, +)
            #expect(planned == result.steps.last?.entities.reduce(0) { $0 + $1.rows }, "\(name)")
            if result.steps.contains(where: { $0.way == .inPlace }) {
              inPlace += 1
              options.output = folder.appending("Rebuilt-\(inPlace).sqlite")
              options.alwaysRebuilds = true
              let other = try Migrator(bundle, surroundings: .still()).migrate(copy, options: options)
              #expect(other.steps.allSatisfy { $0.way == .rebuild })
              #expect(result.steps.map(\.entities) == other.steps.map(\.entities), "\(name)")
              let contents = try? tableContents(result.store)
              let rebuilt = try? tableContents(other.store)
              #expect(contents != nil && contents == rebuilt, "\(name)")
            }
          } catch {
            refused.append("\(name): \(error.code) \(error.detail)")
            // Their records lack what a later version makes mandatory, for which the apps had mapping models.
            #expect([.notInferable, .wouldLose, .dataViolation].contains(error.kind), "\(name): \(error)")
            #expect(!plan.isPossible, "\(name)")
            #expect(plan.refusals.isEmpty == (error.kind == .dataViolation), "\(name)")
            #expect(error.kind != .dataViolation || error.coreDataCode == 134110 && error.entityName != nil, "\(name)")
          }
        }
      }
    }
    print("real stores: \(migrated.count) migrations done (\(inPlace) with steps in place), \(refused.count) refused")
    #expect(inPlace > 5)
    #expect(migrated.count > 20)
  }

  static func metadata(_ path: FilePath) throws -> StoreMetadata? {
    let store = try PersistentStore(opening: path)
    let metadata = try store.metadata()
    try store.close()
    return metadata
  }
}
