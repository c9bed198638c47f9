import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// Text with a NUL in it, which C takes for its end, on its way through migrations; what is there is asked of SQLite as bytes.
struct TextBeyondNULTests {
  private static let old = model(entity("Note", attribute("text"), attribute("kind")))
  private static let new = model(entity("Note", attribute("text"), attribute("kind"), attribute("extra")))

  /// `a`, a NUL, `b` and `é`; one that ends in a NUL; one that is nothing else; one without.
  private static let values = ["610062C3A9", "6100", "00", "6162"]

  private static func scene() throws -> MigrationScene {
    let rows = values.enumerated().map { "(\($0 + 1), 1, 1, CAST(x'\($1)' AS TEXT))" }.joined(separator: ", ")
    return try MigrationScene(old, "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTEXT) VALUES \(rows)")
  }

  /// Takes a value out of a record of the source and puts it into one of the destination.
  private final class Copying: EntityMigrationPolicy {
    func createDestinationInstances(
      for source: MigrationRecord, mapping: EntityMapping, in context: MigrationContext
    ) throws {
      let record = try context.createMappedRecord(for: source, mapping: mapping)
      record["extra"] = source["text"]
      try context.associate(source: source, destination: record, mapping: mapping)
    }
  }

  @Test func anInferredStepKeepsIt() throws {
    let scene = try Self.scene()
    try scene.migrate(try bundle(Self.old, Self.new))
    #expect(try scene.rows("SELECT hex(CAST(ZTEXT AS BLOB)) FROM ZNOTE ORDER BY Z_PK") == Self.values)
  }

  @Test func aPolicyReadsAndWritesAllOfIt() throws {
    let scene = try Self.scene()
    let mapping = CustomMappingTests.custom(
      Self.old, Self.new,
      CustomMappingTests.map("Note", "Note", ["text": .copy("text"), "kind": .copy("kind")], policy: "Copying"))
    var options = CustomMappingTests.options(mapping)
    options.policies.register(className: "Copying") { Copying() }
    try scene.migrate(try bundle(Self.old, Self.new), options: options)
    for column in ["ZTEXT", "ZEXTRA"] {
      let found = try scene.rows("SELECT hex(CAST(\(column) AS BLOB)) FROM ZNOTE ORDER BY Z_PK")
      #expect(found == Self.values, "\(column)")
    }
  }

  @Test func recordsAreReadWhole() throws {
    let scene = try Self.scene()
    let store = try PersistentStore(opening: scene.store, model: Self.old)
    let texts = try store.records(of: "Note").map { $0.values["text"] }
    try store.close()
    #expect(texts == Self.values.map { .string(String(decoding: [UInt8](hexadecimal: $0) ?? [], as: UTF8.self)) })
  }

  @Test func aLiteralOfItIsTheSameInEveryEncoding() throws {
    for encoding in ["UTF-8", "UTF-16le"] {
      let result = try ChildProcess.run(
        "sqlite3",
        [
          ":memory:",
          "PRAGMA encoding = '\(encoding)'; CREATE TABLE t (x TEXT); INSERT INTO t VALUES (\(SQLText.literal("a\u{0}b'c")));"
            + "SELECT hex(CAST(x AS BLOB)) FROM t",
        ])
      #expect(result.output == (encoding == "UTF-8" ? "6100622763\n" : "61000000620027006300\n"), "\(result.errors)")
    }
  }
}
