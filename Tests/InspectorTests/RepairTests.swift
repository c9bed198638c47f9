import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import SystemPackage
import TestSupport
import Testing

@Suite("Repairing a store in the inspector")
struct RepairTests {
  // MARK: The store

  private static func bundle() throws -> ModelBundle {
    func attribute(_ name: String, _ type: AttributeType = .string, _ value: AttributeValue? = nil) -> Property {
      .attribute(Attribute(traits: PropertyTraits(name: name, isOptional: true), type: type, defaultValue: value))
    }
    func relationship(_ name: String, _ target: String, _ inverse: String, most: Int) -> Property {
      .relationship(
        Relationship(
          traits: PropertyTraits(name: name, isOptional: true), destinationEntityName: target, inverseName: inverse,
          inverseEntityName: target, maximumCount: most))
    }
    let model = ManagedObjectModel(entities: [
      Entity(
        name: "Car",
        properties: [
          attribute("wheels", .integer16, .integer(4)), relationship("owner", "Person", "cars", most: 1),
        ]),
      Entity(
        name: "Person", properties: [attribute("email"), relationship("cars", "Car", "owner", most: 0)],
        uniquenessConstraints: [["email"]]),
    ])
    return try #require(
      ModelBundle(name: "App", versions: [ModelVersion(name: "V1", model: model, isCurrent: true)]))
  }

  private static let records = """
    INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZEMAIL) VALUES (1, 2, 1, 'a@example.org'), (2, 2, 1, 'b@example.org');
    INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZWHEELS, ZOWNER) VALUES (1, 1, 1, 3, 1), (2, 1, 1, 4, 1), (3, 1, 1, NULL, NULL);
    UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Car'; UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'Person'
    """

  /// A column, a unique index, and the highest key of an entity.
  private static let drift = """
    ALTER TABLE ZCAR DROP COLUMN ZWHEELS; DROP INDEX Z_Person_UNIQUE_email;
    UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Car'
    """

  /// Two persons of one address, and a car of a person that is not there.
  private static let contradictions = """
    ALTER TABLE ZCAR DROP COLUMN ZWHEELS; DROP INDEX Z_Person_UNIQUE_email;
    UPDATE ZPERSON SET ZEMAIL = 'a@example.org'; UPDATE ZCAR SET ZOWNER = 99 WHERE Z_PK = 2
    """

  /// A home with a live store of a bundle, to which something was done by SQL.
  private static func scene(
    _ bundle: ModelBundle, _ statements: String..., cachesModel: Bool = true
  ) throws -> (scene: Scene, store: FilePath) {
    let scene = try Scene()
    let model = bundle.current.model
    let path = scene.stores.appending("App.sqlite")
    let creation = try StoreCreation(
      model: model, uuid: "00000000-0000-4000-8000-000000000001",
      modelCache: cachesModel ? try model.modelCache() : nil)
    try FileSystem().writeAtomically(try creation.bytes(), to: path, replacing: false)
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
    }
    try queue.close()
    // What SQLite leaves where children of other tests share its locks.
    try FileSystem().unlink(scene.stores.appending("App.sqlite-shm"))
    return (scene, path)
  }

  /// The rows of a query, the values of each separated by bars.
  private static func rows(_ path: FilePath, _ query: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path.string)
    let rows = try queue.read { database in
      try Row.fetchAll(database, sql: query).map { row in
        row.databaseValues.map { $0.isNull ? "NULL" : "\($0.storage.value ?? "")" }.joined(separator: "|")
      }
    }
    try queue.close()
    return rows
  }

  // MARK: JSON

  private static func object(_ json: [String: Any], _ keys: String...) throws -> [String: Any] {
    try keys.reduce(json) { json, key in try #require(json[key] as? [String: Any], "\(key) in \(json.keys)") }
  }

  private static func texts(_ json: [String: Any], _ list: String, _ key: String) -> [String] {
    (json[list] as? [[String: Any]] ?? []).compactMap { $0[key] as? String }
  }

  private static func verdict(_ browser: Browser, _ id: String) throws -> String? {
    try object(browser.json("/stores/\(id).json"), "examination")["verdict"] as? String
  }

  // MARK: Looking

  @Test("the page lists what the store lacks with its counts, and looking touches nothing")
  func lists() throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(bundle, Self.records, Self.drift)
    let before = try FolderContents(of: scene.home)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let page = try browser.get("/stores/\(id)").text
    for words in [
      "1 missing column", "1 missing unique index", "1 highest key that is too low", "ZWHEELS",
      "href=\"/stores/\(id)/repair\"", "href=\"/stores/\(id)/check\"",
    ] {
      #expect(page.contains(words), "\(words)")
    }
    let drift = try Self.object(browser.json("/stores/\(id).json"), "examination", "drift")
    #expect(
      Set(Self.texts(drift, "differences", "code")) == [
        "missing-column", "missing-unique-index", "low-key-maximum",
      ])
    let asks = try browser.get("/stores/\(id)/repair")
    #expect(asks.status == .ok && asks.text.contains("What the repair would do"))
    #expect(asks.text.contains("name=\"data\" value=\"yes\">"))
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("a store that lacks nothing is offered no repair, and says so where it is asked for")
  func nothingToRepair() throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(bundle, Self.records)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    #expect(try browser.get("/stores/\(id)").text.contains("href=\"/stores/\(id)/repair\"") == false)
    let before = try FolderContents(of: scene.stores)
    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .done && job.words?.hasPrefix("There was nothing to repair") == true, "\(job)")
    #expect(try FolderContents(of: scene.stores) == before)
    #expect(try browser.get("/stores/\(id)/repaired").status == .notFound)
  }

  @Test("of hundreds of differences the page shows the first, its twin all")
  func hundreds() throws {
    let properties = (1...300).map { number in
      Property.attribute(Attribute(traits: PropertyTraits(name: "a\(number)", isOptional: true), type: .string))
    }
    let model = ManagedObjectModel(entities: [Entity(name: "Wide", properties: properties)])
    let bundle = try #require(
      ModelBundle(name: "App", versions: [ModelVersion(name: "V1", model: model, isCurrent: true)]))
    let (scene, _) = try Self.scene(
      bundle, "DROP TABLE ZWIDE; CREATE TABLE ZWIDE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER)")
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let drift = try Self.object(browser.json("/stores/\(id).json"), "examination", "drift")
    #expect(Self.texts(drift, "differences", "code").count { $0 == "missing-column" } == 300)
    let page = try browser.get("/stores/\(id)").text
    #expect(page.components(separatedBy: "is missing.</li>").count - 1 == 100)
    #expect(page.contains("300 missing columns") && page.contains("And 200 more"))
  }

  @Test("names in the store never become markup")
  func hostileNames() throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(
      bundle,
      """
      CREATE TABLE T (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER,
      "<script>alert(1)</script>" VARCHAR NOT NULL); DROP TABLE ZCAR; ALTER TABLE T RENAME TO ZCAR
      """)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let drift = try Self.object(browser.json("/stores/\(id).json"), "examination", "drift")
    #expect(Self.texts(drift, "remarks", "code") == ["mandatory-column"])
    var pages = [try browser.get("/stores/\(id)"), try browser.get("/stores/\(id)/repair")]
    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .done, "\(job)")
    pages.append(try browser.get("/stores/\(id)/repaired"))
    for page in pages {
      #expect(page.status == .ok && page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
      #expect(XSS.findings(in: page.text).isEmpty, "\(XSS.findings(in: page.text))")
    }
  }

  // MARK: Repairing

  @Test("the repair does what its page said, keeps the original, and is undone from its page")
  func repairs() throws {
    let bundle = try Self.bundle()
    let (scene, path) = try Self.scene(bundle, Self.records, Self.drift)
    let digest = try FileDigest(of: FileSystem().open(path))
    let persons = try Self.rows(path, "SELECT * FROM ZPERSON ORDER BY Z_PK")
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let said = try Self.object(browser.json("/stores/\(id)/repair.json"), "preview", "structure")
    #expect(Self.texts(said, "changes", "kind").sorted() == ["column", "highest-key", "unique-index"])
    #expect(said["dryRun"] as? Bool == true)

    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .done && job.target.path == "/stores/\(id)/repaired", "\(job)")
    let done = try browser.json("/stores/\(id)/repaired.json")
    let repair = try Self.object(done, "repair")
    #expect(Self.texts(repair, "changes", "text") == Self.texts(said, "changes", "text"))
    #expect(done["scope"] as? String == "structure" && (repair["leftOut"] as? [Any])?.isEmpty == true)
    #expect(try Self.rows(path, "SELECT Z_PK, ZWHEELS FROM ZCAR ORDER BY 1") == ["1|4", "2|4", "3|4"])
    #expect(try Self.rows(path, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'") == ["3"])
    #expect(try Self.rows(path, "SELECT count(*) FROM pragma_index_list('ZPERSON') WHERE \"unique\"") == ["1"])
    #expect(try Self.rows(path, "SELECT * FROM ZPERSON ORDER BY Z_PK") == persons)
    #expect(try Self.rows(path, "PRAGMA integrity_check") == ["ok"])
    #expect(try Self.verdict(browser, id) == "compatible")
    #expect(try browser.get("/stores/\(id)").text.contains("href=\"/stores/\(id)/repaired\""))

    // The original, whole, and the line that the command writes too.
    let original = FilePath(try #require(repair["backup"] as? String))
    #expect(try FileDigest(of: FileSystem().open(original)) == digest)
    let lines = try FileSystem().contents(of: scene.home.appending("migrations.jsonl"), limit: 1 << 20)
    #expect(String(decoding: lines, as: UTF8.self).split(separator: "\n").count == 1)
    #expect(try browser.get("/stores/\(id)/repaired").text.contains("lazaret backup restore b-"))

    let backup = try #require(done["original"] as? String)
    let restore = try browser.run("/stores/\(backup)/restore")
    #expect(restore.state == .done, "\(restore)")
    #expect(try Self.verdict(browser, id) == "repairable")
    #expect(try Self.rows(path, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car'") == ["1"])
  }

  @Test("without a model that fits the one that the store carries is taken", arguments: 0...2)
  func ownModel(others: Int) throws {
    let (scene, path) = try Self.scene(try Self.bundle(), Self.records, Self.drift)
    let models = try ["Star", "Moon"].prefix(others).map { try Scene.bundle($0, carName: $0) }
    let browser = try Browser(try scene.inspector(models))
    let id = try browser.id("live", "App.sqlite")
    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .done, "\(job)")
    #expect(try Self.object(browser.json("/stores/\(id)/repaired.json"), "repair")["version"] == nil)
    #expect(try Self.rows(path, "SELECT Z_PK, ZWHEELS FROM ZCAR ORDER BY 1") == ["1|4", "2|4", "3|4"])
  }

  @Test("records are counted on request, and put right only where that is ticked")
  func records() throws {
    let bundle = try Self.bundle()
    let (scene, path) = try Self.scene(bundle, Self.records, Self.contradictions)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    #expect(try browser.json("/stores/\(id).json")["data"] is NSNull)
    let before = try FolderContents(of: scene.home)
    let check = try browser.run("/stores/\(id)/check")
    #expect(check.state == .done && check.words == "2 rows of the store are against its model.", "\(check)")
    #expect(try FolderContents(of: scene.home) == before)
    let found = try Self.object(browser.json("/stores/\(id).json"), "data")
    #expect(Self.texts(found, "findings", "code").sorted() == ["dangling-reference", "duplicate"])

    let asks = try browser.json("/stores/\(id)/repair.json")
    let structure = try Self.object(asks, "preview", "structure")
    #expect(Self.texts(structure, "leftOut", "kind") == ["unique-index", "dangling-reference"])
    // What was found in the records is not followed by a word that nothing is to be done.
    let examined = try Self.object(browser.json("/stores/\(id).json"), "examination")
    #expect(examined["hint"] as? String != "Nothing needs to be done.")
    let data = try Self.object(asks, "preview", "data")
    #expect(data["setAsideRows"] as? Int == 1 && data["changedValues"] as? Int == 1, "\(data)")
    #expect(try browser.get("/stores/\(id)/repair").text.contains("Would stay as it is"))

    let persons = "SELECT Z_PK FROM ZPERSON ORDER BY 1"
    #expect(try browser.run("/stores/\(id)/repair").state == .done)
    #expect(try Self.rows(path, persons) == ["1", "2"])
    #expect(try Self.rows(path, "SELECT ZOWNER FROM ZCAR WHERE Z_PK = 2") == ["99"])
    // The store has changed, so nothing is said of its records any more.
    #expect(try browser.json("/stores/\(id).json")["data"] is NSNull)

    #expect(try browser.run("/stores/\(id)/repair", [("data", "yes")]).state == .done)
    let repair = try Self.object(browser.json("/stores/\(id)/repaired.json"), "repair")
    #expect(repair["setAsideRows"] as? Int == 1 && repair["changedValues"] as? Int == 1)
    #expect(try Self.rows(path, persons) == ["1"])
    #expect(try Self.rows(path, "SELECT ZOWNER FROM ZCAR WHERE Z_PK = 2") == ["NULL"])
    let aside = FilePath(try #require(repair["setAside"] as? String))
    #expect(
      try Self.rows(aside, "SELECT lazaret_reason, Z_PK, ZEMAIL FROM lazaret_set_aside_ZPERSON") == [
        "duplicate|2|a@example.org"
      ])
    #expect(try browser.get("/stores/\(id)/repaired").text.contains("lazaret_values_changed"))
  }

  @Test("of a quarantined store that was only repairable the page says that it can be released and repaired")
  func quarantined() throws {
    let bundle = try Self.bundle()
    let (scene, path) = try Self.scene(bundle, Self.records, Self.drift)
    var policy = OpeningPolicy()
    policy.whenRepairable = .quarantine
    policy.recoveryKitInterval = nil
    policy.checkInterval = nil
    let opening = try StoreCoordinator(model: .coreData(bundle), policy: policy, home: scene.home).open(path)
    try opening.store.close()
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("quarantined", "App.sqlite")
    #expect(try browser.get("/stores/\(id)").text.contains("it can be released and repaired there"))
    // Only a store in its place is repaired.
    #expect(try browser.get("/stores/\(id)/repair").status == .notFound)
    #expect(try browser.post("/stores/\(id)/repair").status == .notFound)
  }

  // MARK: Refusing

  /// A store that is not repaired, and the code of the reason.
  enum Refused: String, CaseIterable {
    case damaged = "store-damaged"
    case plain = "repair-refused"
    case newer = "newer-model"
    case ofNoModel = "source-model-missing"

    func inspector() throws -> (Scene, Inspector) {
      let bundle = try RepairTests.bundle()
      switch self {
      case .damaged:
        let scene = try Scene()
        let bundle = try Scene.bundle()
        try scene.makeDamaged("App.sqlite", bundle: bundle)
        return (scene, try scene.inspector([bundle]))
      case .plain:
        let scene = try Scene()
        let queue = try DatabaseQueue(path: scene.stores.appending("App.sqlite").string)
        try queue.write { try $0.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)") }
        try queue.close()
        return (scene, try scene.inspector([bundle]))
      case .newer:
        let scene = try Scene()
        let both = try Scene.bundle()
        try scene.make("App.sqlite", bundle: both)
        let first = try #require(both.version(named: "V1"))
        let old = try #require(
          ModelBundle(name: "App", versions: [ModelVersion(name: "V1", model: first.model, isCurrent: true)]))
        return (scene, try scene.inspector([old]))
      case .ofNoModel:
        let (scene, _) = try RepairTests.scene(bundle, cachesModel: false)
        return (scene, try scene.inspector())
      }
    }
  }

  @Test("what is not repaired is refused with the reason, and stays as it is", arguments: Refused.allCases)
  func refuses(_ refused: Refused) throws {
    let (scene, inspector) = try refused.inspector()
    let browser = try Browser(inspector)
    let id = try browser.id("live", "App.sqlite")
    let before = try FolderContents(of: scene.home)
    for action in ["repair", "check"] {
      let asks = try browser.json("/stores/\(id)/\(action).json")
      #expect(try Self.object(asks, "obstacle")["code"] as? String == refused.rawValue)
      #expect(try browser.get("/stores/\(id)/\(action)").text.contains("method=\"post\" action=\"/stores/") == false)
      #expect(try browser.post("/stores/\(id)/\(action)").status == .conflict)
    }
    #expect(inspector.work.jobs.isEmpty)
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test(
    "expressions that the tables of a store declare do not run in the inspector",
    arguments: [
      "ALTER TABLE ZCAR ADD COLUMN mine INTEGER CHECK (mine > 0)", "ALTER TABLE ZCAR ADD COLUMN mine AS (ZOWNER * 2)",
      "CREATE INDEX mine ON ZCAR (ZOWNER) WHERE ZOWNER > 1", "CREATE INDEX mine ON ZCAR (ZOWNER + 1)",
    ])
  func declaredExpressions(statement: String) throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(bundle, Self.records, Self.drift, statement)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let before = try FolderContents(of: scene.home)
    let asks = try browser.json("/stores/\(id)/repair.json")
    #expect(try Self.object(asks, "obstacle")["code"] as? String == "schema-expressions")
    #expect(try browser.post("/stores/\(id)/repair").status == .conflict)
    #expect(try browser.get("/stores/\(id)").text.contains("1 missing column"))
    #expect(try FolderContents(of: scene.home) == before)
  }

  @Test("what other tables of the app declare, and plain indexes and defaults, keep no store from its repair")
  func harmlessDeclarations() throws {
    let bundle = try Self.bundle()
    let (scene, path) = try Self.scene(
      bundle, Self.records, Self.drift, "CREATE TABLE own (a INTEGER CHECK (a > 0), b AS (a + 1))",
      "CREATE INDEX mine ON ZCAR (ZOWNER DESC)", "ALTER TABLE ZCAR ADD COLUMN asChecked INTEGER DEFAULT -1")
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .done, "\(job)")
    #expect(try Self.rows(path, "SELECT ZWHEELS, asChecked FROM ZCAR WHERE Z_PK = 1") == ["4|-1"])
  }

  @Test("a store that another connection writes to is left alone")
  func locked() throws {
    let bundle = try Self.bundle()
    let (scene, path) = try Self.scene(bundle, Self.records, Self.drift)
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let writer = try DatabaseQueue(path: path.string)
    try writer.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
      #expect(try browser.post("/stores/\(id)/repair").status == .conflict)
      try database.execute(sql: "ROLLBACK")
    }
    try writer.close()
    #expect(try Self.verdict(browser, id) == "repairable")
  }

  @Test("what would have to be guessed is refused before and after the button, with a report as the command leaves it")
  func refusedByTheRepair() throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(
      bundle, Self.records, "CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER, ZENTITYPK INTEGER)",
      "UPDATE Z_PRIMARYKEY SET Z_ENT = 102 WHERE Z_NAME = 'Person'; UPDATE ZPERSON SET Z_ENT = 102")
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let before = try FolderContents(of: scene.stores)
    let obstacle = try Self.object(browser.json("/stores/\(id)/repair.json"), "obstacle")
    #expect(obstacle["code"] as? String == "repair-refused")
    #expect((obstacle["detail"] as? String)?.contains("ZPERSON") == true && obstacle["hint"] is String, "\(obstacle)")
    let job = try browser.run("/stores/\(id)/repair")
    #expect(job.state == .failed && job.problem?.code == "repair-refused", "\(job)")
    #expect(try FolderContents(of: scene.stores) == before)
    let reports = try FileSystem().entries(of: scene.home.appending("Reports"))
    #expect(reports.count == 1)
  }

  @Test("an inspector that only looks says what a repair would do, and does not do it")
  func readOnly() throws {
    let bundle = try Self.bundle()
    let (scene, _) = try Self.scene(bundle, Self.records, Self.drift)
    let browser = try Browser(try scene.inspector([bundle], allowsActions: false))
    let id = try browser.id("live", "App.sqlite")
    let before = try FolderContents(of: scene.home)
    #expect(try browser.get("/stores/\(id)").text.contains("1 missing column"))
    let asks = try browser.get("/stores/\(id)/repair").text
    #expect(asks.contains("column ZWHEELS") || asks.contains("Column ZWHEELS"))
    #expect(!asks.contains("action=\"/stores/"))
    #expect(try browser.post("/stores/\(id)/repair").status == .forbidden)
    #expect(try browser.post("/stores/\(id)/check").status == .forbidden)
    #expect(try FolderContents(of: scene.home) == before)
  }
}
