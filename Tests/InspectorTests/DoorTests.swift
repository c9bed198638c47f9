import HTTPServer
import Inspector
import TestSupport
import Testing

@Suite("The way into the inspector")
struct DoorTests {
  @Test("without the link there is nothing but the way in")
  func closed() throws {
    let inspector = try Scene().inspector()
    for address in ["/", "/stores", "/stores.json", "/work", "/events", "/session.json"] {
      #expect(inspector.respond(to: try Request(.get, address)).status == .unauthorized, "\(address)")
    }
  }

  @Test("the link is good for one use")
  func link() throws {
    let inspector = try Scene().inspector()
    let link = inspector.sessions.makeLink().text
    #expect(inspector.respond(to: try Request(.head, "/open/\(link)")).status == .methodNotAllowed)
    let opened = inspector.respond(to: try Request(.get, "/open/\(link)"))
    #expect(opened.status == .seeOther)
    #expect(opened.headers["Location"] == "/stores")
    #expect(opened.headers["Set-Cookie"]?.contains("HttpOnly; SameSite=Strict") == true)
    #expect(inspector.respond(to: try Request(.get, "/open/\(link)")).status == .forbidden)
  }

  @Test("with it, pages and their twins are answered")
  func pages() throws {
    let browser = try Browser(try Scene().inspector())
    #expect(browser.token.count == 64)
    let page = try browser.get("/stores")
    #expect(page.status == .ok)
    #expect(page.headers["Content-Type"] == "text/html; charset=utf-8")
    let twin = try browser.get("/stores.json")
    #expect(twin.headers["Content-Type"] == "application/json; charset=utf-8")
    #expect(try browser.get("/nothing").status == .notFound)
    #expect(try browser.get("/nothing.json").headers["Content-Type"] == "application/problem+json; charset=utf-8")
  }

  @Test("a form of our own pages is let through, though they tell no origin")
  func ownForms() throws {
    let rules = RequestRules(hosts: ["127.0.0.1:8080"])
    let own: HeaderFields = ["Host": "127.0.0.1:8080", "Origin": "null", "Sec-Fetch-Site": "same-origin"]
    let checked = try rules.check(method: "POST", target: "/stores/q-1/salvage", version: "HTTP/1.1", headers: own)
    #expect(checked.method == .post)
    let other: HeaderFields = ["Host": "127.0.0.1:8080", "Origin": "null", "Sec-Fetch-Site": "cross-site"]
    #expect(throws: Refusal.self) {
      _ = try rules.check(method: "POST", target: "/stores/q-1/salvage", version: "HTTP/1.1", headers: other)
    }
  }
  @Test("where browsers name no site, only the form's token tells; a foreign site is refused all the same")
  func unnamedOrigin() throws {
    let unnamed: HeaderFields = ["Host": "10.0.0.5:8080", "Origin": "null"]
    func check(_ headers: HeaderFields, isAccepted: Bool) throws {
      let rules = RequestRules(hosts: ["10.0.0.5:8080"], acceptsUnnamedOrigin: isAccepted)
      _ = try rules.check(method: "POST", target: "/stores/q-1/salvage", version: "HTTP/1.1", headers: headers)
    }
    try check(unnamed, isAccepted: true)
    #expect(throws: Refusal.self) { try check(unnamed, isAccepted: false) }
    var foreign = unnamed
    foreign.add("Sec-Fetch-Site", "cross-site")
    #expect(throws: Refusal.self) { try check(foreign, isAccepted: true) }
    let named: HeaderFields = ["Host": "10.0.0.5:8080", "Origin": "http://evil.example"]
    #expect(throws: Refusal.self) { try check(named, isAccepted: true) }
  }
}
