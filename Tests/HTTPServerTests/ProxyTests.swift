import HTTPServer
import Platform
import Testing

/// A server behind a proxy: whose word counts on where a request comes from.
struct ProxyTests {
  /// A server that answers with the client of each request; the tests reach it from 127.0.0.1.
  private static func server(_ proxies: [String], hosts: Set<String> = []) throws -> Server {
    var options = ServerOptions()
    options.proxies = Set(proxies.compactMap(ClientAddress.init))
    options.hosts = hosts
    return try Server(options) { request in .text("[\(request.client?.description ?? "unknown")]") }
  }

  private static func client(_ server: borrowing Server, _ fields: String) throws -> String {
    try server.exchange("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nConnection: close\r\n\(fields)\r\n").body
  }

  @Test func addressesAreReadAsTheSystemWritesThem() {
    #expect(ClientAddress("127.0.0.1")?.description == "127.0.0.1")
    #expect(ClientAddress("::FFFF:10.1.2.3")?.description == "10.1.2.3")
    #expect(ClientAddress("2001:DB8:0:0:0:0:0:1")?.description == "2001:db8::1")
    #expect(ClientAddress("127.9.9.9")?.isLoopback == true && ClientAddress("::1")?.isLoopback == true)
    #expect(ClientAddress("10.1.2.3")?.isLoopback == false)
    for text in ["", "localhost", "1.2.3", "1.2.3.4:80", "[::1]", "1.2.3.4 ", String(repeating: "1", count: 400)] {
      #expect(ClientAddress(text) == nil, "\(text)")
    }
  }

  @Test func withoutAProxyTheClientIsTheOtherEnd() throws {
    let server = try Self.server([])
    #expect(try Self.client(server, "") == "[127.0.0.1]")
  }

  @Test func theWordOfAStrangerCountsForNothing() throws {
    let server = try Self.server([])
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.9\r\n") == "[unknown]")
    #expect(try Self.client(server, "Forwarded: for=10.0.0.9\r\n") == "[unknown]")
    let other = try Self.server(["192.0.2.1"], hosts: ["support.example.com"])
    #expect(try Self.client(other, "X-Forwarded-For: 10.0.0.9\r\n") == "[unknown]")
    let answer = try other.exchange(
      "GET / HTTP/1.1\r\nHost: nowhere.example\r\nX-Forwarded-Host: support.example.com\r\nConnection: close\r\n\r\n")
    #expect(answer.status == 421)
  }

  @Test func aProxyNamesTheClientAndWhatStandsBeforeIsNotBelieved() throws {
    let server = try Self.server(["127.0.0.1", "10.0.0.2"])
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.9\r\n") == "[10.0.0.9]")
    #expect(try Self.client(server, "X-Forwarded-For: 127.0.0.1, 10.0.0.9\r\n") == "[10.0.0.9]")
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.9, 10.0.0.2\r\n") == "[10.0.0.9]")
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.8\r\nX-Forwarded-For: 10.0.0.9\r\n") == "[10.0.0.9]")
    // A client that writes what is no address, or a proxy that names none.
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.9, <script>\r\n") == "[unknown]")
    #expect(try Self.client(server, "X-Forwarded-For: 10.0.0.2\r\n") == "[unknown]")
    #expect(try Self.client(server, "") == "[unknown]")
  }

  @Test func aProxySaysWhichHostWasAskedFor() throws {
    let server = try Self.server(["127.0.0.1"], hosts: ["support.example.com"])
    func status(_ fields: String) throws -> Int {
      try server.exchange("GET / HTTP/1.1\r\nHost: inner.example\r\nConnection: close\r\n\(fields)\r\n").status
    }
    #expect(try status("X-Forwarded-Host: support.example.com\r\n") == 200)
    #expect(try status("X-Forwarded-Host: evil.example\r\n") == 421)
    #expect(try status("X-Forwarded-Host: support.example.com\r\nX-Forwarded-Host: evil.example\r\n") == 421)
    #expect(try status("") == 421)
  }

  @Test func aProxyMayHaveMoreConnectionsThanOneClient() throws {
    var options = ServerOptions()
    options.addressLimit = 4
    options.proxies = Set([ClientAddress("127.0.0.1")].compactMap { $0 })
    let server = try Server(options) { _ in .text("here") }
    let waiting = try (0..<20).map { _ in try RawConnection(port: server.port) }
    for connection in waiting {
      connection.send("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nConnection: close\r\n\r\n")
      #expect(connection.receive(until: "here").hasSuffix("here"))
    }
  }

  @Test func everyAnswerIsCountedByMethodAndStatus() throws {
    let told = Mutex<[RequestMeter.Answer]>([])
    let meter = RequestMeter { answer in told.withLock { $0.append(answer) } }
    var options = ServerOptions()
    options.meter = meter
    let server = try Server(options) {
      $0.target.segments == ["stores", "Secret"] ? .text("x") : .text("", status: .notFound)
    }
    func ask(_ method: String, _ path: String, host: String? = nil) throws {
      _ = try server.exchange(
        "\(method) \(path) HTTP/1.1\r\nHost: \(host ?? "127.0.0.1:\(server.port)")\r\nConnection: close\r\n\r\n")
    }
    try ask("GET", "/stores/Secret")
    try ask("GET", "/stores/Secret")
    try ask("GET", "/Secret?name=Secret")
    try ask("GET", "/stores", host: "evil.example")
    try ask("BREW", "/stores")
    let counts = meter.counts
    #expect(counts.answers[RequestMeter.Answered(method: "GET", status: 200)] == 2)
    #expect(counts.answers[RequestMeter.Answered(method: "GET", status: 404)] == 1)
    #expect(counts.answers[RequestMeter.Answered(method: "GET", status: 421)] == 1)
    #expect(counts.answers[RequestMeter.Answered(method: "other", status: 501)] == 1)
    #expect(counts.count == 5 && counts.withinBounds.last == 5 && counts.total > .zero)
    #expect(zip(counts.withinBounds, counts.withinBounds.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(told.withLock { $0.map(\.area) } == ["stores", "stores", "other", "", ""])
    #expect(told.withLock { $0.allSatisfy { $0.client?.isLoopback == true } })
  }
}
