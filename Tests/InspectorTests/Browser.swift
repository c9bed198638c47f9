import Foundation
import HTTPServer
import Inspector
import Testing

/// A browser without a window: it keeps the cookie and the token, and asks the inspector directly.
struct Browser {
  let inspector: Inspector
  let cookie: String
  let token: String

  /// Opens the inspector's one-time link.
  init(_ inspector: Inspector) throws {
    self.inspector = inspector
    let link = inspector.sessions.makeLink()
    let opened = inspector.respond(to: try Request(.get, "/open/\(link.text)"))
    cookie = String((opened.headers["Set-Cookie"] ?? "").prefix { $0 != ";" })
    let session = inspector.respond(to: try Request(.get, "/session.json", headers: ["Cookie": cookie]))
    token = session.text.split(separator: "\"").last { $0.count == 64 }.map(String.init) ?? ""
  }

  /// Asks for an address.
  func get(_ address: String) throws -> Response {
    inspector.respond(to: try Request(.get, address, headers: ["Cookie": cookie]))
  }

  /// Asks for the twin of a page.
  func json(_ address: String) throws -> [String: Any] {
    let response = try get(address)
    #expect(response.status == .ok, "\(address)")
    return try JSONSerialization.jsonObject(with: Data(response.bytes ?? [])) as? [String: Any] ?? [:]
  }

  /// Sends a form, with its token.
  func post(_ address: String, _ fields: [(String, String)] = [], token: String? = nil) throws -> Response {
    let query = Query((fields + [("csrf", token ?? self.token)]).map { Query.Item($0.0, $0.1) })
    return inspector.respond(
      to: try Request(
        .post, address, headers: ["Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"],
        body: Array(query.text.dropFirst().utf8)))
  }

  /// Sends a form, and waits for the job that it begins.
  func run(_ address: String, _ fields: [(String, String)] = []) throws -> RunningWork.Job {
    let response = try post(address, fields)
    #expect(response.status == .seeOther, "\(response.text)")
    // The page of the job, or another one that is given its name.
    let id = try #require(
      response.headers["Location"]?.split { $0 == "/" || $0 == "=" }.last.map(String.init))
    for _ in 0..<4000 {
      let job = try #require(inspector.work.job(id))
      if !job.isRunning { return job }
      Thread.sleep(forTimeInterval: 0.005)
    }
    return try #require(inspector.work.job(id))
  }

  /// The stores of a kind with a name, by the list's twin.
  func id(_ kind: String, _ name: String) throws -> String {
    let stores = try json("/stores.json")[kind] as? [[String: Any]] ?? []
    return try #require(stores.first { $0["name"] as? String == name }?["id"] as? String, "\(kind) \(name)")
  }

  /// How many pages of one shape are looked at.
  private static let alike = 3

  /// An address without its numbers and the values of its query.
  private static func shape(of address: String) -> String {
    let parts = address.split(separator: "?", maxSplits: 1)
    let path = (parts.first ?? "").split(separator: "/").map { segment in
      segment.allSatisfy { $0.isNumber || $0 == "-" } ? "0" : String(segment)
    }
    let names = (parts.count > 1 ? parts[1] : "").split(separator: "&").map { item in
      item.hasPrefix("_") ? String(item.prefix { $0 != "=" }) : "property"
    }
    return path.joined(separator: "/") + "?" + Set(names).sorted().joined(separator: "&")
  }

  /// Everything that can be reached by links from an address, each page with its response; at most so many.
  func crawl(from start: String, limit: Int = 1500) throws -> [(address: String, response: Response)] {
    var seen: Set<String> = [start]
    var shapes: [String: Int] = [:]
    var waiting = [start]
    var found: [(String, Response)] = []
    while !waiting.isEmpty, found.count < limit {
      let address = waiting.removeFirst()
      var response = try get(address)
      // What is being made to be looked at is there in a moment.
      for _ in 0..<200 where response.text.contains("data-reload") {
        Thread.sleep(forTimeInterval: 0.01)
        response = try get(address)
      }
      found.append((address, response))
      // A stream that is not read to its end holds a place that others wait for.
      if case .chunks(let stream) = response.body { stream.cancel() }
      guard response.headers["Content-Type"]?.hasPrefix("text/html") == true else { continue }
      for link in response.links.map({ String($0.prefix { $0 != "#" }) })
      where !link.isEmpty && !link.hasPrefix("/public/") {
        guard seen.insert(link).inserted else { continue }
        // Of hundreds of records, pages of a file or orders of a list some stand for all.
        shapes[Self.shape(of: link), default: 0] += 1
        if shapes[Self.shape(of: link), default: 0] <= Self.alike { waiting.append(link) }
      }
    }
    return found
  }
}

extension Response {
  /// The body as text; empty for a stream.
  var text: String { bytes.map { String(decoding: $0, as: UTF8.self) } ?? "" }

  /// The addresses of its links, as a browser reads them.
  var links: [String] {
    text.components(separatedBy: "href=\"").dropFirst().compactMap { piece in
      piece.split(separator: "\"", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init)
    }.map { link in
      [("&#39;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&#96;", "`"), ("&amp;", "&")].reduce(link) {
        $0.replacingOccurrences(of: $1.0, with: $1.1)
      }
    }
  }
}
