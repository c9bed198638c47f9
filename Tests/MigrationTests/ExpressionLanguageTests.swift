import GRDB
import ManagedObjectModel
import Migration
import Platform
import Testing

/// Expressions in SQL are SQLite's: what they give, and what is none, is held against SQLite on a table of the same
/// columns.
struct ExpressionLanguageTests {
  static let old = model(
    entity("Post", attribute("a", .integer64), attribute("b"), attribute("c", .double), attribute("order", .integer16)))

  static let rows = "(1, 1, 1, 5, 'Ada', 2.5, 3), (2, 1, 1, NULL, 'ada''s', -1, NULL), (3, 1, 1, -7, NULL, NULL, 0)"

  /// A table of the attributes, by their names.
  private func oracle() throws -> DatabaseQueue {
    let queue = try DatabaseQueue()
    try queue.write { database in
      try database.execute(
        sql: "CREATE TABLE Post (Z_PK INTEGER PRIMARY KEY, x, y, a INTEGER, b VARCHAR, c FLOAT, \"order\" INTEGER)")
      try database.execute(sql: "INSERT INTO Post VALUES \(Self.rows)")
    }
    return queue
  }

  private static func mapping(_ expressions: [String]) -> (new: ManagedObjectModel, mapping: MappingModel) {
    let names = expressions.indices.map { "r\($0)" }
    let new = model(Entity(name: "Post", properties: names.map { attribute($0) }))
    let values = zip(names, expressions).map { name, text in
      (PropertyPath(name), PropertyMapping.Value.expression(.sql(text)))
    }
    return (
      new,
      CustomMappingTests.custom(
        old, new, CustomMappingTests.map("Post", "Post", Dictionary(uniqueKeysWithValues: values)))
    )
  }

  @Test func expressionsGiveWhatSQLiteGives() throws {
    let expressions = [
      "1 + 2 * 3 - -4 % 3", "a + NOT 2", "- - -a", "~a & 6 | 1 << 2 >> 1", "NOT a NOT NULL", "a ISNULL OR b NOTNULL",
      "a BETWEEN 1 AND 5 AND b LIKE 'a%'", "a NOT BETWEEN c AND 9", "b BETWEEN 'A' AND 'Z' COLLATE NOCASE",
      "b LIKE 'A\\_%' ESCAPE '\\' OR b NOT LIKE 'x%'", "b GLOB 'A*'", "b NOT GLOB 'A*'", "like('a%', b)",
      "glob('A*', b)",
      "a IN ()", "a IN (1, 5, c)", "a NOT IN (5, NULL)", "(a, b) = (5, 'Ada')", "(a, b) IN ((5, 'Ada'))",
      "a IS NOT DISTINCT FROM 5", "a IS DISTINCT FROM c", "a IS NOT 5", "a IS NULL + 1",
      "CASE WHEN a > 0 THEN 'up' WHEN a < 0 THEN 'down' END",
      "CASE a WHEN 5 THEN CASE b WHEN 'Ada' THEN 1 END ELSE c END",
      "CAST(c AS INTEGER) || CAST (a AS text)", "CAST(CAST(a AS TEXT) || '1' AS numeric) + 1",
      "b COLLATE nocase = 'ADA' COLLATE binary", "x'41' || 'b' || 0x10 || 1.5e1 || .5", "max(a, c, 0)", "min(a, 3)",
      "abs(DISTINCT a)", "coalesce(a, c, 7) -- the end", "/* first */ \"order\" + `a` + [a]", "order * 2",
      "json_extract('{\"k\": [1, 2]}', '$.k[1]')", "'{\"k\": 3}' ->> '$.k'", "TRUE AND NULL IS NULL",
      "substr(b, 2) <> b",
      "strftime('%Y', a * 86400, 'unixepoch')", "printf('%03d', a)", "replace(b, 'a', 'o')", "a <> 5 == (b != 'Ada')",
    ]
    let (new, mapping) = Self.mapping(expressions.map { text in "CAST((\(text)\n) AS TEXT)" })
    let scene = try MigrationScene(
      Self.old, "INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZA, ZB, ZC, ZORDER) VALUES \(Self.rows)")
    try scene.migrate(try bundle(Self.old, new), options: CustomMappingTests.options(mapping))
    let oracle = try oracle()
    for (index, text) in expressions.enumerated() {
      // SQLite takes a bare `order` for its keyword; here it is the attribute.
      let quoted = text.hasPrefix("order") ? "\"order\" * 2" : text
      let expected = try oracle.read { database in
        try String?.fetchAll(database, sql: "SELECT CAST((\(quoted)\n) AS TEXT) FROM Post ORDER BY Z_PK")
      }
      let found = try scene.rows("SELECT ZR\(index) FROM ZPOST ORDER BY Z_PK")
      #expect(found == expected.map { $0 ?? "NULL" }, "\(text)")
    }
  }

  @Test(arguments: [
    ("a b", 3), ("a 'b'", 3), ("a NOT b", 7), ("a NOT", 3), ("a BETWEEN 1 OR 2 AND 3", 13), ("a ~ b", 3),
    ("a + * b", 5), ("(a, ) + 1", 5), ("a, b", 2), ("()", 2),
    ("CASE END", 6), ("CASE a WHEN 1 ELSE 2 END", 15), ("CASE WHEN a THEN END", 18), ("a BETWEEN 1", 11),
    ("a AND BETWEEN 1", 7), ("a IN 5", 6), ("THEN", 1), ("a COLLATE other", 3), ("a ESCAPE b", 3), ("a IS", 3),
    ("CAST(a AS DATE)", 1), ("CAST(a)", 1), ("abs(a", 5), ("a)", 2), ("a.", 1), (".5 . a", 4), ("12ab", 1),
    ("a AS b", 3),
  ])
  func whatIsNoExpressionIsToldWithItsPlace(text: String, position: Int) throws {
    let (_, mapping) = Self.mapping([text])
    let error = try #require(throws: MigrationError.self) { try mapping.check() }
    #expect(error.code == "mapping-invalid" && error.propertyName == "r0", "\(error)")
    #expect(error.detail.contains("character \(position):"), "\(error)")
    // What SQLite allows and expressions of mappings do not.
    guard !["a COLLATE other", "CAST(a AS DATE)"].contains(text) else { return }
    let oracle = try oracle()
    #expect(throws: DatabaseError.self) {
      try oracle.read { try Row.fetchAll($0, sql: "SELECT (\(text)\n) + 1 FROM Post") }
    }
  }

  @Test(arguments: [
    (String(repeating: "(", count: 65) + "a" + String(repeating: ")", count: 65), "more than 64 parentheses"),
    (String(repeating: "CASE ", count: 3000), "more than 128 expressions"),
    (String(repeating: "-", count: 1) + String(repeating: " -", count: 8000) + "a", "SQLite cannot compile"),
    ("a" + String(repeating: "+1", count: 8000), "SQLite cannot compile"),
    (String(repeating: "abs(", count: 4000), "more than 64 parentheses"),
  ])
  func hostileExpressionsAreRefused(text: String, words: String) throws {
    let (_, mapping) = Self.mapping([text])
    let error = try #require(throws: MigrationError.self) { try mapping.check() }
    #expect(error.code == "mapping-invalid" && error.detail.contains(words), "\(error.detail.prefix(300))")
  }
}
