import Foundation
import HTTPServer
import Inspector
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Queries in the inspector")
struct QueryTests {
  private static func encoded(_ sql: String) -> String { Query([.init("sql", sql)]).text }

  @Test("A query runs on every side, by GET alone, and nothing of the stores changes")
  func everySide() throws {
    let scene = try RecordsScene()
    let before = try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"])
    let sql = Self.encoded("SELECT name, tons FROM Ship WHERE Z_PK < 4 ORDER BY Z_PK")
    for side in ["original", "salvaged", "live", scene.backupSide] {
      let page = try scene.get("/\(side)/query\(sql)")
      #expect(page.status == .ok, "\(side)")
      #expect(XSS.findings(in: page.text).isEmpty, "\(side): \(XSS.findings(in: page.text).prefix(3))")
      let result = try #require(try scene.json("/\(side)/query\(sql)")["result"] as? [String: Any], "\(side)")
      #expect(result["columns"] as? [String] == ["name", "tons"])
      #expect((result["rows"] as? [[Any]])?.count ?? 0 > (side == "live" ? 2 : 0), "\(side)")
      #expect(result["seconds"] is Double)
    }
    let empty = try scene.json("/live/query")
    let sources = try #require(empty["sources"] as? [[String: Any]])
    #expect(sources.contains { $0["name"] as? String == "Ship" && $0["table"] as? String == "ZSHIP" })
    #expect(sources.contains { $0["name"] as? String == "ZSHIP" })
    #expect((empty["functions"] as? [String])?.contains("count") == true)
    #expect(try scene.get("/live/query").text.contains("<textarea"))
    #expect(try scene.get("/set-aside-not/query").status == .notFound)
    #expect(try FolderContents(of: scene.home, ignoring: [".lazaret-browsing"]) == before)
  }

