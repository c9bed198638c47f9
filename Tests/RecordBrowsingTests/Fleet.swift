import GRDB
import Inspector
import ManagedObjectModel
import PersistentStore
import SystemPackage
import TestSupport

/// A small store of ships, ferries, people and ports.
struct Fleet {
  let folder: TemporaryFolder
  let path: FilePath
  let model: ManagedObjectModel

  static func attribute(_ name: String, _ type: AttributeType) -> Property {
    .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type))
  }

  static func relationship(
    _ name: String, _ destination: String, _ inverse: String, toMany: Bool, isOrdered: Bool = false
  ) -> Property {
    .relationship(
      Relationship(
        traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: destination, inverseName: inverse,
        maximumCount: toMany ? 0 : 1, isOrdered: isOrdered))
  }

  /// - Parameter records: the number of people beyond the first three.
  init(records: Int = 0) throws {
    folder = try TemporaryFolder()
    path = folder.appending("Fleet.sqlite")
    model = ManagedObjectModel(entities: [
      Entity(
        name: "Ship",
        properties: [
          Self.attribute("name", .string), Self.attribute("tons", .integer32), Self.attribute("launched", .date),
          Self.attribute("id", .uuid), Self.attribute("isFast", .boolean), Self.attribute("flag", .binary),
          Self.relationship("crew", "Person", "ship", toMany: true, isOrdered: true),
          Self.relationship("ports", "Port", "ships", toMany: true),
        ]),
      Entity(name: "Ferry", parentName: "Ship", properties: [Self.attribute("seats", .integer16)]),
      Entity(
        name: "Person",
        properties: [
          Self.attribute("name", .string), Self.attribute("age", .integer16), Self.attribute("born", .date),
          Self.relationship("ship", "Ship", "crew", toMany: false),
        ]),
      Entity(
        name: "Port",
        properties: [
          Self.attribute("name", .string), Self.relationship("ships", "Ship", "ports", toMany: true),
        ]),
    ])
    let layout = try StoreLayout(model)
    guard let ship = layout.entity(named: "Ship")?.number, let ferry = layout.entity(named: "Ferry")?.number,
      let person = layout.entity(named: "Person")?.number, let port = layout.entity(named: "Port")?.number,
      case .toOne(let shipColumn, let shipEntity, let order) = layout.storage(of: "ship", in: "Person"),
      case .toManyByJoinTable(let join, let own, let other, _) = layout.storage(of: "ports", in: "Ship")
    else { throw FleetError() }
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      for table in layout.tables { try database.execute(sql: table.statement) }
      for table in layout.joinTables { try database.execute(sql: table.statement) }
      try database.execute(
        sql: """
          INSERT INTO ZSHIP (Z_PK, Z_ENT, Z_OPT, ZNAME, ZTONS, ZLAUNCHED, ZID, ZISFAST, ZFLAG, ZSEATS) VALUES
            (1, \(ship), 1, 'Aurora', 100, 86400.0, x'00112233445566778899AABBCCDDEEFF', 1, x'89504E470D0A1A0A00', NULL),
            (2, \(ship), 1, NULL, NULL, 1e8, NULL, NULL, NULL, NULL),
            (3, \(ship), 1, 'Bella', 'heavy', NULL, NULL, 0, NULL, NULL),
            (4, \(ferry), 1, 'Porto Rosso', 250, -10, NULL, NULL, NULL, 80),
            (5, \(ferry), 1, '100% sure', 7, NULL, NULL, NULL, NULL, 90);
          INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, \(port), 1, 'Genoa');
          INSERT INTO \(join) (\(own), \(other)) VALUES (1, 1), (4, 1);
          CREATE TABLE extra (id INTEGER PRIMARY KEY, note);
          INSERT INTO extra VALUES (1, '=1+1'), (2, 'a "b", c'), (3, -5)
          """)
      guard let order, let shipEntity else { throw FleetError() }
      guard records == 0 else {
        try database.execute(
          sql: """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(records))
            INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZAGE, ZBORN)
            SELECT i, \(person), 1, CASE i % 7 WHEN 0 THEN NULL ELSE 'person ' || (i * 31 % 97) END, i % 5, i % 11 * 1e6 FROM n
            """)
        return
      }
      try database.execute(
        sql: """
          INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, \(shipColumn), \(shipEntity), \(order)) VALUES
            (1, \(person), 1, 'Ada', 1, \(ship), 2048), (2, \(person), 1, 'Ben', 1, \(ship), 1024),
            (3, \(person), 1, 'Cy', 77, \(ship), 1)
          """)
    }
    try queue.close()
  }

  /// Gives the second ship a crew and ports.
  ///
  /// - Returns: the keys of the crew in the order of the relationship, in which several have no place or the same, and those of the ports.
  func addRelated(count: Int) throws -> (crew: [Int], ports: [Int]) {
    let layout = try StoreLayout(model)
    guard case .toOne(let column, _, let order?) = layout.storage(of: "ship", in: "Person"),
      let person = layout.entity(named: "Person")?.number, let port = layout.entity(named: "Port")?.number,
      case .toManyByJoinTable(let join, let own, let other, _) = layout.storage(of: "ports", in: "Ship")
    else { throw FleetError() }
    let keys = Array(100..<(100 + count))
    let places = keys.map { key -> Int? in key % 5 == 0 ? nil : key * 7 % 11 }
    let queue = try DatabaseQueue(path: path.string)
    try queue.write { database in
      for (key, place) in zip(keys, places) {
        try database.execute(
          sql: "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, \(column), \(order)) VALUES (?, ?, 1, 'hand', 2, ?)",
          arguments: [key, person, place])
        try database.execute(
          sql: "INSERT INTO ZPORT (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, ?, 1, 'harbour')", arguments: [key, port])
        try database.execute(sql: "INSERT INTO \(join) (\(own), \(other)) VALUES (2, ?)", arguments: [key])
      }
    }
    try queue.close()
    let crew = zip(keys, places).sorted { ($0.1 ?? -1, $0.0) < ($1.1 ?? -1, $1.0) }.map(\.0)
    return (crew, keys)
  }

  func browse(limits: BrowsedStore.Limits = .init()) throws -> BrowsedStore {
    try BrowsedStore(path, model: model, limits: limits, connections: 2)
  }

  struct FleetError: Error {}
}
