import HTTPServer
import Platform
import Testing

/// What needs no connection: addresses, routes, texts, forms, sessions.
struct ValueTests {
  @Test func addressesAreDecodedOnce() throws {
    let target = try RequestTarget("/a%20b/%C3%A9/c+d/?x=1+2&y=%26&x=3&z")
    #expect(target.segments == ["a b", "é", "c+d"])
    #expect(target.query["x"] == "1 2" && target.query.all("x") == ["1 2", "3"])
    #expect(target.query["y"] == "&" && target.query["z"] == "")
    #expect(target.path == "/a%20b/%C3%A9/c%2Bd")
    #expect(try RequestTarget(target.path + target.query.text) == target)
  }

  @Test func routesGetTypedParameters() throws {
    var router = Router()
    router.add(.get, "/stores/{id}/pages/{number}", .identifier, .integer) { _, id, number in
      .text("\(id) \(number + 1)")
    }
    router.add(.post, "/stores/{id}/actions", .identifier) { _, id in .text("did \(id)") }
    router.add(.get, "/stores/new") { _ in .text("new") }
    router.add(.get, "/stores/{id}", .identifier) { _, id in .text("store \(id)") }
    router.add(.get, "/broken") { _ in throw Failing() }
    func answer(_ method: Method, _ address: String) throws -> (Int, String) {
      let response = router.respond(to: try Request(method, address))
      return (response.status.rawValue, String(decoding: response.bytes ?? [], as: UTF8.self))
    }
    #expect(try answer(.get, "/stores/a/pages/41") == (200, "a 42"))
    #expect(try answer(.head, "/stores/a/pages/41").0 == 200)
    #expect(try answer(.get, "/stores/new/") == (200, "new"))
    #expect(try answer(.get, "/stores/other") == (200, "store other"))
    for address in [
      "/stores/a/pages/x", "/stores/a/pages/01", "/stores/a/pages/+1", "/stores/a/pages/99999999999999999999",
      "/stores/a%20b", "/stores/.hidden", "/other",
    ] {
      #expect(try answer(.get, address).0 == 404, "\(address)")
    }
    #expect(try answer(.get, "/stores/a/actions").0 == 405)
    let response = router.respond(to: try Request(.delete, "/stores/a"))
    #expect(response.headers["Allow"] == "GET, HEAD, OPTIONS")
    let options = router.respond(to: try Request(.options, "/stores/a/actions"))
    #expect(options.status == .noContent && options.headers["Allow"] == "POST, OPTIONS")
    let broken = try answer(.get, "/broken")
    #expect(broken.0 == 500 && !broken.1.contains("secret"))
    #expect(router.routes.count == 5 && router.routes[0].pattern == "/stores/{id}/pages/{number}")
  }

  private struct Failing: Error { var words = "secret" }

