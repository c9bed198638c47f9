import GRDB
import PersistentStore
import Salvage
import SystemPackage
import TestSupport
import Testing

/// Plain stores whose list of tables is gone or damaged, with a schema that the caller gives.
@Suite("A schema that is given is used")
struct GivenSchemaTests {
  private static let schema = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, note TEXT COLLATE NOCASE);
    CREATE TABLE "order" (id INTEGER PRIMARY KEY AUTOINCREMENT, customer INTEGER NOT NULL REFERENCES customer (id),
      total REAL CHECK (total >= 0), tax REAL AS (total / 5), gross REAL AS (total * 2) STORED);
    CREATE TABLE tag (name TEXT, weight INT, PRIMARY KEY (name)) WITHOUT ROWID;
    CREATE TABLE setting (key TEXT PRIMARY KEY, value ANY) STRICT;
    CREATE VIRTUAL TABLE doc USING fts5(title);
    CREATE INDEX big ON "order" (total) WHERE total > 5;
    CREATE INDEX lower_name ON customer (lower(name));
    CREATE VIEW rich AS SELECT name FROM customer;
    CREATE TRIGGER logged AFTER INSERT ON customer BEGIN INSERT INTO tag VALUES (new.name, 1); END;
    """

  private static func scene() throws -> PlainScene {
    try PlainScene(schema: schema) { database in
      for number in 1...80 {
        try database.execute(
          sql: "INSERT INTO customer VALUES (?, ?, ?, ?)",
          arguments: [number, "Name \(number)", "u\(number)@example.org", "note \(number)"])
        try database.execute(
          sql: "INSERT INTO \"order\" (customer, total) VALUES (?, ?)", arguments: [number, Double(number) + 0.5])
      }
      for number in 1...30 {
        try database.execute(sql: "INSERT INTO setting VALUES (?, ?)", arguments: ["k\(number)", number])
      }
    }
  }

  /// The objects of a database, by what they are and their statements.
  private static func objects(_ path: String) throws -> Set<String> {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { database in
      try Set(
        String.fetchAll(
          database,
          sql:
            "SELECT type || ' ' || name || ' ' || sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"
        ))
    }
  }

  private static func salvage(_ scene: PlainScene, by script: SchemaScript) throws -> (
    report: SalvageReport, objects: Set<String>, names: [String]
  ) {
    let place = try TemporaryFolder()
    let path = try place.write(scene.main, to: "Store.sqlite")
    let output = place.appending("Out.sqlite")
    let report = try Salvager().salvage(path, to: output, model: .sqlite(script))
    let queue = try DatabaseQueue(path: output.string)
    let names = try queue.read { try String.fetchAll($0, sql: "SELECT name FROM customer ORDER BY id") }
    try queue.close()
    return (report, try objects(output.string), names)
  }

  @Test(
    "Without the first page a store is made with every constraint, index, view and trigger", arguments: [false, true])
  func firstPageLost(asListed: Bool) throws {
    var scene = try Self.scene()
    let whole = scene.folder.appending("Plain.sqlite").string
    let wanted = try Self.objects(whole)
    let script: SchemaScript
    if asListed {
      // As a shell lists it: SQLite's own tables too, and those behind virtual tables before these.
      let queue = try DatabaseQueue(path: whole)
      let statements = try queue.read {
        try String.fetchAll(
          $0, sql: "SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name LIKE 'doc@_%' ESCAPE '@' DESC, rowid"
        )
      }
      try queue.close()
      #expect(statements.contains { $0.contains("sqlite_sequence") })
      script = try SchemaScript(statements.map { $0 + ";\n" }.joined())
    } else {
      script = try SchemaScript(Self.schema)
    }
    scene.main.replaceSubrange(scene.range(of: 1), with: [UInt8](repeating: 0, count: scene.pageSize))
    let result = try Self.salvage(scene, by: script)
    #expect(wanted.subtracting(result.objects).isEmpty, "\(wanted.subtracting(result.objects))")
    #expect(result.names == (1...80).map { "Name \($0)" })
  }

  @Test("A flipped bit in the declaration of SQLite's own tables costs no row and no highest key")
  func ownDeclarations() throws {
    let scene = try PlainScene(schema: "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT)") { db in
      for id in 1...40 { try db.execute(sql: "INSERT INTO t (id, w) VALUES (?, ?)", arguments: [id, "word \(id)"]) }
      try db.execute(sql: "UPDATE sqlite_sequence SET seq = 70")
    }
    let columns = Array("(name,seq)".utf8)
    let start = try #require(
      scene.main.indices.first { scene.main[$0...].prefix(columns.count).elementsEqual(columns) })
    for offset in columns.indices {
      for bit in [0, 2, 5] {
        let damaged = scene.changing { $0.main[start + offset] ^= 1 << UInt8(bit) }
        let path = try damaged.folder.write(damaged.main, to: "Damaged.sqlite")
        let output = damaged.folder.appending("Out-\(offset)-\(bit).sqlite")
        let report = try Salvager().salvage(path, to: output)
        #expect(report.entities.first { $0.table == "t" }?.recovered == 40, "byte \(offset), bit \(bit)")
        let queue = try DatabaseQueue(path: output.string)
        #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT seq FROM sqlite_sequence") } == 70)
        try queue.close()
      }
    }
  }

  @Test("A damaged declaration is read by the given one, whichever byte of it is changed")
  func damagedDeclaration() throws {
    let scene = try Self.scene()
    let wanted = try Self.objects(scene.folder.appending("Plain.sqlite").string)
    let statement = Array("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT".utf8)
    let start = try #require(
      scene.main.indices.first { scene.main[$0...].prefix(statement.count).elementsEqual(statement) })
    for offset in stride(from: 0, to: statement.count, by: 3) {
      let damaged = scene.changing { $0.main[start + offset] ^= 1 << UInt8(offset % 5) }
      let result = try Self.salvage(damaged, by: SchemaScript(Self.schema))
      #expect(wanted.subtracting(result.objects).isEmpty, "byte \(offset)")
      #expect(result.names == (1...80).map { "Name \($0)" }, "byte \(offset)")
    }
  }

  @Test("Columns and tables that the given schema does not know stay with their values, and refused rows are set aside")
  func otherSchema() throws {
    let scene = try Self.scene()
    let script = try SchemaScript(
      "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE setting (key TEXT PRIMARY KEY CHECK (key <> 'k7'), value ANY) STRICT"
    )
    let result = try Self.salvage(scene, by: script)
    #expect(result.names.count == 80)
    #expect(result.objects.contains { $0.contains("email TEXT UNIQUE") })
    #expect(result.objects.contains { $0.contains("CHECK (total >= 0)") })
    #expect(result.objects.contains { $0.contains("key <> 'k7'") })
    #expect(result.report.rebuild?.setAside.map(\.count) == [1])
    #expect(!result.report.isComplete)
  }

  @Test(
    "Without the first page, texts in keys show their encoding, and else have the one of the given store",
    arguments: [false, true])
  func encoding(isOfGivenStore: Bool) throws {
    let keys = try (1...600).map { number -> String in
      // Characters without a zero byte look like no UTF-16.
      let sign = try #require(Unicode.Scalar(0x4E01 + UInt32(number / 250 * 256 + number % 250)))
      return isOfGivenStore ? "\u{6F22}\u{5B57}\(Character(sign))" : "key \(number)"
    }
    var scene = try PlainScene(
      pragmas: "PRAGMA encoding = 'UTF-16le'", schema: "CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID"
    ) { database in
      for key in keys { try database.execute(sql: "INSERT INTO kv VALUES (?, randomblob(9))", arguments: [key]) }
    }
    var script = try SchemaScript(scene.schema)
    if isOfGivenStore {
      let model = try AppModel.schema(ofStore: scene.folder.appending("Plain.sqlite"))
      guard case .sqlite(let own, _)? = model else {
        Issue.record("the store has no schema")
        return
      }
      script = own
    }
    scene.main.replaceSubrange(scene.range(of: 1), with: [UInt8](repeating: 0, count: scene.pageSize))
    let place = try TemporaryFolder()
    let path = try place.write(scene.main, to: "Store.sqlite")
    let output = place.appending("Out.sqlite")
    _ = try Salvager().salvage(path, to: output, model: .sqlite(script))
    let queue = try DatabaseQueue(path: output.string)
    let found = try queue.read { try String.fetchAll($0, sql: "SELECT k FROM kv") }
    try queue.close()
    #expect(Set(found) == Set(keys))
  }
}
