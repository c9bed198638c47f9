import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite(
  "Real stores and damaged files",
  .enabled(if: RealMaterial.isAvailable, Comment(rawValue: "skipped: " + RealMaterial.skipped)))
struct RealStoreTests {
  /// Every bundle of real models that can be read.
  static let bundles: [ModelBundle] = {
    let paths =
      RealMaterial.folders(below: "models", ending: ".xcdatamodeld")
      + RealMaterial.folders(below: "models", ending: ".momd")
    return paths.compactMap { try? ModelBundle.load(path: $0) }
  }()

  /// Whether a file is a database that the app whose stores these are would open: some stores are only logs of others.
  @Test(
    "Every real store is sound, quickly and fully, and of the version whose hashes it has",
    arguments: RealMaterial.stores)
  func store(path: FilePath) throws {
    let before = try FolderContents(of: path.folder)
    let alone = try Examiner().look(path)
    #expect(alone.verdict == .compatible, "\(alone.reason)")
    #expect(alone.kind == .coreData)
    let full = try Examiner().look(path, nil, .full)
    #expect(full.verdict == .compatible, "\(full.reason) \(full.health.notes)")
    let hashes = try #require(alone.metadata?.versionHashes)
    if let digest = alone.metadata?.versionHashesDigest {
      #expect(digest == ManagedObjectModel.versionHashesDigest(of: hashes))
    }
    var outcomes: [String] = []
    for bundle in Self.bundles {
      guard let version = bundle.version(matching: hashes) else { continue }
      let examination = try Examiner().look(path, .coreData(bundle))
      outcomes.append("\(bundle.name)/\(examination.modelVersion ?? "?"): \(examination.verdict.rawValue)")
      #expect(examination.modelVersion == version.name || version.versionHashes == bundle.current.versionHashes)
      if bundle.current.versionHashes == hashes {
        #expect(examination.verdict == .compatible, "\(examination.reason)")
        #expect(examination.reason.code == "current-version")
      } else {
        #expect([.outdated, .unavailable].contains(examination.verdict), "\(examination.reason)")
      }
      #expect(examination.entities.allSatisfy { $0.rows != nil }, "\(examination.entities)")
    }
    let rows = alone.entities.reduce(0) { $0 + ($1.rows ?? 0) }
    print(
      "\(path.lastComponent?.string ?? ""): \(rows) records; \(outcomes.isEmpty ? "no model among the real ones" : Set(outcomes).sorted().joined(separator: ", "))"
    )
    #expect(try FolderContents(of: path.folder) == before)
  }

  @Test(
    "Version chains: each store is of its version, outdated unless it is the newest",
    arguments: [
      ("stores/ddg-bookmarks", "models/ddg-browserserviceskit/Bookmarks/BookmarksModel.xcdatamodeld"),
      (
        "stores/wibosco-migration",
        "models/wibosco-migration/CoreDataMigration-Example/CoreData/Model/CoreDataMigration_Example.xcdatamodeld"
      ),
      ("stores/bergier-migration", "models/bergier-migration/Model.xcdatamodeld"),
      ("stores/coredataplus/SampleModel/Fixtures", "models/coredataplus/SampleModel/SampleModel.xcdatamodeld"),
    ])
  func chain(stores: String, model: String) throws {
    let folder = try #require(RealMaterial.folder)
    let bundle = try ModelBundle.load(path: folder.appending(model))
    var versions: [String: Int] = [:]
    for store in RealMaterial.files(below: stores, ending: ".sqlite") {
      let examination = try Examiner().look(store, .coreData(bundle))
      let name = try #require(examination.modelVersion, "\(store): \(examination.reason)")
      versions[name, default: 0] += 1
      let isCurrent = examination.metadata?.versionHashes == bundle.current.versionHashes
      #expect(examination.verdict == (isCurrent ? .compatible : .outdated), "\(store): \(examination.reason)")
      if !isCurrent {
        #expect(examination.reason.code == "older-version")
        #expect(examination.reason.words.contains(name) && examination.reason.words.contains(bundle.current.name))
      }
      print(
        "\(store.lastComponent?.string ?? ""): \(name) of \(bundle.versions.map(\.name)), \(examination.verdict.rawValue)"
      )
    }
    #expect(versions.count > 1)
    #expect(versions.values.allSatisfy { $0 == 1 })
  }

  @Test(
    "Every damaged file: no crash, under a second, nothing touched",
    arguments: ["damaged/forensic-corpus", "damaged/sqlite-malformed", "damaged/sqlite-dissect"])
  func damaged(folder: String) throws {
    let root = try #require(RealMaterial.folder).appending(folder)
    let before = try FolderContents(of: root)
    let files = RealMaterial.files(below: folder)
    #expect(!files.isEmpty)
    var quick: [String: Int] = [:]
    var full: [String: Int] = [:]
    var slowest = Duration.zero
    for path in files {
      for depth in Examination.Depth.allCases {
        var examination: Examination?
        let time = try processorTime {
          examination = try Examiner().look(path, depth == .quick ? nil : Models.bundle(), depth)
        }
        slowest = max(slowest, time)
        #expect(time < longestLook, "\(path): \(time)")
        let found = try #require(examination)
        VerdictCase.checkWords(found)
        let word = "\(found.verdict.rawValue)/\(found.reason.code)"
        if depth == .quick { quick[word, default: 0] += 1 } else { full[word, default: 0] += 1 }
      }
    }
    func table(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
    print(
      "\(folder): \(files.count) files, slowest \(slowest)\n  quick: \(table(quick))\n  full, against a model: \(table(full))"
    )
    #expect(try FolderContents(of: root) == before)
  }
}