  @Test func markupEscapesWhatIsInterpolated() throws {
    let value = "<script>alert('x')</script> & \"quoted\" `back`\u{0}"
    let page: HTML = "<p title=\"\(value)\">\(value)</p>"
    #expect(!page.text.contains("<script") && !page.text.contains("'x'") && !page.text.contains("\u{0}"))
    #expect(
      page.text.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;quoted&quot; &#96;back&#96;"))
    let items = ["a<", "b"].map { item -> HTML in "<li>\(item)</li>" }
    let list: HTML = "<ul>\(items)\(3)</ul>"
    #expect(list.text == "<ul><li>a&lt;</li><li>b</li>3</ul>")
    let link: HTML = "<a href=\"\(RequestTarget(segments: ["javascript:alert(1)", "\"x"]))\">x</a>"
    #expect(link.text == "<a href=\"/javascript%3Aalert%281%29/%22x\">x</a>")
    let turned: HTML = "\("\u{202E}abc")"
    #expect(turned.text.hasPrefix("\u{2068}") && turned.text.hasSuffix("\u{2069}"))
  }

  @Test(arguments: [
    ("a", "a"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("=1+1", "\"'=1+1\""), ("-5", "-5"), ("+5.5e3", "+5.5e3"),
    ("-5+1", "\"'-5+1\""), ("@x", "\"'@x\""), ("\tx", "\"'\tx\""), (" =x", "\"' =x\""), ("＝x", "\"'＝x\""), ("", ""),
    ("a\r\nb", "\"a\r\nb\""), ("|x", "\"'|x\""),
  ])
  func csvHoldsNoFormulas(_ value: String, _ field: String) {
    #expect(CSVRow.line([value]) == field + "\r\n")
  }

  @Test func formsAreRead() throws {
    let plain = try FormData(
      Request(
        .post, "/", headers: ["Content-Type": "application/x-www-form-urlencoded"], body: Array("a=1+2&b=%C3%A9".utf8)))
    #expect(plain["a"] == "1 2" && plain["b"] == "é")
    let body =
      "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--XX\r\n"
      + "Content-Disposition: form-data; name=\"f\"; filename=\"..\\\\\\\"x;y.sql\"\r\nContent-Type: text/plain\r\n\r\n"
      + "line\r\n--X\r\n--XX--\r\n"
    let parts = try FormData(
      Request(.post, "/", headers: ["Content-Type": "multipart/form-data; boundary=\"XX\""], body: Array(body.utf8)))
    #expect(parts["a"] == "value")
    #expect(
      parts.files == [.init(field: "f", name: "..\\\"x;y.sql", type: "text/plain", bytes: Array("line\r\n--X".utf8))])
    for (type, text) in [
      ("text/plain", "a=1"), ("multipart/form-data", "--XX"), ("multipart/form-data; boundary=XX", "--XX\r\nx"),
      ("multipart/form-data; boundary=XX", "--XX\r\n\r\n\r\nx\r\n--XX--"), ("multipart/form-data; boundary=XX", "x"),
      ("application/x-www-form-urlencoded", "a=%zz"),
    ] {
      #expect(throws: Refusal.self, "\(text)") {
        try FormData(Request(.post, "/", headers: ["Content-Type": type], body: Array(text.utf8)))
      }
    }
  }

  @Test func aLinkLetsOneBrowserIn() throws {
    let sessions = Sessions(cookieName: "lazaret")
    let link = sessions.makeLink()
    let response = try sessions.open(link: link.text, to: RequestTarget("/"))
    let cookie = try #require(response.headers["Set-Cookie"])
    #expect(response.status == .seeOther && response.headers["Location"] == "/")
    #expect(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.hasPrefix("lazaret="))
    #expect(throws: Refusal.self) { try sessions.open(link: link.text, to: RequestTarget("/")) }
    let pair = String(cookie.prefix { $0 != ";" })
    var request = try Request(.post, "/", headers: ["Cookie": "x=1; \(pair)"])
    let session = try sessions.session(of: request)
    #expect(throws: Refusal.self) { try sessions.checkAction(request, form: FormData()) }
    request.headers.add("X-CSRF-Token", session.form.text)
    try sessions.checkAction(request, form: FormData())
    request.headers.set("Cookie", "lazaret=" + link.text)
    #expect(throws: Refusal.self) { try sessions.session(of: request) }
    #expect(session.cookie != session.form && session.cookie.text.count == 64)
  }

  @Test func linksAndSessionsEnd() throws {
    let start = ContinuousClock.now
    let passed = Mutex(Duration.zero)
    let sessions = Sessions(
      cookieName: "lazaret", lifetimes: .init(link: .seconds(60), idle: .seconds(600), session: .seconds(1500)),
      now: { start + passed.withLock { $0 } })
    func wait(_ seconds: Int) { passed.withLock { $0 += .seconds(seconds) } }
    func open() throws -> Request {
      let response = try sessions.open(link: sessions.makeLink().text, to: RequestTarget("/"))
      let cookie = String(try #require(response.headers["Set-Cookie"]).prefix { $0 != ";" })
      return try Request(.get, "/", headers: ["Cookie": cookie])
    }
    let link = sessions.makeLink()
    wait(61)
    #expect(throws: Refusal.self) { try sessions.open(link: link.text, to: RequestTarget("/")) }
    let used = try open()
    let unused = try open()
    for _ in 0..<2 {
      wait(500)
      _ = try sessions.session(of: used)
    }
    #expect(throws: Refusal.self) { try sessions.session(of: unused) }
    wait(501)
    // However much it is used.
    #expect(throws: Refusal.self) { try sessions.session(of: used) }
  }

  @Test func whoLogsOutHasNoSession() throws {
    let sessions = Sessions(cookieName: "lazaret")
    func open() throws -> Request {
      let response = try sessions.open(link: sessions.makeLink().text, to: RequestTarget("/"))
      let cookie = String(try #require(response.headers["Set-Cookie"]).prefix { $0 != ";" })
      return try Request(.get, "/", headers: ["Cookie": cookie])
    }
    let (one, other) = (try open(), try open())
    let response = try sessions.close(one, answering: .text("out"))
    #expect(response.headers["Set-Cookie"]?.hasPrefix("lazaret=; ") == true)
    #expect(response.headers["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(throws: Refusal.self) { try sessions.session(of: one) }
    #expect(throws: Refusal.self) { try sessions.close(one, answering: .text("out")) }
    _ = try sessions.session(of: other)
  }

  @Test(arguments: [
    ("bytes=0-9", 100, ByteRange.part(0..<10)), ("bytes=90-", 100, .part(90..<100)),
    ("bytes=-10", 100, .part(90..<100)),
    ("bytes=-1000", 100, .part(0..<100)), ("bytes=5-9223372036854775807", 100, .part(5..<100)),
    ("bytes=100-", 100, .unsatisfiable), ("bytes=-0", 100, .unsatisfiable), ("bytes=0-", 0, .unsatisfiable),
    ("bytes=9-5", 100, .whole), ("bytes=a-b", 100, .whole), ("items=0-5", 100, .whole), ("bytes=0-1,5-6", 100, .whole),
    ("bytes=-", 100, .whole), ("bytes=99999999999999999999-", 100, .unsatisfiable), ("bytes=--5", 100, .whole),
  ])
  func ranges(_ field: String, _ count: Int64, _ range: ByteRange) {
    #expect(ByteRange(field, of: count) == range)
  }
}
