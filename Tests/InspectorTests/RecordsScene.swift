import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import LazaretTesting
import ManagedObjectModel
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport

/// A home with a damaged store in quarantine, salvaged, a sound one in its place and a backup of that.
struct RecordsScene {
  let folder: TemporaryFolder
  let home: FilePath
  let live: FilePath
  let inspector: Inspector
  let browser: Browser
  let quarantined: String
  let liveID: String
  let backup: String

  static func attribute(_ name: String, _ type: AttributeType) -> Property {
    .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
  }

  static func relationship(_ name: String, _ destination: String, _ inverse: String, toMany: Bool) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
        maximumCount: toMany ? 0 : 1))
  }

  static let model = ManagedObjectModel(entities: [
    Entity(
      name: "Ship",
      properties: [
        attribute("name", .string), attribute("tons", .integer32), attribute("launched", .date),
        attribute("id", .uuid), attribute("flag", .binary), attribute("isFast", .boolean),
        relationship("crew", "Person", "ship", toMany: true),
      ]),
    Entity(
      name: "Person",
      properties: [attribute("name", .string), relationship("ship", "Ship", "crew", toMany: false)]),
  ])

  /// Text that would do harm on a page that did not escape it.
  static let harm = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"

  struct NoBundle: Error {}

  /// - Parameter change: statements that change the store before it is damaged.
  init(damage: String = "rand:4", change: String = "") throws {
    folder = try TemporaryFolder()
    home = folder.path
    try FileSystem().makeDirectory(home.appending("Stores"))
    live = home.appending("Stores").appending("Ships.sqlite")
    let pristine = folder.appending("Pristine.sqlite")
    try StoreGenerator(Self.model, options: .init(.typical, seed: 5, records: 250)).write(to: pristine)
    let queue = try DatabaseQueue(path: pristine.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "UPDATE ZSHIP SET ZNAME = ? WHERE Z_PK = 1", arguments: [Self.harm])
      try database.execute(
        sql: """
          UPDATE ZSHIP SET ZNAME = '=cmd|calc', ZFLAG = x'89504E470D0A1A0A0000' WHERE Z_PK = 2;
          UPDATE ZSHIP SET ZFLAG = CAST('{"a": "<b>"}' AS BLOB) WHERE Z_PK = 3;
          UPDATE ZPERSON SET ZSHIP = 1 WHERE Z_PK < 30
          """)
      if !change.isEmpty { try database.execute(sql: change) }
      _ = try Row.fetchAll(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try queue.close()
    _ = try DamagedCopy.make(of: pristine, at: live, kinds: [try DamageKind(damage)], seed: 9)
    let quarantines = Quarantines(home: home)
    let store = try quarantines.add(live, reason: "It was damaged for a test.")
    _ = try quarantines.salvage(store.files.main)
    try FileSystem().rename(pristine, to: live)
    _ = try Backups(home: home).create(live)
    // Afterwards the app has changed something.
    let changed = try DatabaseQueue(path: live.string)
    try changed.writeWithoutTransaction { database in
      try database.execute(
        sql: "UPDATE ZPERSON SET ZNAME = 'renamed' WHERE Z_PK BETWEEN 5 AND 9; DELETE FROM ZPERSON WHERE Z_PK = 200")
      _ = try Row.fetchAll(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try changed.close()
    inspector = try Scene.inspector(of: home)
    browser = try Browser(inspector)
    let catalogue = inspector.catalogue
    guard let one = try catalogue.quarantined().first, let two = try catalogue.live().first,
      let three = try catalogue.backups().first
    else { throw NoBundle() }
    quarantined = one.id.text
    liveID = two.id.text
    backup = three.id.text
  }

  /// The side of the backup beside other stores.
  var backupSide: String { "backup" + backup.dropFirst() }

  /// The answer for an address of the quarantined store, when the side it is about is ready.
  func get(_ address: String) throws -> Response {
    for _ in 0..<60 {
      let response = try browser.get("/stores/\(quarantined)\(address)")
      guard response.text.contains("data-reload") || response.text.contains("\"preparing\":true") else {
        return response
      }
      usleep(100_000)
    }
    return try browser.get("/stores/\(quarantined)\(address)")
  }

  /// The same as JSON.
  func json(_ address: String) throws -> [String: Any] {
    let parts = address.split(separator: "?", maxSplits: 1)
    let twin = "\(parts[0]).json" + (parts.count > 1 ? "?\(parts[1])" : "")
    let response = try get(twin)
    guard response.status == .ok,
      let object = try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any]
    else { return ["status": response.status.rawValue, "text": response.text] }
    return object
  }
}

extension Response {
  /// The whole body, of a stream too.
  func whole() throws -> String {
    guard case .chunks(let source) = body else { return text }
    var bytes: [UInt8] = []
    while let piece = try source.next() { bytes += piece }
    return String(decoding: bytes, as: UTF8.self)
  }
}
