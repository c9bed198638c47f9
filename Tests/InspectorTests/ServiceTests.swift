import Foundation
import HTTPServer
import Inbox
import Inspector
import Lazaret
import SystemPackage
import TestSupport
import Testing

@Suite("What programs ask that watch the process")
struct ServiceTests {
  private static func ask(_ inspector: Inspector, _ address: String, from client: String?) throws -> Response {
    var request = try Request(.get, address)
    request.client = client.flatMap(ClientAddress.init)
    return inspector.respond(to: request)
  }

  private static func inspector(_ scene: Scene, readers: [String] = [], inbox: Inbox? = nil) throws -> Inspector {
    var options = InspectorOptions(home: scene.home, publicFolder: RealMaterial.projectRoot.appending("Public"))
    options.metricsReaders = Set(readers.compactMap(ClientAddress.init))
    options.meter = RequestMeter()
    options.inbox = inbox
    return try Inspector(options, sessions: Sessions(cookieName: "lazaret"))
  }

  @Test("the health is told without a session, and fails where the home is gone")
  func health() throws {
    let scene = try Scene()
    let inspector = try Self.inspector(scene)
    let well = try Self.ask(inspector, "/healthz", from: "192.0.2.7")
    #expect(well.status == .ok && well.text == "ok\n")
    try FileManager.default.moveItem(atPath: scene.home.string, toPath: scene.home.string + "-elsewhere")
    let ill = try Self.ask(inspector, "/healthz", from: nil)
    #expect(ill.status == .serviceUnavailable && ill.text == "failing: home\n")
  }

  @Test("an ending process is not well, so that no more is sent to it")
  func ending() throws {
    let inspector = try Self.inspector(try Scene())
    inspector.work.stop()
    let answer = try Self.ask(inspector, "/healthz", from: nil)
    #expect(answer.status == .serviceUnavailable && answer.text.contains("process"))
  }

  @Test("the counts are for this machine and those that were named alone")
  func readers() throws {
    let inspector = try Self.inspector(try Scene(), readers: ["192.0.2.7"])
    #expect(try Self.ask(inspector, "/metrics", from: "127.0.0.1").status == .ok)
    #expect(try Self.ask(inspector, "/metrics", from: "::1").status == .ok)
    #expect(try Self.ask(inspector, "/metrics", from: "192.0.2.7").status == .ok)
    #expect(try Self.ask(inspector, "/metrics", from: "192.0.2.8").status == .notFound)
    #expect(try Self.ask(inspector, "/metrics", from: nil).status == .notFound)
  }

  @Test("every line is a comment, or a name with labels and a number; each name is told of once")
  func format() throws {
    let scene = try Scene()
    let inbox = try Inbox(home: scene.home)
    let inspector = try Self.inspector(scene, inbox: inbox)
    let answer = try Self.ask(inspector, "/metrics", from: "127.0.0.1")
    #expect(answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
    let sample = /^([a-z_]+)(\{[a-z]+="[A-Za-z0-9.+_ -]*"(,[a-z]+="[A-Za-z0-9.+_ -]*")*\})? [0-9.e+-]+$/
    var types: [String] = []
    for line in answer.text.split(separator: "\n") {
      if line.hasPrefix("# HELP ") { continue }
      if line.hasPrefix("# TYPE ") {
        types.append(String(line.split(separator: " ")[2]))
        continue
      }
      let match = try #require(line.wholeMatch(of: sample), "\(line)")
      #expect(types.contains { match.1.hasPrefix($0) }, "\(line)")
    }
    #expect(types.count == Set(types).count && types.contains("lazaret_http_request_duration_seconds"))
    #expect(answer.text.contains("lazaret_inbox_bundles{state=\"received\"} 0\n"))
    #expect(answer.text.contains("lazaret_inbox_readable 1\n"))
  }
}
