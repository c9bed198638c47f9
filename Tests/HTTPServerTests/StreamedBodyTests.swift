import Foundation
import HTTPServer
import Platform
import Testing

/// Bodies that are taken as they come, over real connections.
struct StreamedBodyTests {
  /// What became of the bodies.
  final class Log: Sendable {
    private let events = Mutex<[String]>([])

    func add(_ event: String) { events.withLock { $0.append(event) } }

    var all: [String] { events.withLock { $0 } }

    /// Waits until something has happened.
    func waits(for event: String) -> Bool {
      for _ in 0..<1000 {
        if all.contains(event) { return true }
        Thread.sleep(forTimeInterval: 0.005)
      }
      return false
    }
  }

  private final class Counter: BodyConsumer {
    let log: Log
    let failsAt: Int
    var count = 0
    var largest = 0

    init(_ log: Log, failsAt: Int) {
      self.log = log
      self.failsAt = failsAt
    }

    func take(_ bytes: [UInt8]) throws {
      count += bytes.count
      largest = max(largest, bytes.count)
      if count >= failsAt { throw Refusal(.insufficientStorage, "full") }
    }

    func answer() -> Response {
      log.add("finished \(count)")
      return .text("took \(count), at most \(largest) at a time")
    }

    func abandon() { log.add("abandoned \(count)") }
  }

  private static func server(
    _ log: Log, failsAt: Int = .max, seconds: Int = 60, limit: Int64 = 4 << 20
  ) throws -> Server {
    var options = ServerOptions()
    options.bodyLimit = 1000
    options.bodySeconds = seconds
    var router = Router()
    router.add(.post, "/form") { request in .text("form \(request.body.count)") }
    for method in [Method.post, .patch, .put] {
      router.addStream(method, "/streams/{id}", .integer) { request, length, id in
        log.add("asked \(id) \(length.map { "\($0)" } ?? "chunks")")
        guard request.headers["Authorization"] == "Bearer good" else { throw Refusal(.unauthorized, "who are you?") }
        return .stream(limit: limit, Counter(log, failsAt: failsAt))
      }
    }
    return try Server(options, router: router)
  }

  private static func head(
    _ server: borrowing Server, _ more: String, method: String = "PATCH", path: String = "/streams/7"
  ) -> String {
    "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nAuthorization: Bearer good\r\n\(more)\r\n"
  }

