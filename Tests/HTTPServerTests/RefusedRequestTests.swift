import Foundation
import HTTPServer
import Testing

/// Requests that are refused, over a real connection; nothing of them reaches a handler.
struct RefusedRequestTests {
  private static func server() throws -> Server {
    var router = Router()
    router.add(.get, "/") { _ in .text("root") }
    router.add(.get, "/stores/{id}", .identifier) { _, id in .text("store \(id)") }
    router.add(.post, "/actions") { request in .text("did \(request.body.count)") }
    var options = ServerOptions()
    options.bodyLimit = 1000
    return try Server(options, router: router)
  }

  /// What is wrong, the request with `HOST` in place of the right host, and the statuses that it may get; 0 is none.
  static let table: [(String, String, Set<Int>)] = [
    // Hosts
    ("no host", "GET / HTTP/1.1\r\n\r\n", [400]),
    ("no host in 1.0", "GET / HTTP/1.0\r\n\r\n", [400]),
    ("empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", [400]),
    ("foreign host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", [421]),
    ("foreign host with our port", "GET / HTTP/1.1\r\nHost: evil.example:PORT\r\n\r\n", [421]),
    ("right host, other port", "GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", [421]),
    ("host without port", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", [421]),
    ("host with a user", "GET / HTTP/1.1\r\nHost: a@HOST\r\n\r\n", [421]),
    ("host with a suffix", "GET / HTTP/1.1\r\nHost: HOST.evil.example\r\n\r\n", [421]),
    ("host with a prefix", "GET / HTTP/1.1\r\nHost: evil.localhost:PORT\r\n\r\n", [421]),
    ("two addresses in one host", "GET / HTTP/1.1\r\nHost: HOST, HOST\r\n\r\n", [400, 421]),
    ("the same host twice", "GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", [400]),
    ("right host, then a foreign one", "GET / HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n", [400]),
    ("foreign host, then the right one", "GET / HTTP/1.1\r\nHost: evil.example\r\nHost: HOST\r\n\r\n", [400]),
    ("twice in other case", "GET / HTTP/1.1\r\nHost: HOST\r\nhOST: HOST\r\n\r\n", [400]),
    ("twice for HEAD", "HEAD / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", [400]),
    ("foreign for OPTIONS", "OPTIONS / HTTP/1.1\r\nHost: evil.example\r\n\r\n", [421]),
    ("foreign for POST", "POST /actions HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n", [421]),
    ("foreign for DELETE", "DELETE / HTTP/1.1\r\nHost: evil.example\r\n\r\n", [421]),
    ("space before the colon", "GET / HTTP/1.1\r\nHost : HOST\r\n\r\n", [400]),
    ("name of the host in another field", "GET / HTTP/1.1\r\nX-Forwarded-Host: HOST\r\n\r\n", [400]),
    // Lengths
    ("two lengths", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", [400]),
    (
      "two other lengths", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      [400]
    ),
    ("list of lengths", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1, 1\r\n\r\na", [400]),
    ("signed length", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: +1\r\n\r\na", [400]),
    ("negative length", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\na", [400]),
    ("hexadecimal length", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0x1\r\n\r\na", [400]),
    ("empty length", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length:\r\n\r\na", [400]),
    ("length of words", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: one\r\n\r\na", [400]),
    ("fraction of a length", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1.0\r\n\r\na", [400]),
    ("length beyond the limit", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1001\r\n\r\n", [413]),
    (
      "length beyond 64 bits", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n",
      [400, 413]
    ),
    ("length of GET", "GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\n\r\nabc", [400]),
    ("length of HEAD", "HEAD / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\n\r\nabc", [400]),
    // Codings
    (
      "length and chunks",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]
    ),
    (
      "chunks and length",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", [400]
    ),
    (
      "chunks twice",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      [400]
    ),
    ("unknown coding", "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip\r\n\r\n", [400, 501]),
    (
      "list of codings", "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      [400, 501]
    ),
    (
      "coding that looks like chunks",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", [400, 501]
    ),
    ("identity", "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: identity\r\n\r\n", [400, 501]),
    ("chunks in 1.0", "POST /actions HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
    ("chunks of GET", "GET / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
    (
      "chunk sizes of words", "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n",
      [0, 400]
    ),
    (
      "packed body", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\na",
      [415]
    ),
    (
      "unknown expectation", "POST /actions HTTP/1.1\r\nHost: HOST\r\nExpect: magic\r\nContent-Length: 0\r\n\r\n", [417]
    ),
    // Addresses
    ("up", "GET /../etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("up, encoded", "GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("up, half encoded", "GET /stores/.%2E HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("encoded slash", "GET /stores/a%2fb HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("backslash", "GET /stores\\x HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("encoded backslash", "GET /stores/..%5cx HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("encoded NUL", "GET /stores/a%00b HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("encoded line end", "GET /stores/a%0d%0aX:y HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("half an escape", "GET /stores/%4 HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("no escape", "GET /stores/%zz HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("overlong UTF-8", "GET /stores/%c0%ae%c0%ae HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("half a surrogate", "GET /stores/%ed%a0%80 HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("twice encoded", "GET /stores/%252e%252e HTTP/1.1\r\nHost: HOST\r\n\r\n", [404]),
    ("raw UTF-8", "GET /stores/é HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("empty segment", "GET //stores HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("fragment", "GET /#x HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("another server", "GET http://evil.example/ HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("this server, as for a proxy", "GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("no slash", "GET stores HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("star of GET", "GET * HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("NUL in a parameter", "GET /?a=%00 HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("bad parameter", "GET /?a=%f HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("long address", "GET /" + String(repeating: "a", count: 9000) + " HTTP/1.1\r\nHost: HOST\r\n\r\n", [414]),
    ("many parameters", "GET /?" + String(repeating: "a&", count: 300) + " HTTP/1.1\r\nHost: HOST\r\n\r\n", [400]),
    ("unknown address", "GET /nothing HTTP/1.1\r\nHost: HOST\r\n\r\n", [404]),
    ("file of the system", "GET /etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n", [404]),
    // Methods and versions
    ("CONNECT", "CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\n", [400, 501]),
    ("TRACE", "TRACE / HTTP/1.1\r\nHost: HOST\r\n\r\n", [501]),
    ("invented method", "BREW / HTTP/1.1\r\nHost: HOST\r\n\r\n", [501]),
    ("lower case", "get / HTTP/1.1\r\nHost: HOST\r\n\r\n", [400, 501]),
    ("POST of a page", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n", [405]),
    ("GET of an action", "GET /actions HTTP/1.1\r\nHost: HOST\r\n\r\n", [405]),
    ("HTTP/2 without a preface", "GET / HTTP/2.0\r\nHost: HOST\r\n\r\n", [400, 505]),
    ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [0, 400, 505]),
    ("no version", "GET /\r\n\r\n", [0, 400, 505]),
    ("no request", "nonsense\r\n\r\n", [0, 400, 501, 505]),
    // Header fields
    ("large fields", "GET / HTTP/1.1\r\nHost: HOST\r\nX: " + String(repeating: "a", count: 40_000) + "\r\n\r\n", [431]),
    (
      "many fields",
      "GET / HTTP/1.1\r\nHost: HOST\r\n" + (0..<150).map { "X-\($0): 1\r\n" }.joined() + "\r\n", [431]
    ),
    ("field without a name", "GET / HTTP/1.1\r\nHost: HOST\r\n: x\r\n\r\n", [400]),
    ("field without a colon", "GET / HTTP/1.1\r\nHost: HOST\r\nnonsense\r\n\r\n", [400]),
    ("control character", "GET / HTTP/1.1\r\nHost: HOST\r\nX: a\u{1}b\r\n\r\n", [400]),
    ("two cookies", "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: a=1\r\nCookie: a=2\r\n\r\n", [400]),
    ("two ranges", "GET / HTTP/1.1\r\nHost: HOST\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n", [400]),
    // Other sites
    (
      "foreign origin",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n", [403]
    ),
    (
      "no origin, in a frame of another site",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nOrigin: null\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n",
      [403]
    ),
    (
      "no origin, from another server of this host",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nOrigin: null\r\nSec-Fetch-Site: same-site\r\nContent-Length: 0\r\n\r\n",
      [403]
    ),
    ("no origin at all", "POST /actions HTTP/1.1\r\nHost: HOST\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n", [403]),
    (
      "other port's origin",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nOrigin: http://127.0.0.1:1\r\nContent-Length: 0\r\n\r\n", [403]
    ),
    (
      "from another site",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n", [403]
    ),
    (
      "from the same site",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nSec-Fetch-Site: same-site\r\nContent-Length: 0\r\n\r\n", [403]
    ),
    (
      "chunks beyond the limit",
      "POST /actions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n"
        + String(repeating: "a", count: 0x800) + "\r\n0\r\n\r\n", [413]
    ),
    (
      "body that is cut off", "POST /actions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\n\r\nabc", [0, 400]
    ),
  ]

  @Test func areRefused() throws {
    let server = try Self.server()
    #expect(Self.table.count >= 60)
    for (what, text, statuses) in Self.table {
      let request = text.replacing("HOST", with: "127.0.0.1:\(server.port)").replacing("PORT", with: "\(server.port)")
      let response = try server.exchange(request)
      #expect(statuses.contains(response.status), "\(what): \(response.head)")
      // Several requests may get several answers; one gets one.
      let requests = request.components(separatedBy: " HTTP/1.").count - 1
      #expect(response.text.components(separatedBy: "HTTP/1.1 ").count - 1 <= max(1, requests), "\(what)")
      #expect(!response.body.contains("root") && !response.body.contains("did "), "\(what): \(response.body)")
    }
    // And it is still there.
    let response = try server.exchange("GET / HTTP/1.1\r\nHost: localhost:\(server.port)\r\nConnection: close\r\n\r\n")
    #expect(response.status == 200)
    #expect(response.body == "root")
  }

  @Test func aNULHidesNothing() throws {
    let server = try Self.server()
    for text in [
      "GET /stores/a\0b HTTP/1.1\r\nHost: HOST\r\n\r\n", "GET / HTTP/1.1\r\nHost: HOST\0.evil.example\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: HOST\r\nX: a\0b\r\n\r\n",
    ] {
      let response = try server.exchange(text.replacing("HOST", with: "127.0.0.1:\(server.port)"))
      #expect(response.status != 200, "\(response.head)")
    }
  }
}
