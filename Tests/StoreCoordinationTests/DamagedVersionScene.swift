import GRDB
import Lazaret
import LazaretTesting
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// A store with records of some version of a model, and damaged copies of it that hold every record still.
struct DamagedVersionScene {
  /// What is damaged.
  enum Damage: String, CaseIterable {
    /// A page of a table that is none of the model's: the metadata says of which version the store is.
    case foreignPage

    /// The first page: only a salvage finds out of which version the store is.
    case firstPage
  }

  /// A version by its name and the properties of its only entity.
  struct Version {
    let name: String
    let properties: [String]

    init(_ name: String, _ properties: String...) { (self.name, self.properties) = (name, properties) }
  }

  static let count = 120

  let folder: TemporaryFolder
  let whole: FilePath
  private let system = FileSystem()

  var store: FilePath { folder.appending("Stores/App.sqlite") }
  var home: FilePath { folder.appending("Home") }

  /// - Parameters:
  ///   - version: that of the store.
  ///   - columns: the columns that hold values, such as `ZNAME`: each the column's name with the number of the record.
  init(_ version: Version, _ columns: [String]) throws {
    folder = try TemporaryFolder()
    try system.makeDirectory(folder.appending("Stores"))
    let model = try Self.bundle([version], in: folder, "Own").current.model
    whole = try folder.write(
      StoreCreation(
        model: model, uuid: "00000000-0000-4000-8000-000000000000", modelCache: try model.modelCache()
      ).bytes(), to: "Whole.sqlite")
    let opened = try PersistentStore(opening: whole, model: model)
    try opened.write { database in
      let values = columns.map { "'\($0) ' || i" }.joined(separator: ", ")
      try database.execute(
        sql: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(Self.count))
          INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, \(columns.joined(separator: ", "))) SELECT i, 1, 1, \(values) FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = \(Self.count);
          CREATE TABLE other (text);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
          INSERT INTO other SELECT 'none of the model''s ' || i || hex(zeroblob(100)) FROM n
          """)
    }
    try opened.close()
  }

  /// The model of an app; the last version is the current one.
  ///
  /// - Parameter order: the versions whose order is known; nil for none.
  func model(_ versions: [Version], order: [String]? = nil) throws -> AppModel {
    .coreData(try Self.bundle(versions, in: folder, "App", order: order))
  }

  private static func bundle(
    _ versions: [Version], in folder: TemporaryFolder, _ name: String, order: [String]? = nil
  ) throws -> ModelBundle {
    for version in versions {
      try folder.write(
        """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522">
        <entity name="Car" representedClassName="Car" syncable="YES">\(version.properties.joined())</entity>
        </model>
        """, to: "\(name).xcdatamodeld/\(version.name).xcdatamodel/contents")
    }
    return try ModelBundle.load(path: folder.appending("\(name).xcdatamodeld"), order: order)
  }

  /// An attribute.
  static func attribute(_ name: String, _ type: String = "String", was identifier: String? = nil) -> String {
    let renamed = identifier.map { " elementID='\($0)'" } ?? ""
    return "<attribute name='\(name)' optional='YES' attributeType='\(type)'\(renamed)/>"
  }

  /// Puts a copy into the place of the store, damaged or, for nil, as it is.
  func put(_ damage: Damage?) throws {
    switch damage {
    case nil: try system.duplicate(whole, to: store)
    case .firstPage: _ = try DamagedCopy.make(of: whole, at: store, kinds: [try DamageKind("page1:zero")], seed: 3)
    case .foreignPage:
      var bytes = try system.contents(of: whole, limit: 1 << 24)
      let mark = Array("none of the model's".utf8)
      let size = 4096
      let page = try #require(
        stride(from: size, to: bytes.count, by: size).first { start in
          bytes[start..<(start + size)].indices.contains { bytes[$0...].starts(with: mark) }
        })
      for index in page..<(page + size) { bytes[index] = 0 }
      try folder.write(bytes, to: "Stores/App.sqlite")
    }
  }

  /// Opens the store in its place.
  func open(
    _ model: AppModel, _ policy: OpeningPolicy = OpeningPolicy(depth: .full),
    migration: Migrator.Options = Migrator.Options()
  ) throws -> Opening {
    var policy = policy
    (policy.recoveryKitInterval, policy.checkInterval) = (nil, nil)
    return try StoreCoordinator(model: model, policy: policy, home: home, migration: migration, surroundings: .still())
      .open(store)
  }

  /// The only quarantined store.
  func quarantined() throws -> QuarantinedStore {
    let stores = try Quarantines(home: home, surroundings: .still()).stores()
    #expect(stores.count == 1)
    return try #require(stores.first)
  }

  /// Whether anything is in the place.
  func isEmpty() throws -> Bool { try system.status(of: store) == nil }

  /// The values of a column in the store at a path, in the order of its records.
  func values(_ column: String, at path: FilePath) throws -> [String?] {
    let copy = folder.appending("Copy.sqlite")
    try system.unlink(copy)
    try system.duplicate(path, to: copy)
    let queue = try DatabaseQueue(path: copy.string)
    let values = try queue.read {
      try Optional<String>.fetchAll($0, sql: "SELECT ZCAR.\"\(column)\" FROM ZCAR ORDER BY Z_PK")
    }
    try queue.close()
    return values
  }

  /// The values that a column of the store was given.
  static func values(of column: String) -> [String?] { (1...count).map { "\(column) \($0)" } }
}
