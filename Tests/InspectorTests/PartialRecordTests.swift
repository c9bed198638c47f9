import Foundation
import GRDB
import HTTPServer
import Inspector
import Lazaret
import LazaretTesting
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import TestSupport
import Testing

/// A quarantined store of articles and tags that was salvaged: of article 16 a page of its long text is gone, and the last
/// articles are gone with their page, though pairs lead to them.
private struct ArticleScene {
  let folder: TemporaryFolder
  let browser: Browser
  let id: String

  /// The highest key that was given.
  static let count = 400

  /// The first key that is lost, as the undamaged bytes tell.
  let firstLost: Int

  struct NoPage: Error {}

  static let model = ManagedObjectModel(entities: [
    Entity(
      name: "Article",
      properties: [
        RecordsScene.attribute("title", .string), RecordsScene.attribute("body", .string),
        RecordsScene.attribute("created", .date),
        RecordsScene.relationship("tags", "Tag", "articles", toMany: true),
      ]),
    Entity(
      name: "Tag",
      properties: [
        RecordsScene.attribute("name", .string),
        RecordsScene.relationship("articles", "Article", "tags", toMany: true),
      ]),
  ])

  init() throws {
    folder = try TemporaryFolder()
    let home = folder.path
    try FileSystem().makeDirectory(home.appending("Stores"))
    let store = home.appending("Stores").appending("Articles.sqlite")
    try StoreGenerator(Self.model, options: .init(.typical, seed: 5, records: 10)).write(to: store)
    let layout = try StoreLayout(Self.model)
    let join = try #require(layout.joinTables.first)
    let isOfArticle = join.relationship.entityName == "Article"
    let (own, other) =
      isOfArticle ? (join.sourceColumn, join.destinationColumn) : (join.destinationColumn, join.sourceColumn)
    let (article, tag) = (layout.entity(named: "Article")?.number ?? 0, layout.entity(named: "Tag")?.number ?? 0)
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          DELETE FROM ZARTICLE; DELETE FROM ZTAG; DELETE FROM \(join.name);
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(Self.count))
          INSERT INTO ZARTICLE (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZBODY, ZCREATED) SELECT i, \(article), 1, 'article ' || i,
            CASE WHEN i = 16 THEN replace(hex(zeroblob(6000)), '00', 'long') ELSE 'a body of ' || i END, 600000000 + 60 * i
            FROM n;
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
          INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT i, \(tag), 1, 'tag ' || i FROM n;
          INSERT INTO \(join.name) (\(own), \(other)) SELECT Z_PK, Z_PK % 10 + 1 FROM ZARTICLE;
          UPDATE Z_PRIMARYKEY SET Z_MAX = \(Self.count) WHERE Z_NAME = 'Article';
          UPDATE Z_PRIMARYKEY SET Z_MAX = 10 WHERE Z_NAME = 'Tag';
          PRAGMA secure_delete = ON; VACUUM
          """)
      _ = try Row.fetchAll(database, sql: "PRAGMA journal_mode = DELETE")
    }
    try queue.close()
    var bytes = try FileSystem().contents(of: store, limit: 1 << 26)
    let size = Int(bytes[16]) << 8 | Int(bytes[17])
    func page(_ text: String, isLeaf: Bool) throws -> Int {
      let found = stride(from: size, to: bytes.count, by: size).first { start in
        (bytes[start] == 0x0D) == isLeaf && bytes[start..<(start + size)].firstRange(of: Array(text.utf8)) != nil
      }
      guard let found else { throw NoPage() }
      return found
    }
    let overflow = try page("longlonglong", isLeaf: false)
    let last = try page("article \(Self.count)", isLeaf: true)
    var first = Self.count
    while bytes[last..<(last + size)].firstRange(of: Array("article \(first - 1)".utf8)) != nil { first -= 1 }
    firstLost = first
    for start in [overflow, last] { for place in start..<(start + size) { bytes[place] = 0 } }
    try FileSystem().writeAtomically(bytes, to: store, replacing: true)
    let quarantines = Quarantines(home: home)
    _ = try quarantines.salvage(try quarantines.add(store, reason: "It was damaged for a test.").files.main)
    let inspector = try Scene.inspector(of: home)
    browser = try Browser(inspector)
    id = try #require(try inspector.catalogue.quarantined().first).id.text
  }

  func text(_ address: String) throws -> String {
    let response = try DamagedStoreTests.settled(browser, "/stores/\(id)\(address)")
    #expect(response.status == .ok, "\(address)")
    return response.text
  }

  func json(_ address: String) throws -> [String: Any] {
    let response = try DamagedStoreTests.settled(browser, "/stores/\(id)\(address)")
    #expect(response.status == .ok, "\(address)")
    return try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any] ?? [:]
  }

  /// The addresses that a page links to and that begin so.
  static func links(of page: String, to beginning: String) -> Set<String> {
    Set(
      page.components(separatedBy: "href=\"").dropFirst().compactMap { piece in
        let target = String(piece.prefix { $0 != "\"" && $0 != "#" }).replacing("&amp;", with: "&")
        return target.hasPrefix(beginning) ? target : nil
      })
  }
}

@Suite("Records of which a part is lost")
struct PartialRecordTests {
  @Test("What was found of a doubtful record is neither set aside, nor another version of it")
  func parts() throws {
    let scene = try ArticleScene()
    let losses = try scene.json("/losses.json")
    let sentences = try #require(losses["sentences"] as? [String])
    #expect(sentences.contains { $0.contains("1 of ") && $0.contains("may have a wrong value") }, "\(sentences)")
    #expect(!sentences.contains { $0.contains("set aside") && !$0.contains("pair") }, "\(sentences)")
    #expect(try !scene.text("/losses").contains("did not fit anywhere"))
    let report = try #require(try scene.json(".json")["report"] as? [String: Any])
    let entities = try #require(report["entities"] as? [[String: Any]])
    let article = try #require(entities.first { $0["name"] as? String == "Article" })
    #expect(article["keptApart"] as? Int == 1 && article["keptParts"] as? Int == 1 && article["setAside"] == nil)
    let found = try #require(try scene.json("/original/entities.json")["entities"] as? [[String: Any]])
    let states = found.first { $0["name"] as? String == "Article" }?["states"] as? [String: Int]
    #expect(states?["version"] == nil && states?["part"] == 1 && states?["doubtful"] == 1, "\(states ?? [:])")
    let page = try scene.text("/original/entities/Article/records/16")
    #expect(!page.contains("Other versions of it"))
  }

  @Test("Values that the bytes of a record declare and that were not found are lost, and not null")
  func lostValues() throws {
    let scene = try ArticleScene()
    let record = try scene.json("/original/entities/Article/records/16.json")
    #expect(record["lostValues"] as? [String] == ["title"], "\(record)")
    #expect(try scene.text("/original/entities/Article/records/16").contains(">lost</span>"))
    let sound = try scene.json("/original/entities/Article/records/17.json")
    #expect(sound["lostValues"] == nil)
  }

  @Test("The salvaged store, which has no marks, says how many records are doubtful, and leads to those that are")
  func salvaged() throws {
    let scene = try ArticleScene()
    #expect(try scene.json("/salvaged/entities/Article/records.json")["doubtful"] as? Int == 1)
    #expect(try scene.json("/salvaged/entities/Tag/records.json")["doubtful"] == nil)
    for address in ["/salvaged/entities/Article/records", "/salvaged/entities/Article/records/16"] {
      let page = try scene.text(address)
      #expect(page.contains("1 record of Article is doubtful"), "\(address)")
      let target = "/stores/\(scene.id)/original/entities/Article/records?_state=doubtful"
      #expect(ArticleScene.links(of: page, to: target).count == 1, "\(address)")
    }
    let marked = try scene.json("/original/entities/Article/records.json?_state=doubtful")
    #expect((marked["rows"] as? [[String: Any]])?.compactMap { $0["key"] as? String } == ["16"])
  }

  @Test("Until when records are from that no record follows is not known")
  func openEnd() throws {
    let scene = try ArticleScene()
    let spreads = try #require(try scene.json("/losses.json")["spreads"] as? [[String: Any]])
    let article = try #require(spreads.first { $0["entity"] as? String == "Article" })
    #expect(article["to"] == nil || article["to"] is NSNull)
    // The last article that is there was made at the 60 seconds of its key.
    let last = Date(timeIntervalSinceReferenceDate: 600_000_000 + 60 * Double(scene.firstLost - 1))
    #expect(article["from"] as? String == ISO8601DateFormatter().string(from: last))
    #expect(try scene.text("/losses").contains("until when is not known"))
  }

  @Test("What was set aside has the names of the model, and a comparison does not call it lost")
  func names() throws {
    let scene = try ArticleScene()
    let list = try #require(try scene.json("/set-aside/entities.json")["entities"] as? [[String: Any]])
    #expect(list.contains { $0["title"] as? String == "Article: other rows" }, "\(list)")
    #expect(list.contains { $0["title"] as? String == "Article.tags and Tag.articles: pairs, set aside" }, "\(list)")
    let rows = try scene.json("/set-aside/entities/lazaret_other_ZARTICLE/records.json")
    let columns = try #require(rows["columns"] as? [[String: String]])
    #expect(columns.contains(["name": "created", "type": "date"]), "\(columns)")
    let row = try #require((rows["rows"] as? [[String: Any]])?.first?["values"] as? [String: Any])
    #expect((row["created"] as? String)?.hasPrefix("2020-") == true, "\(row)")
    let compared = try scene.text("/compare/original/salvaged/entities")
    let lost = ArticleScene.count - scene.firstLost + 1
    #expect(compared.contains("\(lost) pairs set aside") && compared.contains("0 pairs lost"))
    #expect(try scene.text("").contains("relationship tags"))
  }

  @Test("Every link to a record or a list leads to one, and a page that is not there says nothing of the store")
  func links() throws {
    let scene = try ArticleScene()
    let beginning = "/stores/\(scene.id)/"
    for address in [
      "/original/entities/Article/records", "/original/entities/Article/records/16", "/salvaged/entities/Tag/records/1",
      "/set-aside/entities/lazaret_other_ZARTICLE/records",
      "/compare/original/salvaged/relationships/Article.tags-Tag.articles/pairs?kind=missing",
    ] {
      let links = ArticleScene.links(of: try scene.text(address), to: beginning)
      #expect(!links.isEmpty)
      for link in links where !link.contains("/export/") && !link.contains("/query") {
        let answer = try DamagedStoreTests.settled(scene.browser, link)
        #expect(answer.status == .ok, "\(address) leads to \(link)")
      }
    }
    let missing = try scene.browser.get("\(beginning)original/entities/Article/records/16/values/nothing/view")
    #expect(missing.status == .notFound && !missing.text.contains("released"))
    let other = try scene.browser.get("/stores/q-2020-01-01-00-00-00-00000000")
    #expect(other.status == .notFound && other.text.contains("may have been released or discarded"))
  }

  @Test("Pages behind the end of a file that was cut off have no links")
  func cutFile() throws {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    try scene.makeDamaged("App.sqlite", bundle: bundle, ["trunc:40"])
    let browser = try Browser(try scene.inspector([bundle]))
    let id = try browser.id("live", "App.sqlite")
    let page = try DamagedStoreTests.settled(browser, "/stores/\(id)").text
    let links = ArticleScene.links(of: page, to: "/stores/\(id)/pages/")
    for link in links { #expect(try browser.get(link).status == .ok, "\(link)") }
    // The trees lead to pages behind the end, which are named and have no link.
    let health = page.components(separatedBy: "<h2>Health</h2>").last?.components(separatedBy: "</section>").first ?? ""
    #expect(health.contains(/(<\/span>|<\/a>) \d[\d,]*( \d|…| …|<\/li>)/), "\(health)")
  }
}