  @Test("What is wrong with a query is said beside it, in SQLite's words; what it holds is escaped")
  func wrong() throws {
    let scene = try RecordsScene()
    for sql in XSS.corpus + ["SELECT nme FROM Ship", "PRAGMA page_size", "ATTACH 'x' AS y", "DELETE FROM ZSHIP"] {
      let page = try scene.get("/live/query\(Self.encoded(sql))")
      #expect(page.status == .ok, "\(sql)")
      #expect(XSS.findings(in: page.text).isEmpty, "\(sql): \(XSS.findings(in: page.text).prefix(3))")
      #expect(page.text.contains("note bad"), "\(sql)")
    }
    #expect(try scene.get("/live/query\(Self.encoded("SELECT nme FROM Ship"))").text.contains("no such column: nme"))
    let twin = try scene.json("/live/query\(Self.encoded("SELECT nme FROM Ship"))")
    let error = (twin["result"] as? [String: Any])?["error"] as? [String: Any]
    #expect(error?["code"] as? String == "sql-error")
    for text in XSS.corpus {
      let literal = text.replacingOccurrences(of: "'", with: "''")
      let page = try scene.get("/live/query\(Self.encoded("SELECT '\(literal)' AS \"\(text.filter { $0 != "\"" })\""))")
      #expect(XSS.findings(in: page.text).isEmpty, "\(text)")
    }
    #expect(try scene.get("/live/query?sql=SELECT%201&_size=0").status == .badRequest)
    let long = String(repeating: "a", count: 4001)
    #expect(try scene.get("/live/query\(Self.encoded(long))").status == .badRequest)
  }

  @Test("A link of another site shows a query, and does not run it")
  func foreign() throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/query")
    let address = "/stores/\(scene.quarantined)/live/query\(Self.encoded("SELECT 4711 + 1"))"
    for (site, isRun) in [("cross-site", false), ("same-site", false), ("same-origin", true), ("none", true)] {
      let page = scene.inspector.respond(
        to: try Request(.get, address, headers: ["Cookie": scene.browser.cookie, "Sec-Fetch-Site": site]))
      #expect(page.status == .ok)
      #expect(page.text.contains("4711 + 1"))
      #expect(page.text.contains("4712") == isRun, "\(site)")
    }
    let download = scene.inspector.respond(
      to: try Request(
        .get, "/stores/\(scene.quarantined)/live/query/export/csv\(Self.encoded("SELECT 1"))",
        headers: ["Cookie": scene.browser.cookie, "Sec-Fetch-Site": "cross-site"]))
    #expect(download.status == .forbidden)
    #expect(scene.inspector.respond(to: try Request(.get, address)).status == .unauthorized)
  }

  @Test("Pages of a result follow each other, and lead on")
  func paging() throws {
    let scene = try RecordsScene()
    var keys: [Int] = []
    var path: String? =
      "/stores/\(scene.quarantined)/live/query.json\(Self.encoded("SELECT Z_PK FROM Ship ORDER BY 1"))&_size=20"
    _ = try scene.get("/live/query")
    while let address = path, keys.count < 1000 {
      let result = try #require(try scene.browser.json(address)["result"] as? [String: Any])
      keys += (result["rows"] as? [[Int]] ?? []).flatMap(\.self)
      path = result["nextPath"] as? String
    }
    #expect(keys == Array(1...250))
  }

  @Test("Exports have all rows; what is wrong is told before anything is sent")
  func exports() throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/query")
    let sql = Self.encoded("SELECT Z_PK AS n, name, name FROM Ship WHERE Z_PK < 3 ORDER BY 1")
    let csv = try scene.get("/live/query/export/csv\(sql)")
    #expect(csv.headers["Content-Disposition"]?.contains("Ships.sqlite-live-query.csv") == true)
    let text = try csv.whole()
    #expect(text.hasPrefix("n,name,name_2\r\n1,\"<script>alert(1)</script>"))
    #expect(text.contains("\r\n2,\"'=cmd|calc\",\"'=cmd|calc\"\r\n"))
    let json = try scene.get("/live/query/export/json\(Self.encoded("SELECT Z_PK AS n FROM Ship"))").whole()
    let array = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Int]]
    #expect(array?.count == 250)
    #expect(
      try scene.get("/live/query/export/jsonl\(Self.encoded("VALUES (1), (2)"))").whole().split(separator: "\n").count
        == 2)
    #expect(
      try scene.get("/live/query/export/csv\(Self.encoded("SELECT nme FROM Ship"))").status == .unprocessableContent)
    #expect(try scene.get("/live/query/export/csv").status == .badRequest)
    #expect(try scene.get("/live/query/export/xml\(sql)").status == .notFound)
    // A download that is not read to its end leaves its turn to the next.
    let left = try scene.get("/live/query/export/csv\(sql)")
    #expect(try scene.get("/live/query/export/csv\(sql)").status == .serviceUnavailable)
    guard case .chunks(let source) = left.body else { throw RecordsScene.NoBundle() }
    source.cancel()
    #expect(try scene.get("/live/query/export/csv\(sql)").whole() == text)
  }

  @Test("Queries are saved under names for their owner alone, listed, replaced and deleted")
  func saved() throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/query")
    let base = "/stores/\(scene.quarantined)/live/query"
    func names() throws -> [String] {
      (try scene.json("/live/query")["saved"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
    }
    #expect(try names().isEmpty)
    let done = try scene.browser.post("\(base)/save", [("name", " Fast ships "), ("sql", "SELECT 1")])
    #expect(done.status == .seeOther)
    #expect(done.headers["Location"] == "\(base)?sql=SELECT%201")
    _ = try scene.browser.post("\(base)/save", [("name", XSS.corpus[0]), ("sql", XSS.corpus[1])])
    _ = try scene.browser.post("\(base)/save", [("name", "Fast ships"), ("sql", "SELECT 2")])
    #expect(try names() == [XSS.corpus[0], "Fast ships"].sorted())
    let page = try scene.get("/live/query").text
    #expect(page.contains("?sql=SELECT%202"))
    #expect(XSS.findings(in: page).isEmpty)
    let file = scene.home.appending(".lazaret-queries").appending("queries.json")
    let attributes = try FileManager.default.attributesOfItem(atPath: file.string)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    for (name, sql) in [
      ("", "SELECT 1"), ("x", ""), ("x", String(repeating: "a", count: 4001)),
      (String(repeating: "n", count: 101), "SELECT 1"),
    ] {
      #expect(try scene.browser.post("\(base)/save", [("name", name), ("sql", sql)]).status == .badRequest)
    }
    #expect(
      try scene.browser.post("\(base)/save", [("name", "x"), ("sql", "SELECT 1")], token: "no").status == .forbidden)
    #expect(try scene.browser.post("\(base)/delete", [("name", "unknown")]).status == .notFound)
    #expect(try scene.browser.post("\(base)/delete", [("name", XSS.corpus[0])]).status == .seeOther)
    #expect(try names() == ["Fast ships"])
    // A file that cannot be read is not written over, and the page is there all the same.
    try FileSystem().writeAtomically(Array("{".utf8), to: file, replacing: true)
    #expect(try scene.browser.post("\(base)/save", [("name", "x"), ("sql", "SELECT 1")]).status == .conflict)
    #expect(try FileSystem().contents(of: file, limit: 100) == Array("{".utf8))
    #expect(try scene.get("/live/query\(Self.encoded("SELECT 40 + 2"))").text.contains("<td class=\"number\">42</td>"))
  }

  @Test("A session has one query at a time, and waits for it")
  func turns() async throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/query")
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    let address = "/stores/\(scene.quarantined)/live/query\(Self.encoded(endless))"
    let (inspector, cookie) = (scene.inspector, scene.browser.cookie)
    let request = try Request(.get, address, headers: ["Cookie": cookie])
    async let first = Self.ask(inspector, request)
    async let second = Self.ask(inspector, request)
    for page in await [first, second] {
      #expect(page.contains("took longer than it may") || page.contains("Other queries are still running"))
    }
    #expect(try scene.get("/live/query\(Self.encoded("SELECT 40 + 2"))").text.contains(">42<"))
  }

  private static func ask(_ inspector: Inspector, _ request: Request) async -> String {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: inspector.respond(to: request).text) }
    }
  }

  @Test("Conditions are changed in the form, and dates and numbers are counted in steps that lead on")
  func builder() throws {
    let scene = try RecordsScene()
    _ = try scene.get("/live/entities")
    let list = "/live/entities/Ship/records"
    let page = try scene.get(
      "\(list)?_column1=tons&_is1=gt&_value1=10&_column2=name&_is2=notnull&_column5=Z_PK&_is5=lt&_value5=9"
    ).text
    #expect(page.contains("<option value=\"tons\" selected>tons</option>"))
    // What Core Data keeps for itself goes by the names that the head of the table has.
    #expect(page.contains("<option value=\"Z_PK\" selected>key</option>"))
    #expect(!page.contains(">Z_PK") && !page.contains(">Z_ENT"))
    #expect(page.contains("name=\"_column4\""), "three conditions and an empty line")
    #expect(!page.contains("name=\"_column5\""))
    #expect(page.components(separatedBy: ", take away</span>").count == 4)
    #expect(XSS.findings(in: page).isEmpty)
    let twin = try scene.json("\(list)?_facet_year=launched&_facet_range=tons&_facet_month=launched")
    let facets = try #require(twin["facets"] as? [[String: Any]])
    #expect(facets.map { $0["by"] as? String } == ["year", "range", "month"])
    let facetPage = try scene.get("\(list)?_facet_year=launched&_facet_range=tons").text
    #expect(facetPage.contains("launched by year") && facetPage.contains("tons in ranges"))
    #expect(XSS.findings(in: facetPage).isEmpty)
    #expect(try scene.get("\(list)?_facet_year=name").status == .badRequest)
  }
}