  @Test func aLargeBodyIsTakenInSmallPieces() throws {
    let log = Log()
    let server = try Self.server(log)
    let connection = try RawConnection(port: server.port)
    connection.send(Self.head(server, "Content-Length: 3000000\r\n"))
    connection.send([UInt8](repeating: 7, count: 3_000_000))
    let answer = connection.receive(until: "at a time")
    #expect(answer.contains("took 3000000"))
    let largest = answer.split(separator: "at most ").last.flatMap { Int($0.prefix { $0.isNumber }) } ?? .max
    #expect(largest <= 64 << 10)
    // The connection goes on.
    connection.send(
      Self.head(server, "Transfer-Encoding: chunked\r\n", method: "POST") + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    #expect(connection.receive(until: "at a time").contains("took 5,"))
    connection.send(Self.head(server, "Content-Length: 4\r\n", method: "POST", path: "/form") + "abcd")
    #expect(connection.receive(until: "form 4").contains("200"))
    #expect(log.all == ["asked 7 3000000", "finished 3000000", "asked 7 chunks", "finished 5"])
  }

  @Test func whatIsRefusedIsNotRead() throws {
    let log = Log()
    let server = try Self.server(log)
    // The body is never sent; the answer comes at once.
    for (text, status) in [
      ("PATCH /streams/7 HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100000\r\n\r\n", "401"),
      ("PATCH /streams/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100000\r\n\r\n", "413"),
      ("POST /form HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100000\r\n\r\n", "413"),
      (
        "PATCH /streams/7 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer good\r\nContent-Length: 9000000\r\n\r\n",
        "413"
      ),
      ("PATCH /streams/7 HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 10\r\n\r\n", "421"),
      ("PATCH /streams/7 HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\nContent-Length: 10\r\n\r\n", "403"),
      (
        "PATCH /streams/7 HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n", "400"
      ),
      ("PATCH /streams/7 HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n", "401"),
    ] {
      let connection = try RawConnection(port: server.port)
      connection.send(text.replacing("HOST", with: "127.0.0.1:\(server.port)"))
      let answer = connection.receive(until: "\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(text)")
      #expect(!answer.contains("100 Continue"))
    }
    #expect(!log.all.contains { $0.hasPrefix("finished") })
    #expect(log.all.contains("abandoned 0"))
  }

  @Test func aRefusedBodyIsNoRequest() throws {
    let log = Log()
    let server = try Self.server(log)
    let connection = try RawConnection(port: server.port)
    let smuggled = "GET /streams/9 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n"
    connection.send(
      "PATCH /streams/7 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nContent-Length: \(smuggled.utf8.count)\r\n\r\n"
        + smuggled + smuggled)
    connection.finishSending()
    let answers = connection.receiveAll()
    #expect(answers.components(separatedBy: "HTTP/1.1 ").count == 2, "\(answers)")
    #expect(answers.hasPrefix("HTTP/1.1 401"))
  }

  @Test func goodBodiesGetTheirContinue() throws {
    let log = Log()
    let server = try Self.server(log)
    let connection = try RawConnection(port: server.port)
    connection.send(Self.head(server, "Expect: 100-continue\r\nContent-Length: 3\r\n"))
    #expect(connection.receive(until: "\r\n\r\n").contains("100 Continue"))
    connection.send("abc")
    #expect(connection.receive(until: "at a time").contains("took 3,"))
  }

  @Test func aCutConnectionAbandons() throws {
    let log = Log()
    let server = try Self.server(log)
    do {
      let connection = try RawConnection(port: server.port)
      connection.send(Self.head(server, "Content-Length: 1000\r\n") + "0123456789")
      #expect(log.waits(for: "asked 7 1000"))
      Thread.sleep(forTimeInterval: 0.1)
    }
    #expect(log.waits(for: "abandoned 10"))
    #expect(!log.all.contains { $0.hasPrefix("finished") })
  }

  @Test func aFailingConsumerAnswersWhenAllHasCome() throws {
    let log = Log()
    let server = try Self.server(log, failsAt: 100_000)
    let connection = try RawConnection(port: server.port)
    connection.send(Self.head(server, "Content-Length: 1000000\r\n"))
    connection.send([UInt8](repeating: 7, count: 1_000_000))
    #expect(connection.receive(until: "full").hasPrefix("HTTP/1.1 507"))
    #expect(log.all.count { $0.hasPrefix("abandoned") } == 1)
  }

  @Test func chunksBeyondTheLimitAreRefused() throws {
    let log = Log()
    let server = try Self.server(log, limit: 10)
    let connection = try RawConnection(port: server.port)
    connection.send(Self.head(server, "Transfer-Encoding: chunked\r\n") + "8\r\n01234567\r\n8\r\n01234567\r\n0\r\n\r\n")
    #expect(connection.receive(until: "too large").hasPrefix("HTTP/1.1 413"))
    #expect(log.all.contains { $0.hasPrefix("abandoned") })
  }

  @Test func aSlowClientIsCutButOneThatGetsOnIsNot() throws {
    let log = Log()
    let server = try Self.server(log, seconds: 1)
    let slow = try RawConnection(port: server.port)
    slow.send(Self.head(server, "Content-Length: 1000\r\n") + "a")
    let steady = try RawConnection(port: server.port)
    steady.send(Self.head(server, "Content-Length: 524288\r\n", path: "/streams/8"))
    for _ in 0..<8 {
      Thread.sleep(forTimeInterval: 0.4)
      steady.send([UInt8](repeating: 1, count: 65_536))
    }
    #expect(steady.receive(until: "at a time").contains("took 524288"))
    #expect(log.waits(for: "abandoned 1"))
  }

  @Test func aServerThatStopsAbandons() throws {
    let log = Log()
    let server = try Self.server(log)
    let connection = try RawConnection(port: server.port)
    connection.send(Self.head(server, "Content-Length: 1000\r\n") + "0123456789")
    #expect(log.waits(for: "asked 7 1000"))
    Thread.sleep(forTimeInterval: 0.1)
    server.stop()
    #expect(log.all.last == "abandoned 10")
  }
}
