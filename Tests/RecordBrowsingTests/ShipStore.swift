import GRDB
import Inspector
import LazaretTesting
import ManagedObjectModel
import SystemPackage
import TestSupport

/// A generated store of ships and people with deleted records, and damaged copies of it.
struct ShipStore {
  let folder: TemporaryFolder
  let home: TemporaryFolder
  let store: FilePath

  static var model: ManagedObjectModel {
    ManagedObjectModel(entities: [
      Entity(
        name: "Ship",
        properties: [
          Fleet.attribute("name", .string), Fleet.attribute("tons", .integer32), Fleet.attribute("log", .string),
          Fleet.relationship("crew", "Person", "ship", toMany: true),
        ]),
      Entity(name: "Ferry", parentName: "Ship", properties: [Fleet.attribute("seats", .integer16)]),
      Entity(
        name: "Person",
        properties: [
          Fleet.attribute("name", .string), Fleet.attribute("born", .date), Fleet.attribute("id", .uuid),
          Fleet.relationship("ship", "Ship", "crew", toMany: false),
        ]),
    ])
  }

  init(seed: UInt64, records: Int = 300, journal: StoreGenerator.Journal = .none) throws {
    folder = try TemporaryFolder()
    home = try TemporaryFolder()
    store = folder.appending("Ships.sqlite")
    try StoreGenerator(Self.model, options: .init(.typical, seed: seed, records: records, journal: journal))
      .write(to: store)
  }

  /// Changes the store itself by SQL.
  func change(_ statement: String, at path: FilePath? = nil) throws {
    let queue = try DatabaseQueue(path: (path ?? store).string)
    try queue.writeWithoutTransaction { database in try database.execute(sql: statement) }
    try queue.close()
  }

  /// A damaged copy.
  func damaged(_ kind: String, seed: UInt64) throws -> FilePath {
    let place = folder.appending("Damaged-\(kind.filter { $0.isLetter })-\(seed).sqlite")
    _ = try DamagedCopy.make(of: store, at: place, kinds: [try DamageKind(kind)], seed: seed)
    return place
  }

  /// The sides of the store, without any model but its own.
  var sides: StoreSides { StoreSides(home: home.path, models: []) }

  struct NotReady: Error {}

  /// A side, however long it takes.
  func open(_ side: StoreSide, in sides: StoreSides) throws -> OpenedSide {
    guard case .ready(let opened) = try sides.open(side, patience: 60_000) else { throw NotReady() }
    return opened
  }
}
