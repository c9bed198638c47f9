import HTTPServer
import ObjectStorage
import Platform
import StorageServers
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// The network itself, against a server of this machine.
struct TransportTests {
  /// How many seconds the server waits for its client, which is not what these tests are about.
  private static let patience = 600

  private static func server(
    _ handler: @escaping @Sendable (Request) -> Response
  ) throws -> Server {
    var options = ServerOptions()
    options.bodyLimit = 64 << 20
    // Foundation waits for threads of its pool, for longer on a busy machine than a server usually bears.
    options.idleSeconds = patience
    options.headerSeconds = patience
    options.bodySeconds = patience
    return try Server(options, handler: handler)
  }

  private static func address(_ port: UInt16, _ path: String = "/") throws -> ReceiverAddress {
    try ReceiverAddress("http://127.0.0.1:\(port)\(path)")
  }

  @Test func requestsArriveAsTheyAre() throws {
    let seen = Mutex<[Request]>([])
    let server = try Self.server { request in
      seen.withLock { $0.append(request) }
      return Response(
        Status(rawValue: 204),
        headers: ["X-Test": "yes", "Set-Cookie": "a=b", "Upload-Offset": "\(request.body.count)"])
    }
    let transport = CurlTransport()
    let part = [UInt8](repeating: 7, count: UploadRequest.partLimit)
    for (method, body) in [
      (UploadRequest.Method.options, UploadRequest.Body.none), (.post, .bytes([])), (.head, .none),
      (.patch, .bytes(part)),
      (.put, .bytes([1, 2, 3])), (.delete, .none), (.get, .none),
    ] {
      let fields = ["Authorization": "Bearer abc", "Upload-Metadata": "filename YQ==", "Tus-Resumable": "1.0.0"]
      let response = try transport.send(
        UploadRequest(method, try Self.address(server.port, "/x?y=1"), fields: fields, body: body)
      ) { _ in }
      #expect(response.status == 204 && response["x-test"] == "yes")
    }
    let requests = seen.withLock { $0 }
    #expect(requests.map(\.method) == [.options, .post, .head, .patch, .put, .delete, .get])
    for request in requests {
      #expect(request.headers["Authorization"] == "Bearer abc")
      #expect(request.headers["Upload-Metadata"] == "filename YQ==")
      #expect(request.headers["Cookie"] == nil)
      #expect(request.headers["Transfer-Encoding"] == nil)
      #expect(request.query["y"] == "1")
    }
    #expect(requests[1].headers["Content-Length"] == "0")
    #expect(requests[3].headers["Content-Length"] == "\(part.count)")
    #expect(requests[3].body == part)
    #expect(requests[4].body == [1, 2, 3])
  }

  @Test func filesGoWithTheirLength() throws {
    let folder = try TemporaryFolder()
    let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    let path = try folder.write(bytes, to: "file")
    let seen = Mutex<(length: String?, isWhole: Bool)>((nil, false))
    let server = try Self.server { request in
      seen.withLock { $0 = (request.headers["Content-Length"], request.body == bytes) }
      return .text("ok")
    }
    let most = Mutex<Int64>(0)
    let response = try CurlTransport().send(
      UploadRequest(.put, try Self.address(server.port), body: .file(path, size: Int64(bytes.count)))
    ) { sent in most.withLock { $0 = max($0, sent) } }
    #expect(response.body == Array("ok".utf8))
    #expect(seen.withLock { $0.length } == "3000000" && seen.withLock { $0.isWhole })
    #expect(most.withLock { $0 } == 3_000_000)
  }

  @Test func redirectionsAreToldAndNotFollowed() throws {
    let hits = Mutex(0)
    let target = try Self.server { _ in
      hits.withLock { $0 += 1 }
      return .text("here")
    }
    let place = "http://127.0.0.1:\(target.port)/there"
    for status in [301, 302, 303, 307, 308] {
      let server = try Self.server { _ in Response(Status(rawValue: status), headers: ["Location": place]) }
      for method in [UploadRequest.Method.get, .post, .patch] {
        let response = try CurlTransport().send(
          UploadRequest(
            method, try Self.address(server.port), fields: ["Authorization": "Bearer abc"],
            body: method == .get ? .none : .bytes([1]))
        ) { _ in }
        #expect(response.status == status && response["Location"] == place)
      }
    }
    #expect(hits.withLock { $0 } == 0)
  }

