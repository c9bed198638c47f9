import Dispatch
import HTTPServer
import Platform
import Testing

/// A running server, over real connections.
struct ServerTests {
  private struct Broken: Error {}

  private static func get(_ path: String, _ port: UInt16, _ more: String = "", method: String = "GET") -> String {
    "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\(more)\r\n"
  }

  @Test func answersWithItsOwnHeaders() throws {
    let server = try Server { _ in .text("hello") }
    let response = try server.exchange(Self.get("/", server.port))
    #expect(response.status == 200)
    #expect(response.body == "hello")
    #expect(response.header("Content-Security-Policy")?.hasPrefix("default-src 'none'") == true)
    #expect(response.header("Content-Security-Policy")?.contains("frame-ancestors 'none'") == true)
    #expect(response.header("X-Content-Type-Options") == "nosniff")
    #expect(response.header("Referrer-Policy") == "no-referrer")
    #expect(response.header("Cache-Control") == "no-store")
    let head = try server.exchange(Self.get("/", server.port, method: "HEAD"))
    #expect(head.status == 200)
    #expect(head.body.isEmpty)
    #expect(head.header("Content-Length") == "5")
  }

  @Test func keepsConnectionsAndReadsBodies() throws {
    let server = try Server { request in .text("[\(String(decoding: request.body, as: UTF8.self))]") }
    let connection = try RawConnection(port: server.port)
    let host = "Host: localhost:\(server.port)\r\n"
    connection.send("GET / HTTP/1.1\r\n\(host)\r\n")
    #expect(connection.receive(until: "[]").contains("200"))
    connection.send("POST / HTTP/1.1\r\n\(host)Content-Length: 5\r\n\r\n")
    connection.send("ab")
    connection.send("cde")
    #expect(connection.receive(until: "[abcde]").contains("[abcde]"))
    connection.send(
      "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nHost: evil\r\n\r\n")
    #expect(connection.receive(until: "[abcde]").contains("[abcde]"))
  }

  @Test func twoServersGetTwoPorts() throws {
    let one = try Server { _ in .text("one") }
    let two = try Server { _ in .text("two") }
    #expect(one.port != two.port && one.port != 0)
    var options = ServerOptions()
    options.address = "nowhere"
    do {
      _ = try Server(options) { _ in .text("") }
      Issue.record("a name is no address")
    } catch {
      #expect(error.kind == .serverAddress)
    }
  }

  @Test func listensAtTheLoopbackOfIPv6() throws {
    var options = ServerOptions()
    options.address = "::1"
    do {
      let server = try Server(options) { _ in .text("six") }
      #expect(server.port != 0)
    } catch {
      // A machine without IPv6.
      #expect(error.kind == .serverNotStarted)
    }
  }

  @Test func streamsEndOrBreakVisibly() throws {
    let ends = Mutex<[String]>([])
    let server = try Server { request in
      let counter = Mutex(0)
      let fails = request.query["fail"] != nil
      return Response(
        body: .chunks(
          ChunkSource(ended: { end in ends.withLock { $0.append("\(end)") } }) {
            let number = counter.withLock { counter in
              counter += 1
              return counter
            }
            if number > 3 {
              guard !fails else { throw Broken() }
              return nil
            }
            return Array("piece \(number)\n".utf8)
          }))
    }
    let whole = try server.exchange(Self.get("/", server.port))
    #expect(whole.header("Transfer-Encoding") == "chunked")
    #expect(whole.body.contains("piece 3") && whole.body.hasSuffix("0\r\n\r\n"))
    let cut = try server.exchange(Self.get("/?fail=1", server.port))
    #expect(cut.body.contains("piece 3") && !cut.body.hasSuffix("0\r\n\r\n"))
    let head = try server.exchange(Self.get("/", server.port, method: "HEAD"))
    #expect(head.body.isEmpty)
    #expect(ends.withLock { $0 } == ["finished", "failed", "cancelled"])
  }

  @Test func eventsAreSentAtOnceAndStopWithTheServer() throws {
    let channel = EventChannel(heartbeatMilliseconds: 200)
    do {
      let server = try Server { _ in channel.response }
      let connection = try RawConnection(port: server.port)
      connection.send("GET /events HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n")
      #expect(connection.receive(until: "\r\n\r\n").contains("text/event-stream"))
      channel.send(EventChannel.Event("a\nb", name: "progress"))
      #expect(connection.receive(until: "data: b").contains("event: progress\ndata: a\ndata: b"))
      #expect(connection.receive(until: ": \n").contains(": \n"))
      let start = ContinuousClock.now
      server.stop()
      #expect(ContinuousClock.now - start < .seconds(30))
    }
    #expect(channel.isClosed)
    #expect(!channel.send(EventChannel.Event("late")))
  }

  @Test func clientsThatGoAwayEndTheirStreams() throws {
    let channel = EventChannel(heartbeatMilliseconds: 50)
    let server = try Server { _ in channel.response }
    do {
      let connection = try RawConnection(port: server.port)
      connection.send("GET /events HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n")
      _ = connection.receive(until: "\r\n\r\n")
    }
    let start = ContinuousClock.now
    while !channel.isClosed, ContinuousClock.now - start < .seconds(10) { _ = channel.send(EventChannel.Event("x")) }
    #expect(channel.isClosed)
    #expect(try server.exchange(Self.get("/", server.port)).status == 200)
  }

