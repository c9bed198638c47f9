import Foundation
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

/// Models that Xcode wrote: source and compiled, hundreds of them.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealModelTests {
  static let compiledBundles = RealMaterial.folders(below: "models", ending: ".momd")
  static let sourceBundles = RealMaterial.folders(below: "models", ending: ".xcdatamodeld")

  @Test(arguments: compiledBundles) func hashesEqualVersionInfo(_ path: FilePath) throws {
    let bundle = try ModelBundle.load(path: path)
    let info = try PropertyList(FileSystem().contents(of: path.appending("VersionInfo.plist"), limit: 1 << 20))
    let stored = try #require(info["NSManagedObjectModel_VersionHashes"]?.dictionary)
    #expect(!bundle.versions.isEmpty)
    for version in bundle.versions {
      guard let hashes = stored[version.name]?.dictionary else {
        // A few bundles in version control keep files of versions that are gone from their list.
        print("\(path.lastComponent?.string ?? ""): VersionInfo.plist does not know \(version.name)")
        continue
      }
      #expect(version.versionHashes.mapValues(\.bytes) == hashes.compactMapValues(\.data), "\(version.name)")
      #expect(version.mismatchedEntityNames.isEmpty)
      if let checksum = version.storedChecksum { #expect(version.checksum == checksum) }
    }
    // Bundles of a single version do not name it.
    let current = info["NSManagedObjectModel_CurrentVersionName"]?.string
    #expect(current == nil ? bundle.versions.count == 1 : bundle.current.name == current)
  }

  @Test func thereAreCompiledBundles() { #expect(Self.compiledBundles.count >= 15) }

  @Test(arguments: sourceBundles) func sourcesAreRead(_ path: FilePath) throws {
    do throws(ModelError) {
      let bundle = try ModelBundle.load(path: path)
      #expect(!bundle.versions.isEmpty)
      for version in bundle.versions {
        #expect(version.model.validate().filter(\.isStructural).isEmpty)
        // A source becomes the same model again when it is cached.
        let copy = try ManagedObjectModel(modelCache: version.model.modelCache())
        #expect(copy.versionHashes() == version.versionHashes)
      }
    } catch {
      // One was saved by Xcode 3, and one holds nothing but the name of its current version.
      #expect(error.kind == .oldFormat || error.kind == .noVersions, "\(path): \(error.detail)")
      #expect(path.string.contains(error.kind == .oldFormat ? "magicalrecord" : "ctdatastoremanager/TemporaryContext"))
    }
  }

  /// Where a source lies beside the bundle that was compiled from it.
  @Test func sourcesHashLikeWhatWasCompiledFromThem() throws {
    var equal: [String] = []
    var different: [String] = []
    for path in Self.compiledBundles {
      let source = FilePath(String(path.string.dropLast("momd".count)) + "xcdatamodeld")
      guard try FileSystem().status(of: source) != nil else { continue }
      let compiled = try ModelBundle.load(path: path)
      let sources = try ModelBundle.load(path: source)
      let name = path.removingLastComponent().lastComponent?.string ?? ""
      for version in compiled.versions {
        guard let twin = sources.version(named: version.name) else { continue }
        if twin.versionHashes == version.versionHashes {
          equal.append("\(name)/\(version.name)")
          // What is not hashed agrees as well, down to defaults.
          #expect(
            ModelDifference(from: twin.model, to: version.model).isEmpty
              && defaults(twin.model) == defaults(version.model),
            "\(path)")
        } else {
          different.append("\(name)/\(version.name)")
        }
      }
    }
    print("sources that hash like the compiled model beside them: \(equal.count), others: \(different)")
    #expect(equal.count >= 8)
    // Its source is newer than the compiled model; the others are of one version.
    #expect(different == ["cfa85be/CartStorage"])
  }

  private func defaults(_ model: ManagedObjectModel) -> [String: AttributeValue] {
    var result: [String: AttributeValue] = [:]
    for entity in model.entities.values {
      for attribute in entity.properties.values.compactMap(\.attribute) {
        if let value = attribute.defaultValue { result["\(entity.name).\(attribute.name)"] = value }
      }
    }
    return result
  }

  @Test func theNegativeCaseIsTold() throws {
    let folder = try #require(RealMaterial.folder).appending("models/cartkit-history/cfa85be")
    let source = try ModelBundle.load(path: folder.appending("CartStorage.xcdatamodeld")).current
    let compiled = try ModelBundle.load(path: folder.appending("CartStorage.momd")).current
    let difference = ModelDifference(from: compiled.model, to: source.model)
    #expect(!difference.isEmpty)
    #expect(difference.addedProperties.map { "\($0.entity).\($0.property)" } == ["CDCart.sessionId"])
    #expect(difference.changedEntities == ["CDCart"])
    let stored = ModelVersion(
      name: "mixed", model: source.model, isCurrent: true, storedHashes: compiled.storedHashes)
    #expect(stored.mismatchedEntityNames == difference.changedEntities + difference.addedEntities)
  }

  @Test(arguments: RealMaterial.files(below: "models", ending: ".mom")) func loneFilesAreRead(_ path: FilePath) throws {
    let bundle = try ModelBundle.load(path: path)
    #expect(bundle.versions.count == 1)
    let model = bundle.current.model
    let copy = try ManagedObjectModel(compiled: model.compiledBytes())
    #expect(copy == model)
    #expect(copy.versionHashes() == bundle.current.versionHashes)
  }

  @Test(arguments: RealMaterial.files(below: "models", ending: ".omo")) func optimizedFilesAreRefused(_ path: FilePath)
  {
    #expect { try ModelBundle.load(path: path) } throws: { ($0 as? ModelError)?.kind == .optimizedFormat }
  }

  @Test func survivesMutationsOfRealFiles() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    let files =
      RealMaterial.files(below: "models", ending: ".mom") + RealMaterial.files(below: "models", ending: "contents")
      + RealMaterial.files(below: "models", ending: "VersionInfo.plist")
      + RealMaterial.files(below: "models", ending: ".xccurrentversion")
    let rounds = mutationCount(usually: 400)
    print("mutations of real models: \(rounds), seed \(seed)")
    var mutation = Mutation(seed: seed)
    var slowest = Duration.zero
    for round in 0..<rounds {
      let path = files[round % files.count]
      let bytes = mutation.apply(to: try FileSystem().contents(of: path, limit: 1 << 24))
      let start = processorTime()
      do throws(ModelError) {
        if path.extension == "mom" {
          _ = try ManagedObjectModel(compiled: bytes).versionHashes()
        } else if path.lastComponent == "contents" {
          _ = try ManagedObjectModel(source: bytes).versionHashes()
        } else {
          _ = try? PropertyList(bytes)
        }
      } catch {
        #expect(!error.detail.isEmpty)
      }
      slowest = max(slowest, processorTime() - start)
    }
    print("slowest: \(slowest)")
    #expect(slowest < .seconds(1))
  }
}
