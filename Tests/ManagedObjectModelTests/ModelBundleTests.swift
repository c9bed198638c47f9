import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite struct ModelBundleTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func source(_ attribute: String) -> [UInt8] {
    modelSource("<entity name=\"A\"><attribute name=\"\(attribute)\" attributeType=\"String\"/></entity>")
  }

  private func currentVersion(_ name: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>\(name)</string></dict></plist>
    """
  }

  private func makeSourceBundle(_ names: [String], current: String?) throws -> FilePath {
    for name in names {
      try folder.write(source("a\(name.utf8.count)"), to: "M.xcdatamodeld/\(name).xcdatamodel/contents")
    }
    if let current {
      try folder.write(currentVersion("\(current).xcdatamodel"), to: "M.xcdatamodeld/.xccurrentversion")
    }
    return folder.appending("M.xcdatamodeld")
  }

  @Test func ordersVersionsAsPeopleCount() throws {
    let path = try makeSourceBundle(["M 10", "M", "M 2", "M 3"], current: "M 3")
    let bundle = try ModelBundle.load(path: path)
    #expect(bundle.name == "M")
    #expect(bundle.versions.map(\.name) == ["M", "M 2", "M 3", "M 10"])
    #expect(bundle.current.name == "M 3")
    #expect(bundle.version(named: "M 2")?.model.entity(named: "A") != nil)
    #expect(
      bundle.version(matching: bundle.versions[1].versionHashes)?.versionHashes == bundle.versions[1].versionHashes)
    #expect(bundle.version(matching: [:]) == nil)
  }

  @Test func takesTheLastVersionWhereNoneIsCurrent() throws {
    let bundle = try ModelBundle.load(path: makeSourceBundle(["V2", "V10", "V9"], current: nil))
    #expect(bundle.versions.map(\.name) == ["V2", "V9", "V10"])
    #expect(bundle.current.name == "V10")
  }

  @Test func takesTheOrderGiven() throws {
    let path = try makeSourceBundle(["A", "B", "C"], current: "B")
    #expect(try ModelBundle.load(path: path, order: ["C", "B", "A"]).versions.map(\.name) == ["C", "B", "A"])
    // What is left out is known, and nothing leads through it.
    let part = try ModelBundle.load(path: path, order: ["A", "B"])
    #expect(part.versions.map(\.name) == ["A", "B"] && part.unorderedVersions.map(\.name) == ["C"])
    #expect(part.version(named: "C") != nil && part.order.names(from: nil, to: "B") == ["A"])
    for order in [["A", "C"], ["A", "B", "C", "D"], ["A", "B", "C", "C"], []] {
      #expect { try ModelBundle.load(path: path, order: order) } throws: {
        ($0 as? ModelError)?.kind == .versionOrder
      }
    }
  }

  @Test func tellsOfACurrentVersionThatIsMissing() throws {
    let path = try makeSourceBundle(["A"], current: "B")
    #expect { try ModelBundle.load(path: path) } throws: { ($0 as? ModelError)?.kind == .currentVersionMissing }
  }

  @Test func tellsOfAVersionThatCannotBeRead() throws {
    let path = try makeSourceBundle(["A", "B"], current: "B")
    try folder.write("<model>", to: "M.xcdatamodeld/A.xcdatamodel/contents")
    let bundle = try ModelBundle.load(path: path)
    #expect(bundle.versions.map(\.name) == ["B"])
    #expect(bundle.unreadableVersions.map(\.name) == ["A"])
    #expect(bundle.unreadableVersions.first?.error.path?.string.hasSuffix("A.xcdatamodel") == true)
    #expect(bundle.unreadableVersions.first?.error.detail.hasSuffix("(line 1, column 8)") == true)
    #expect(try ModelBundle.load(path: path, order: ["A", "B"]).versions.count == 1)
    // Not so where it is the current one.
    try folder.write("<model>", to: "M.xcdatamodeld/B.xcdatamodel/contents")
    #expect { try ModelBundle.load(path: path) } throws: {
      ($0 as? ModelError)?.versionName == "B"
    }
  }

  @Test func readsABareModel() throws {
    try folder.write(source("a"), to: "Bare.xcdatamodel/contents")
    let bundle = try ModelBundle.load(path: folder.appending("Bare.xcdatamodel"))
    #expect(bundle.versions.map(\.name) == ["Bare"])
    #expect(bundle.current.isCurrent)
    #expect(try ModelBundle.load(path: folder.appending("Bare.xcdatamodel/contents")).current.name == "Bare")
  }

  @Test func readsACompiledBundle() throws {
    let old = try ManagedObjectModel(source: source("a"))
    let new = try ManagedObjectModel(source: source("b"))
    try folder.write(old.compiledBytes(), to: "M.momd/M.mom")
    try folder.write(new.compiledBytes(), to: "M.momd/M 2.mom")
    try folder.write("momv2$", to: "M.momd/M.omo")
    try folder.write(
      """
      <plist><dict><key>NSManagedObjectModel_CurrentVersionName</key><string>M</string>
      <key>NSManagedObjectModel_VersionHashes</key><dict><key>M</key><dict><key>A</key>
      <data>\(old.versionHashes()["A"]?.base64 ?? "")</data></dict>
      <key>M 2</key><dict><key>A</key><data>\(old.versionHashes()["A"]?.base64 ?? "")</data></dict></dict>
      <key>NSManagedObjectModel_VersionChecksums</key><dict><key>M</key><string>\(old.versionChecksum())</string></dict>
      </dict></plist>
      """, to: "M.momd/VersionInfo.plist")
    let bundle = try ModelBundle.load(path: folder.appending("M.momd"))
    #expect(bundle.versions.map(\.name) == ["M", "M 2"])
    #expect(bundle.current.name == "M")
    #expect(bundle.current.storedChecksum == bundle.current.checksum)
    #expect(bundle.current.mismatchedEntityNames.isEmpty)
    #expect(bundle.versions[1].mismatchedEntityNames == ["A"])
    #expect(bundle.versions[1].storedChecksum == nil)
    let lone = try ModelBundle.load(path: folder.appending("M.momd/M 2.mom"))
    #expect(lone.current.name == "M 2" && lone.current.versionHashes == new.versionHashes())
  }

  @Test func refusesWhatItDoesNotRead() throws {
    try folder.write("archive", to: "Old.xcdatamodel/elements")
    try folder.write("archive", to: "Older.xcdatamodeld/Old.xcdatamodel/elements")
    try folder.write("momv2$", to: "Only.momd/Only.omo")
    try folder.write("momv2$", to: "Lone.omo")
    try folder.write("hello", to: "Notes.txt")
    try folder.write("<?xml version=\"1.0\"?><plist><dict><key>CF$UID</key></dict></plist>", to: "Foreign.mom")
    try folder.write("", to: "Empty/.keep")
    let expected: [(String, ModelError.Kind)] = [
      ("Old.xcdatamodel", .oldFormat), ("Older.xcdatamodeld", .oldFormat), ("Only.momd", .optimizedFormat),
      ("Lone.omo", .optimizedFormat), ("Notes.txt", .notAModel), ("Foreign.mom", .foreignArchive),
      ("Empty", .noVersions), ("nowhere.momd", .file),
    ]
    for (name, kind) in expected {
      #expect { try ModelBundle.load(path: folder.appending(name)) } throws: {
        guard let error = $0 as? ModelError else { return false }
        return error.kind == kind && error.path != nil && !error.hint.isEmpty
      }
    }
  }

  @Test func tellsOfTroubleWithTheFileSystem() throws {
    let path = try makeSourceBundle(["A"], current: nil)
    #expect { try ModelBundle.load(path: folder.appending("nothing")) } throws: {
      ($0 as? ModelError)?.code == "file-not-found" && ($0 as? ModelError)?.isEnvironmental == false
    }
    let system = FileSystem(intercept: { operation throws(Errno) in
      if operation.kind == .open { throw .permissionDenied }
    })
    #expect { try ModelBundle.load(path: path, fileSystem: system) } throws: {
      ($0 as? ModelError)?.code == "permission-denied" && ($0 as? ModelError)?.isEnvironmental == true
    }
  }

  @Test func comparesNamesNaturally() {
    let names = ["V10", "v2", "V1", "V", "V 1", "1", "01", "V2b", "V2a", "Modèle 3"]
    #expect(
      names.sorted(by: precedesNaturally) == ["01", "1", "Modèle 3", "V", "V 1", "V1", "v2", "V2a", "V2b", "V10"])
    for ordered in [
      ["AppV1", "AppV2", "AppV 3"], ["1.0", " 1.1", "1.10"], ["Model2", "Model-3"], ["A 1 2", "A_1.10"],
    ] {
      #expect(ordered.reversed().sorted(by: precedesNaturally) == ordered)
    }
  }

  @Test func noVersionIsNewerByItsName() throws {
    let versions = ["App", "Beta", "Z 9"].map { name in
      ModelVersion(name: name, model: ManagedObjectModel(entities: [Entity(name: name)]), isCurrent: name == "App")
    }
    let bundle = try #require(ModelBundle(name: "App", versions: versions, isOrdered: false))
    #expect(bundle.versions.allSatisfy { !bundle.isNewer($0, than: bundle.current) })
    let ordered = try bundle.ordered(["Beta", "App", "Z 9"])
    #expect(ordered.versions.filter { ordered.isNewer($0, than: ordered.current) }.map(\.name) == ["Z 9"])
    // The version that was chosen is the one to come to, whatever the order says.
    let chosen = try #require(ordered.choosing("Beta"))
    #expect(chosen.current.name == "Beta" && chosen.versions.filter(\.isCurrent).map(\.name) == ["Beta"])
    #expect(chosen.versions.allSatisfy { !chosen.isNewer($0, than: chosen.current) })
    #expect(bundle.choosing("None") == nil)
  }

  @Test func modelsAreMerged() throws {
    func bundle(_ name: String, _ entities: [String]..., current: Int) throws -> ModelBundle {
      let versions = entities.enumerated().map { index, names in
        ModelVersion(
          name: "\(name)\(index)", model: ManagedObjectModel(entities: names.map { Entity(name: $0) }),
          isCurrent: index == current)
      }
      return try #require(ModelBundle(name: name, versions: versions))
    }
    let one = try bundle("A", ["Alpha"], ["Alpha", "Extra"], current: 1)
    let merged = try #require(ModelBundle.merging([one, try bundle("B", ["Beta"], current: 0)]))
    #expect(merged.versions.map(\.name) == ["A0 + B0", "A1 + B0"] && merged.current.name == "A1 + B0")
    #expect(merged.current.model.entities.keys.sorted() == ["Alpha", "Beta", "Extra"])
    #expect(ModelBundle.merging([one, try bundle("B", ["Extra"], current: 0)]) == nil)
  }
}
