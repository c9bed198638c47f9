import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

@Suite("Large values behind links")
struct LinkedValueTests {
  private static let names = (1...4).map { "\($0)1111111-1111-4111-8111-111111111111" }

  private static let model = ManagedObjectModel(
    entities: [
      Entity(
        name: "Photo",
        properties: [
          .attribute(
            Attribute(
              traits: PropertyTraits(name: "image", isOptional: true), type: .binary,
              allowsExternalBinaryDataStorage: true))
        ])
    ])

  /// Salvages a store with a file, a link to a file, a link to nothing and a link to a folder.
  private func salvage(isFolderLinked: Bool) throws -> (report: SalvageReport, files: [String: [UInt8]]) {
    let folder = try TemporaryFolder()
    let creation = try StoreCreation(model: Self.model, uuid: "00000000-0000-4000-8000-000000000001", modelCache: nil)
    let store = try folder.write(try creation.bytes(), to: "Store.sqlite")
    let queue = try DatabaseQueue(path: store.string)
    try queue.write { database in
      for (index, name) in Self.names.enumerated() {
        try database.execute(
          sql: "INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZIMAGE) VALUES (?, 1, 1, ?)",
          arguments: [index + 1, Data([2] + Array(name.utf8) + [0])])
      }
    }
    try queue.close()
    try folder.write([1, 2, 3], to: ".Store_SUPPORT/_EXTERNAL_DATA/\(Self.names[0])")
    try folder.write([4, 5, 6], to: "elsewhere/value")
    for (name, target) in zip(Self.names.dropFirst(), ["elsewhere/value", "nowhere", "elsewhere"]) {
      try link(folder.appending(".Store_SUPPORT/_EXTERNAL_DATA/\(name)"), to: folder.appending(target))
    }
    let system = FileSystem()
    if isFolderLinked {
      try system.rename(folder.appending(".Store_SUPPORT"), to: folder.appending("moved"))
      try link(folder.appending(".Store_SUPPORT"), to: folder.appending("moved"))
    }
    let bundle = try #require(
      ModelBundle(name: "Photos", versions: [ModelVersion(name: "V", model: Self.model, isCurrent: true)]))
    let out = folder.appending("out/Out.sqlite")
    try system.makeDirectory(folder.appending("out"))
    let report = try Salvager().salvage(store, to: out, model: .coreData(bundle), options: .init(migrates: false))
    var files: [String: [UInt8]] = [:]
    let copied = folder.appending("out/.Out_SUPPORT/_EXTERNAL_DATA")
    if try system.status(of: copied) != nil {
      for name in try system.entries(of: copied) {
        files[name.string] = try system.contents(of: copied.appending(name), limit: 100)
      }
    }
    return (report, files)
  }

  private func link(_ path: FilePath, to target: FilePath) throws {
    try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: target.string)
  }

  @Test("Files behind links are copied, other links count as gone")
  func links() throws {
    let (report, files) = try salvage(isFolderLinked: false)
    #expect(files == [Self.names[0]: [1, 2, 3], Self.names[1]: [4, 5, 6]])
    #expect(report.remarks.contains { $0.hasPrefix("1 large value is a link to a file elsewhere") })
    #expect(report.remarks.contains { $0.contains("2 large values are gone") })
    #expect(!report.isComplete)
  }

  @Test("All values behind a link in place of their folder count as gone")
  func linkedFolder() throws {
    let (report, files) = try salvage(isFolderLinked: true)
    #expect(files.isEmpty)
    #expect(report.remarks.contains { $0.contains("4 large values are gone") })
    #expect(!report.isComplete)
  }
}
