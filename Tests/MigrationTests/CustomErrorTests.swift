import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import TestSupport
import Testing

/// The errors of custom mappings: what they refuse, and where they say it is.
struct CustomErrorTests {
  static let old = model(entity("Post", attribute("hexColor"), attribute("born", .date)))

  /// The error of migrating twelve posts whose color an expression makes; `'{}'` is the color of every other one.
  private func failure(_ text: String, to type: AttributeType = .string) throws -> MigrationError {
    let new = model(entity("Post", attribute("result", type)))
    let rows = (1...24).map { "(\($0), 1, 1, '\($0.isMultiple(of: 2) ? "{}" : "secret")')" }.joined(separator: ", ")
    let scene = try MigrationScene(Self.old, "INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZHEXCOLOR) VALUES \(rows)")
    let mapping = CustomMappingTests.custom(
      Self.old, new, CustomMappingTests.map("Post", "Post", ["result": .expression(.sql(text))]))
    let before = try FolderContents(of: scene.folder.path)
    let error = try #require(throws: MigrationError.self) {
      try scene.migrate(try bundle(Self.old, new), options: CustomMappingTests.options(mapping))
    }
    #expect(!error.description.contains("secret"))
    #expect(try FolderContents(of: scene.folder.path) == before)
    return error
  }

  @Test(arguments: [
    ("char(55296)", AttributeType.string, "24 records"), ("CAST(x'ff' AS TEXT)", .uri, "24 records"),
    ("CAST(uuid() AS TEXT)", .string, "24 records"),
    ("CASE WHEN primaryKey() < 3 THEN CAST(x'c080' AS TEXT) ELSE 'ä' END", .string, "(1, 2)"),
  ])
  func textThatIsNoneIsRefused(text: String, type: AttributeType, words: String) throws {
    let error = try failure(text, to: type)
    #expect(error.kind == .dataViolation && error.propertyName == "result", "\(error)")
    #expect(error.detail.contains(words) && error.detail.contains("UTF-8"), "\(error)")
    #expect(error.hint.contains("uuid_text"))
  }

  @Test func bytesInATextAreToldHowToBecomeText() throws {
    let error = try failure("uuid()")
    #expect(error.detail.contains("SQLite's blob") && error.hint.contains("uuid_text(…)"), "\(error)")
  }

  @Test func failingExpressionsAreNamed() throws {
    let many = try failure("json_extract(hexColor, '$.a')")
    #expect(many.kind == .dataViolation && many.propertyName == "result", "\(many)")
    #expect(many.detail.contains("at least 10 records; primary keys: (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)"), "\(many)")
    let few = try failure("json_extract(CASE WHEN primaryKey() < 4 THEN hexColor END, '$')")
    #expect(few.detail.contains("fails for 2 records; primary keys: (1, 3) "), "\(few)")
  }

  @Test(arguments: [
    ("hexColor ||", "character 10", "mapping-invalid"), ("(hexColor ||)", "character 13", "mapping-invalid"),
    ("hexColor hexColor", "character 10", "mapping-invalid"),
    ("CASE WHEN 1 THEN 2", "ends too early", "mapping-invalid"),
    ("abs(1, 2)", "character 1:", "mapping-invalid"), ("upper(hexColor) 12ab", "character 17", "mapping-invalid"),
    ("1 + oops(hexColor)", "character 5", "expression-unsupported"),
    ("date()", "character 1", "mapping-invalid"), ("1 || unixepoch( )", "character 6", "mapping-invalid"),
    ("strftime('%s')", "character 1", "mapping-invalid"), ("strftime('%s', 'NOW')", "character 16", "mapping-invalid"),
    ("julianday(coalesce(hexColor, 'now'))", "character 30", "mapping-invalid"),
    ("time('subsec')", "character 6", "mapping-invalid"),
  ])
  func placesAndCodesOfWrongExpressions(text: String, words: String, code: String) throws {
    let error = try failure(text)
    #expect(error.code == code && error.detail.contains(words) && error.propertyName == "result", "\(error)")
    #expect(!error.detail.contains("o.Z") && !error.detail.contains("near"), "\(error)")
    if text.contains("time") || text.contains("date") || text.contains("julian") || text.contains("epoch") {
      #expect(error.hint.contains("NSCoreDataNow()"))
    }
    // The same, with the line, from a file.
    let escaped = text.replacing("\"", with: "\\\"")
    let file = """
      {"format": 1, "source": "V1", "destination": "V2", "entities": [
        {"source": "Post", "destination": "Post",
         "attributes": {
           "result": "\(escaped)"}}]}
      """
    let versions = try bundle(Self.old, model(entity("Post", attribute("result"))))
    let told = try #require(throws: MigrationError.self) {
      try MappingFile(bytes: Array(file.utf8)).mappingModel(in: versions)
    }
    #expect(told.code == code && told.detail.contains(words), "\(told)")
    #expect(told.detail.contains("line 4, $.entities[0].attributes.result"), "\(told)")
  }

  @Test func functionsAreThoseOfTheSQLiteAtHand() throws {
    let isRecent = SQLiteVersion.isAtLeast(3, 41)
    let mapping = CustomMappingTests.custom(
      Self.old, model(entity("Post", attribute("result", .binary))),
      CustomMappingTests.map("Post", "Post", ["result": .expression(.sql("unhex(hexColor)"))]))
    if isRecent {
      try mapping.check()
    } else {
      let error = #expect(throws: MigrationError.self) { try mapping.check() }
      #expect(error?.code == "expression-unsupported" && error?.hint.contains("SQLite of this process") == true)
    }
  }

  @Test(arguments: [
    (AttributeType.uuid, #""6BA7B810-9dad-11d1-80b4-00c04fd430c8""#, "x'6ba7b8109dad11d180b400c04fd430c8'"),
    (.uuid, #""not-a-uuid""#, refused), (.uuid, #""6ba7b810-9dad-11d1-80b4-00c04fd430cg""#, refused),
    (.uuid, "5", refused),
    (.integer16, "-32768", "-32768"), (.integer16, "32768", refused), (.integer32, "2147483648", refused),
    (.integer64, "9223372036854775808", refused), (.integer64, "-9223372036854775808", "(-9223372036854775807 - 1)"),
    (.integer32, "1.5", refused), (.integer32, "true", refused), (.boolean, "true", "1"), (.boolean, "1", refused),
    (.float, "1e39", refused), (.float, "1.5", "1.5"),
    (.decimal, "12.50", "CAST('12.50' AS NUMERIC)"),
    (.decimal, "1e200", refused), (.date, #""2026-02-30T12:00:00Z""#, refused),
    (.date, #""2001-01-01T00:01:00Z""#, "60.0"),
    (.date, #""2026-11-21-10-11-12""#, refused), (.date, "-5", "(-5.0)"),
    (.uri, #""https://a.b/%20?x#y""#, "'https://a.b/%20?x#y'"),
    (.uri, #""a b""#, refused), (.uri, #""a%2""#, refused), (.binary, #""AAEC""#, "x'000102'"),
    (.binary, #""A""#, refused),
    (.transformable, #""AAEC""#, refused), (.string, #""a\u0000""#, refused), (.string, "5", refused),
    (.string, #""it's""#, "'it''s'"),
    (.uuid, "null", "NULL"),
  ])
  func constantsFitTheirTypeOrAreRefused(type: AttributeType, text: String, sql: String) throws {
    let file = """
      {"format": 1, "source": "V1", "destination": "V2", "entities": [
        {"source": "Post", "destination": "Post", "attributes": {
           "result":
             {"constant": \(text)}}}]}
      """
    let versions = try bundle(Self.old, model(entity("Post", attribute("result", type))))
    func load() throws -> MappingModel { try MappingFile(bytes: Array(file.utf8)).mappingModel(in: versions) }
    guard sql != refused else {
      let error = try #require(throws: MigrationError.self) { try load() }
      #expect(error.code == "mapping-invalid" && error.detail.contains("line 4, $.entities[0].attributes.result"))
      #expect(error.hint.contains("Write") || error.hint.contains("Only null"), "\(error)")
      return
    }
    let mapping = try load()
    let value = mapping.entityMappings.first { $0.destinationEntityName == "Post" }?.propertyMappings.first?.value
    #expect(value == .expression(.sql(sql)))
    try mapping.check()
  }
}

/// What stands for a constant that its type has no place for.
private let refused = "refused"

/// The version of the SQLite that the tests run with.
private enum SQLiteVersion {
  static func isAtLeast(_ major: Int, _ minor: Int) -> Bool {
    let parts = SQLiteLibrary.version.split(separator: ".").compactMap { Int($0) }
    return parts.count > 1 && (parts[0], parts[1]) >= (major, minor)
  }
}
