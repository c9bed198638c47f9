import Backup
import GRDB
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SystemPackage
import TestSupport

/// Generated stores, and a place for their backups.
struct RestoreScene {
  let folder: TemporaryFolder
  var backups: MadeBackups { MadeBackups(place: FolderPlace(folder.appending("Backups/Ships"))) }
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  func restorer(_ fileSystem: FileSystem = FileSystem()) -> BackupRestorer {
    BackupRestorer(
      of: FolderPlace(folder.appending("Backups/Ships"), in: fileSystem), surroundings: .still(fileSystem: fileSystem))
  }

  /// A hierarchy, references to it, a many-to-many and an ordered relationship, large values.
  static let model = ManagedObjectModel(entities: [
    Entity(
      name: "Ship",
      properties: [
        attribute("name", .string), attribute("tons", .integer32), attribute("log", .string),
        toMany("crew", "Person", "ship", isOrdered: true), toMany("ports", "Port", "ships"),
        toMany("flags", "Flag", nil),
      ]),
    Entity(name: "Ferry", parentName: "Ship", properties: [attribute("seats", .integer16)]),
    Entity(
      name: "Person",
      properties: [
        attribute("name", .string), attribute("born", .date), attribute("photo", .binary, isExternal: true),
        toOne("ship", "Ship", "crew"), toOne("friend", "Person", nil),
      ]),
    Entity(name: "Port", properties: [attribute("name", .string), toMany("ships", "Ship", "ports")]),
    Entity(name: "Flag", properties: [attribute("color", .string)]),
  ])

  private static func attribute(_ name: String, _ type: AttributeType, isExternal: Bool = false) -> Property {
    .attribute(
      Attribute(
        traits: PropertyTraits(name: name, isOptional: true), type: type, allowsExternalBinaryDataStorage: isExternal))
  }

  private static func toOne(_ name: String, _ destination: String, _ inverse: String?) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse))
  }

  private static func toMany(
    _ name: String, _ destination: String, _ inverse: String?, isOrdered: Bool = false
  ) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
        maximumCount: 0, isOrdered: isOrdered))
  }

  /// Generates a store.
  func store(
    _ name: String, seed: UInt64 = 1, records: Int = 200, profile: StoreProfile = .typical,
    journal: StoreGenerator.Journal = .none
  ) throws -> FilePath {
    let path = folder.appending(name)
    try system.makeDirectory(path.removingLastComponent())
    try StoreGenerator(Self.model, options: .init(profile, seed: seed, records: records, journal: journal))
      .write(to: path)
    return path
  }

  func bytes(_ path: FilePath) throws -> [UInt8] { try system.contents(of: path, limit: 1 << 30) }

  /// The large values beside a store, by their names below its folder.
  func values(of path: FilePath) throws -> [(name: String, bytes: [UInt8])] {
    let folder = StoreFileSet(main: path).path(of: .externalData)
    guard try system.status(of: folder) != nil else { return [] }
    return try system.descendants(of: folder).files.map { file in
      (file.relative.map(\.string).joined(separator: "/"), try bytes(file.path))
    }.sorted { $0.0 < $1.0 }
  }

  /// Runs statements on a store, and leaves everything in its main file.
  func change(_ path: FilePath, _ sql: String) throws {
    let store = try PersistentStore(opening: path)
    try store.write { try $0.execute(sql: sql) }
    try store.close()
  }

  /// Every row of every table as text, by table and key.
  static func rows(_ path: FilePath, ignoring: Set<String> = []) throws -> [String: [String: [String: String]]] {
    let queue = try DatabaseQueue(path: path.string)
    defer { try? queue.close() }
    return try queue.read { database in
      var result: [String: [String: [String: String]]] = [:]
      let names = try String.fetchAll(
        database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
      for name in names where !ignoring.contains(name) {
        var rows: [String: [String: String]] = [:]
        for row in try Row.fetchAll(database, sql: "SELECT rowid AS lazaret_key, * FROM \"\(name)\"") {
          var values: [String: String] = [:]
          for (column, value) in row where column != "lazaret_key" {
            if case .blob(let data) = value.storage {
              values[column] = "blob \(FileDigest(of: Array(data)).hexadecimal)"
            } else {
              values[column] = "\(value)"
            }
          }
          rows["\(row["lazaret_key"] as Int64)"] = values
        }
        result[name] = rows
      }
      return result
    }
  }
}