  @Test func longAnswersAreCutOff() throws {
    let server = try Self.server { request in
      if request.target.path == "/chunks" {
        return Response(body: .chunks(ChunkSource { [UInt8](repeating: 65, count: 10_000) }))
      }
      return Response(body: .bytes([UInt8](repeating: 65, count: 5_000_000)))
    }
    let transport = CurlTransport()
    for path in ["/", "/chunks"] {
      let response = try transport.send(UploadRequest(.get, try Self.address(server.port, path))) { _ in }
      #expect(response.status == 200 && response.isCutOff && response.body.count <= UploadResponse.bodyLimit)
    }
    // The session is none the worse for it.
    #expect(try transport.send(UploadRequest(.head, try Self.address(server.port))) { _ in }.status == 200)
  }

  @Test func noReceiverThere() throws {
    let port: UInt16
    do { port = try Self.server { _ in .text("") }.port }
    let address = try Self.address(port)
    let error = #expect(throws: TransportError.self) {
      try CurlTransport().send(UploadRequest(.head, address)) { _ in }
    }
    #expect(error?.kind == .connection)
    let unknown = try ReceiverAddress("https://does-not-exist.invalid/")
    let other = #expect(throws: TransportError.self) {
      try CurlTransport().send(UploadRequest(.head, unknown)) { _ in }
    }
    #expect(other?.kind == .connection)
  }

  @Test func whoSaysNothingIsGivenUp() throws {
    let channel = EventChannel(heartbeatMilliseconds: 60_000)
    let silent = try Self.server { _ in channel.response }
    let address = try Self.address(silent.port)
    // The server keeps the connection for as long as the channel is there: that this returns at all is the client's doing.
    // When it does is not measured, because the queues that wake it are shared with all other tests.
    let error = #expect(throws: TransportError.self) {
      try CurlTransport(idleSeconds: 1).send(UploadRequest(.get, address)) { _ in }
    }
    #expect(error?.kind == .connection)
  }

  @Test("An answer that comes byte by byte is given up", arguments: ["X", "HTTP/1.1 200 OK\r\nX-Long: "])
  func tricklingAnswer(start: String) throws {
    let server = try ScriptedServer([], then: .compute { _ in .drip(start, pause: 100, count: 600) })
    defer { server.stop() }
    let error = try #require(throws: TransportError.self) {
      try CurlTransport(answerSeconds: 1).send(UploadRequest(.get, try Self.address(server.port))) { _ in }
    }
    #expect(error.kind == .connection)
  }

  @Test(
    "An answer that ends within its header is none",
    arguments: ["XXXX", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX-Long: a", "HTTP/1.1 100 Continue\r\n\r\n"])
  func cutAnswer(text: String) throws {
    let server = try ScriptedServer([], then: .raw(text))
    defer { server.stop() }
    let error = try #require(throws: TransportError.self) {
      try CurlTransport().send(UploadRequest(.get, try Self.address(server.port))) { _ in }
    }
    #expect(error.kind == .connection)
  }

  @Test func aBundleGoesOverTheNetwork() throws {
    let desk = try SendingDesk(size: 5 << 20)
    let fake = desk.receiver
    let server = try Self.server { request in
      let fields = Dictionary(request.headers.fields.map { ($0.name, $0.value) }) { first, _ in first }
      guard let method = UploadRequest.Method(rawValue: request.method.rawValue),
        let address = try? ReceiverAddress("http://127.0.0.1:1\(request.target.path)")
      else { return Response(.badRequest) }
      let answer = fake.respond(UploadRequest(method, address, fields: fields), request.body)
      var headers = HeaderFields()
      for (name, value) in answer.fields { headers.add(name, value) }
      return Response(Status(rawValue: answer.status), headers: headers, body: .bytes(answer.body))
    }
    let entry = try desk.add(to: "http://127.0.0.1:\(server.port)/inbox/uploads")
    let sender = Sender(of: desk.outbox(), over: CurlTransport())
    let outcome = try sender.send(entry.id, as: try AccessToken("abc"))
    try desk.expectArrived()
    #expect(outcome.receipt.isReceivers && outcome.receipt.id == "u1")
    let put = try desk.add(to: "http://127.0.0.1:\(server.port)/put", by: .put)
    #expect(try sender.send(put.id).receipt.id == "put-1")
    #expect(fake.state.withLock { $0.puts } == [try desk.bytes()])
  }
}
