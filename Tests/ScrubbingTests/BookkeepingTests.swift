import Foundation
import GRDB
import LazaretTesting
import ManagedObjectModel
import Platform
import SystemPackage
import TestSupport
import Testing

/// Bookkeeping of Core Data whose table damage hides: what stays of it is no finding, and what cannot be told from values does not stay.
@Suite("Scrubbing bookkeeping whose table is lost")
struct BookkeepingTests {
  /// A sound store with entities of long names, whose model takes several pages, and what SQLite says of it.
  struct Sound {
    let scene: ScrubScene
    let bytes: [UInt8]
    let pageSize = 4096

    /// The first page of each table.
    let roots: [String: Int]

    /// The packed model, and the property list of the metadata.
    let model: [UInt8]
    let metadata: [UInt8]

    static let entities = (0..<40).map { "LibraryBranch\($0)" }

    init() throws {
      var random = SeededGenerator(seed: 17)
      var source = """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="1">
        """
      for entity in Self.entities {
        source += "<entity name=\"\(entity)\" syncable=\"YES\">"
        for place in 0..<6 {
          let name = String((0..<14).map { _ in Character(UnicodeScalar(UInt8.random(in: 97...122, using: &random))) })
          source +=
            "<attribute name=\"\(name)\" optional=\"YES\" attributeType=\"\(place == 0 ? "Double" : "String")\"/>"
        }
        source += "</entity>"
      }
      let folder = try TemporaryFolder()
      let path = folder.appending("Store.sqlite")
      let model = try ManagedObjectModel(source: Array((source + "</model>").utf8))
      try StoreGenerator(model, options: .init(.typical, seed: 3, records: 20)).write(to: path)
      scene = ScrubScene(folder, path)
      bytes = try #require(try scene.files()["main"])
      let copies = try TemporaryFolder()
      let queue = try DatabaseQueue(path: try RealMaterial.copy(path, into: copies, as: "Copy.sqlite").string)
      (roots, self.model, metadata) = try queue.read { db in
        var roots: [String: Int] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'") {
          roots[row["name"]] = row["rootpage"]
        }
        return (
          roots, Array(try #require(try Data.fetchOne(db, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE"))),
          Array(try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA")))
        )
      }
      try queue.close()
    }

    /// Where a table's first page begins in the file.
    func root(_ table: String) throws -> Int { (try #require(roots[table]) - 1) * pageSize }

    /// Where some bytes are.
    func place(of needle: [UInt8]) throws -> Int { try #require(Data(bytes).range(of: Data(needle))).lowerBound }

    /// Scrubs a copy with damage; gives the bytes of the result.
    func scrubbed(_ damage: (inout [UInt8]) throws -> Void) throws -> [UInt8] {
      var damaged = bytes
      try damage(&damaged)
      let folder = try TemporaryFolder()
      let copy = ScrubScene(folder, try folder.write(damaged, to: "Store.sqlite"))
      let (result, _) = try copy.scrubbed()
      DamagedStoreTests.expectSame(result.salvage(), copy.salvage(), "salvage")
      let written = try #require(try result.files()["main"])
      #expect(try OriginalValues(scene.store).found(in: written) == 0)
      return written
    }
  }

  @Test("Names of entities stay where no schema leads to their table")
  func names() throws {
    let sound = try Sound()
    let root = try sound.root("Z_PRIMARYKEY")
    for start in [0, 100] {
      let written = try sound.scrubbed { bytes in
        for index in start..<sound.pageSize { bytes[index] = 0 }
      }
      let page = Data(written[root..<(root + sound.pageSize)])
      #expect(Sound.entities.allSatisfy { page.range(of: Data($0.utf8)) != nil })
    }
  }

  @Test("The model stays where the schema does not lead to its row")
  func model() throws {
    let sound = try Sound()
    #expect(sound.model.count > 2 * sound.pageSize)
    let row = try sound.place(of: Array("tableZ_MODELCACHEZ_MODELCACHE".utf8))
    let written = try sound.scrubbed { $0[row] = 0x78 }
    let piece = Data(sound.model.suffix(1000))
    #expect(Data(written).range(of: piece) != nil)
  }

  @Test("The model stays on pages that changed places with others", arguments: ["ZLIBRARYBRANCH7", "Z_METADATA"])
  func moved(_ table: String) throws {
    let sound = try Sound()
    let piece = Array(sound.model.suffix(1000))
    let page = try sound.place(of: piece) / sound.pageSize * sound.pageSize
    let other = try sound.root(table)
    _ = try sound.scrubbed { bytes in
      for index in 0..<sound.pageSize { bytes.swapAt(page + index, other + index) }
    }
  }

  @Test("Of the table of the model only the model stays")
  func otherRows() throws {
    let sound = try Sound()
    let queue = try DatabaseQueue(path: sound.scene.store.string)
    try queue.write { db in
      for type in ["TEXT", "BLOB"] {
        try db.execute(sql: "INSERT INTO Z_MODELCACHE VALUES (CAST('Quirinus Vandermeer' AS \(type)))")
      }
    }
    try queue.close()
    let (result, _) = try sound.scene.scrubbed()
    let written = Data(try #require(try result.files()["main"]))
    #expect(written.range(of: Data("Quirinus".utf8)) == nil)
    let rows: [Data] = try StandingTests.column(
      result, "SELECT CAST(Z_CONTENT AS BLOB) FROM Z_MODELCACHE ORDER BY rowid")
    #expect(rows.count == 3 && rows.first == Data(sound.model))
  }

  @Test("Of metadata that no pointer leads to nothing stays")
  func metadata() throws {
    let sound = try Sound()
    let root = try sound.root("Z_METADATA")
    let written = Data(try sound.scrubbed { $0[root + 9] &+= 2 })
    // The hashes of the entities, which nothing tells from an app's data.
    for start in stride(from: 0, to: sound.metadata.count - 24, by: 24) {
      let piece = Data(sound.metadata[start..<(start + 24)])
      guard piece.contains(where: { $0 >= 0x80 }), Set(piece).count >= 16 else { continue }
      #expect(written.range(of: piece) == nil)
    }
  }
}