  @Test func twoHundredIdleConnectionsStopNoClient() throws {
    let server = try Server { _ in .text("here") }
    let idle = try (0..<200).map { number in
      let connection = try RawConnection(port: server.port)
      if number.isMultiple(of: 2) { connection.send("GET / HTTP/1.1\r\nHost:") }
      return connection
    }
    let start = ContinuousClock.now
    #expect(try server.exchange(Self.get("/", server.port)).body == "here")
    #expect(ContinuousClock.now - start < .seconds(10))
    #expect(idle.count == 200)
  }

  @Test func aClientWithManyIdleConnectionsLosesTheOldestAndLocksNoOtherOut() throws {
    var options = ServerOptions()
    options.addressLimit = 8
    let server = try Server(options) { _ in .text("here") }
    let idle = try (0..<30).map { _ in try RawConnection(port: server.port) }
    #expect(try server.exchange(Self.get("/", server.port)).body == "here")
    #expect(idle[0].isClosed(withinMilliseconds: 5000))
    #expect(!idle[29].isClosed(withinMilliseconds: 100))
    let ended = idle.count { $0.isClosed(withinMilliseconds: 10) }
    #expect(ended >= 22)
  }

  @Test func aConnectionThatIsBeingAnsweredIsNotEndedForANewOne() throws {
    var options = ServerOptions()
    options.connectionLimit = 4
    let (begun, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let server = try Server(options) { request in
      if request.target.path == "/slow" {
        begun.signal()
        goesOn.wait()
      }
      return .text("here")
    }
    let slow = try RawConnection(port: server.port)
    slow.send(Self.get("/slow", server.port))
    begun.wait()
    let idle = try (0..<20).map { _ in try RawConnection(port: server.port) }
    #expect(try server.exchange(Self.get("/", server.port)).body == "here")
    goesOn.signal()
    #expect(slow.receiveAll().hasSuffix("here"))
    #expect(idle.count == 20)
  }

  @Test func idleConnectionsGoSoonerWhereManyAreOpen() throws {
    var options = ServerOptions()
    options.connectionLimit = 8
    options.pressedHeaderSeconds = 1
    options.idleSeconds = 30
    options.headerSeconds = 30
    let server = try Server(options) { _ in .text("here") }
    let idle = try (0..<6).map { _ in try RawConnection(port: server.port) }
    let ended = idle.count { $0.isClosed(withinMilliseconds: 4000) }
    #expect(ended >= 2)
  }

  @Test func slowHeadersAndBodiesAreCutOff() throws {
    var options = ServerOptions()
    options.headerSeconds = 1
    options.bodySeconds = 1
    let server = try Server(options) { _ in .text("here") }
    for beginning in [
      "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nContent-Length: 900\r\n\r\n",
    ] {
      let connection = try RawConnection(port: server.port)
      let start = ContinuousClock.now
      connection.send(beginning)
      // A byte now and then, so that it is never idle.
      var isOpen = true
      while isOpen, ContinuousClock.now - start < .seconds(20) {
        connection.send("a")
        isOpen = !connection.isClosed(withinMilliseconds: 100)
      }
      #expect(!isOpen)
    }
    #expect(try server.exchange(Self.get("/", server.port)).body == "here")
  }

  @Test func rangesAreServed() throws {
    let bytes = BytesInMemory((0..<100_000).map { UInt8($0 % 64 + 32) })
    let tag = try #require(EntityTag("abc"))
    let server = try Server { request in .ranges(bytes, tag: tag, type: "application/octet-stream", for: request) }
    let whole = try server.exchange(Self.get("/", server.port))
    #expect(whole.status == 200)
    #expect(whole.body.utf8.count == 100_000)
    #expect(whole.header("ETag") == "\"abc\"" && whole.header("Accept-Ranges") == "bytes")
    let part = try server.exchange(Self.get("/", server.port, "Range: bytes=99990-\r\nIf-Range: \"abc\"\r\n"))
    #expect(part.status == 206)
    #expect(part.header("Content-Range") == "bytes 99990-99999/100000")
    #expect(part.header("Content-Length") == "10")
    #expect(Array(part.body.utf8) == Array(bytes.bytes.suffix(10)))
    let none = try server.exchange(Self.get("/", server.port, "Range: bytes=100000-\r\n"))
    #expect(none.status == 416)
    #expect(none.header("Content-Range") == "bytes */100000")
    let changed = try server.exchange(Self.get("/", server.port, "Range: bytes=0-1\r\nIf-Range: \"old\"\r\n"))
    #expect(changed.status == 200)
    #expect(try server.exchange(Self.get("/", server.port, "If-None-Match: W/\"abc\"\r\n")).status == 304)
  }

  @Test func nothingGetsIntoAHeaderLine() throws {
    let server = try Server { _ in
      var response = Response.text("x").downloaded(as: "../a\r\nX-Bad: 1\"\u{202E}é.csv")
      response.headers.add("X-Own", "a\r\nX-Bad: 2")
      response.headers.add("Bad Name", "x")
      return response
    }
    let response = try server.exchange(Self.get("/", server.port))
    #expect(response.status == 200)
    #expect(response.header("X-Bad") == nil && response.header("Bad Name") == nil)
    let name = try #require(response.header("Content-Disposition"))
    #expect(name.hasPrefix("attachment; filename=\"_") && name.contains("filename*=UTF-8''_"))
    #expect(!name.contains("/") && !name.contains("\r"))
  }
}
