import Backup
import ObjectStorage
import Platform
import StorageServers
import Testing

/// The client against a server that answers as it is told to.
struct ClientTests {
  /// A client of a scripted server that waits for nothing and notes for how long it would.
  final class Desk {
    let server: ScriptedServer
    let client: S3Client
    let pauses: Mutex<[Int]>

    init(
      _ steps: [ScriptedServer.Step], then last: ScriptedServer.Step? = nil,
      limits: (inout S3RetryPolicy) -> Void = { _ in }
    ) throws {
      server = try ScriptedServer(steps, then: last)
      let pauses = Mutex<[Int]>([])
      self.pauses = pauses
      var settings = S3Settings(
        endpoint: S3Endpoint(isEncrypted: false, host: "127.0.0.1", port: Int(server.port)), region: "us-east-1",
        usesPathStyle: true, credentials: S3Credentials(accessKey: "name", secretKey: "hidden"))
      limits(&settings.retries)
      client = S3Client(
        "bucket", settings,
        waiting: S3Waiting(
          now: { Timestamp(secondsSince1970: 1_700_000_000) }, pause: { time in pauses.withLock { $0.append(time) } },
          random: { $0 }))
    }

    deinit { server.stop() }
  }

  private static func error(_ status: Int, _ code: String) -> ScriptedServer.Step {
    .text(status, "<Error><Code>\(code)</Code><Message>hidden</Message></Error>")
  }

  // MARK: Requests

  @Test func anObjectIsWrittenWithItsDigests() throws {
    let desk = try Desk([.answer(200)])
    try desk.client.put("a/b c", Array("Welcome".utf8)[...], when: .absent)
    let request = try #require(desk.server.received.first)
    #expect(request.method == "PUT")
    #expect(request.target == "/bucket/a/b%20c")
    #expect(request.body == Array("Welcome".utf8))
    #expect(request.fields["content-length"] == "7")
    #expect(request.fields["transfer-encoding"] == nil)
    #expect(request.fields["expect"] == nil)
    #expect(request.fields["if-none-match"] == "*")
    // By md5sum and sha256sum.
    #expect(request.fields["content-md5"] == "gyGKw0wYNMJngf5L3pGO5A==")
    #expect(
      request.fields["x-amz-content-sha256"] == "0e2226b5235f0ff94a276eb4d07a3bfea74b7e3b8b85e9efca6c18430f041bf8")
    let signed = try #require(request.fields["authorization"])
    #expect(signed.contains("SignedHeaders=content-md5;host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-meta-"))
    #expect(!request.fields.values.contains { $0.contains("hidden") })
  }

  @Test func oneConnectionServesManyRequests() throws {
    let desk = try Desk([], then: .answer(200))
    for number in 0..<20 { try desk.client.put("\(number)", [1]) }
    #expect(desk.server.received.count == 20)
    #expect(desk.client.connections == 1)
  }

  @Test func rangesAreReadAndCompared() throws {
    let body = Array("cdef".utf8)
    let desk = try Desk([
      .answer(206, fields: ["Content-Range": "bytes 2-5/8"], body: body),
      .answer(206, fields: ["Content-Range": "bytes 6-7/8"], body: Array("gh".utf8)),
      .answer(416),
      .answer(200, body: body),
    ])
    #expect(try desk.client.get("k", at: 2, length: 4) == body)
    #expect(try desk.client.get("k", at: 6, length: 100) == Array("gh".utf8))
    #expect(try desk.client.get("k", at: 8, length: 4) == [])
    #expect(try desk.client.get("k", at: 0, length: 4) == body)
    #expect(try desk.client.get("k", at: 0, length: 0) == [])
    #expect(
      desk.server.received.map { $0.fields["range"] } == [
        "bytes=2-5", "bytes=6-105", "bytes=8-11", "bytes=0-3",
      ])
  }

  @Test(arguments: [
    ScriptedServer.Step.answer(206, fields: ["Content-Range": "bytes 0-3/8"], body: Array("abcd".utf8)),
    .answer(206, fields: ["Content-Range": "bytes 2-5/8"], body: Array("cde".utf8)),
    .answer(206, fields: ["Content-Range": "bytes 2-4/8"], body: Array("cde".utf8)),
    .answer(206, fields: ["Content-Range": "bytes 9-2/-8"], body: Array("cdef".utf8)),
    .answer(206, fields: ["Content-Range": "bytes 2-5/*"], body: Array("cdef".utf8)),
    .answer(206, body: Array("cdef".utf8)), .answer(200, body: Array("abcd".utf8)), .answer(204),
  ])
  func otherRangesAreNoAnswer(step: ScriptedServer.Step) throws {
    let desk = try Desk([], then: step)
    let error = #expect(throws: BackupError.self) { try desk.client.get("k", at: 2, length: 4) }
    #expect(error?.code == "s3-answer")
    #expect(desk.server.received.count == desk.client.settings.retries.attempts)
  }

  @Test func aWholeObjectForARangeIsNotTaken() throws {
    let desk = try Desk([], then: .answer(200, body: [UInt8](repeating: 1, count: 1 << 22)))
    let error = #expect(throws: BackupError.self) { try desk.client.get("k", at: 0, length: 4) }
    #expect(error?.code == "s3-answer")
    #expect(desk.server.received.count == 1)
  }

  @Test func objectsAreLookedAt() throws {
    let desk = try Desk([
      .answer(200, fields: ["Content-Length": "12", "Last-Modified": "Fri, 24 May 2013 00:00:00 GMT"]), .answer(404),
      Self.error(404, "NoSuchKey"), .answer(204),
    ])
    let facts = try #require(try desk.client.head("k"))
    #expect(facts.bytes == 12)
    #expect(facts.modified == Timestamp("2013-05-24T00:00:00Z"))
    #expect(try desk.client.head("k") == nil)
    try desk.client.delete("k")
    try desk.client.delete("k")
  }

  // MARK: Trying again

  @Test func whatMayPassIsTriedAgainAfterLongerPauses() throws {
    let desk = try Desk([
      Self.error(503, "SlowDown"), .cut, .raw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"),
      Self.error(500, "InternalError"),
      .answer(429), .answer(200, body: Array("abc".utf8)),
    ])
    #expect(try desk.client.get("k", at: 0, length: 20) == Array("abc".utf8))
    #expect(desk.server.received.count == 6)
    // On the connection that the server cut libcurl had been before, so that it tried anew by itself.
    #expect(desk.pauses.withLock { $0 } == [200, 400, 800, 1600])
  }

  @Test func aServerSaysForHowLongItIsNotToBeAsked() throws {
    let desk = try Desk([
      .answer(503, fields: ["Retry-After": "7"]), .answer(503, fields: ["Retry-After": "100000"]),
      .answer(503, fields: ["Retry-After": "-3"]), .answer(200, body: Array("abc".utf8)),
    ])
    #expect(try desk.client.get("k", at: 0, length: 20) == Array("abc".utf8))
    #expect(desk.pauses.withLock { $0 } == [7000, 30_000, 800])
  }

  @Test func anEmptyObjectHasADigestToo() throws {
    let desk = try Desk([.answer(200)])
    try desk.client.put("k", [])
    // By md5sum of nothing.
    #expect(desk.server.received.first?.fields["content-md5"] == "1B2M2Y8AsgTpgAmY7PhCfg==")
  }

  @Test func credentialsThatHaveEndedAreReadAnew() throws {
    let server = try ScriptedServer([
      .answer(200), Self.error(400, "ExpiredToken"), .answer(200), .answer(400), .answer(403),
    ])
    defer { server.stop() }
    var settings = S3Settings(
      endpoint: S3Endpoint(isEncrypted: false, host: "127.0.0.1", port: Int(server.port)), region: "us-east-1",
      usesPathStyle: true, credentials: S3Credentials(accessKey: "first", secretKey: "hidden"))
    settings.retries.attempts = 3
    let client = S3Client("bucket", settings) { S3Credentials(accessKey: "second", secretKey: "hidden") }
    try client.put("k", [1])
    try client.put("k", [2])
    // Where they are the same as before, another try is of no use.
    #expect(throws: BackupError.self) { try client.head("k") }
    #expect(throws: BackupError.self) { try client.put("k", [3]) }
    let names = server.received.map { ($0.fields["authorization"] ?? "").contains("Credential=first/") }
    #expect(names == [true, true, false, false, false])
  }

  @Test func itIsGivenUpAfterSomeAttempts() throws {
    for (step, code) in [
      (Self.error(503, "SlowDown"), "s3-server"), (.cut, "s3-unreachable"), (Self.error(429, "x"), "s3-server"),
    ] as [(ScriptedServer.Step, String)] {
      let desk = try Desk([], then: step) { $0.attempts = 3 }
      let error = #expect(throws: BackupError.self) { try desk.client.put("k", [1]) }
      #expect(error?.code == code)
      #expect(error?.isEnvironmental == true)
      #expect(desk.server.received.count == 3)
    }
  }

  @Test func pausesAreBounded() {
    let retries = S3RetryPolicy()
    #expect(retries.pause(after: 1) == 200)
    #expect(retries.pause(after: 30) == 10_000)
    #expect((0..<200).map { _ in S3Waiting.machine.random(50) }.allSatisfy { (0...50).contains($0) })
  }

  static let refusals: [(Int, String, String)] = [
    (403, "AccessDenied", "s3-access"), (403, "SignatureDoesNotMatch", "s3-credentials"),
    (403, "InvalidAccessKeyId", "s3-credentials"), (400, "ExpiredToken", "s3-credentials"),
    (403, "RequestTimeTooSkewed", "s3-clock"), (404, "NoSuchBucket", "s3-no-bucket"),
    (404, "NoSuchKey", "s3-not-found"),
    (301, "PermanentRedirect", "s3-region"), (400, "AuthorizationHeaderMalformed", "s3-region"),
    (400, "BadDigest", "s3-checksum"), (501, "NotImplemented", "s3-unsupported"), (400, "InvalidRequest", "s3-answer"),
    (412, "PreconditionFailed", "s3-precondition"), (401, "x", "s3-credentials"), (418, "?!", "s3-answer"),
  ]

  @Test(arguments: refusals)
  func refusalsAreFinalAndSayWhatToDo(status: Int, word: String, code: String) throws {
    let desk = try Desk([Self.error(status, word)], then: .cut)
    let error = #expect(throws: BackupError.self) { try desk.client.get("k", at: 0, length: 100) }
    #expect(error?.code == code)
    #expect(error?.status == status)
    #expect(desk.server.received.count == 1)
    // What the server says besides its word may hold anything.
    #expect(error?.description.contains("hidden") == false)
    #expect(error?.hint.isEmpty == false)
  }

  @Test func theRegionOfTheBucketIsTold() throws {
    let desk = try Desk([.answer(301, fields: ["x-amz-bucket-region": "eu-north-1"])])
    let error = #expect(throws: BackupError.self) { try desk.client.list("") }
    #expect(error?.hint.contains("AWS_REGION=eu-north-1") == true)
  }

  @Test func aServerThatIsNotThereIsUnreachable() throws {
    let desk = try Desk([]) { $0.attempts = 2 }
    desk.server.stop()
    let error = #expect(throws: BackupError.self) { try desk.client.head("k") }
    #expect(error?.code == "s3-unreachable")
    #expect(desk.pauses.withLock { $0.count } == 1)
  }

  @Test(.timeLimit(.minutes(5))) func aStalledServerIsNotWaitedFor() throws {
    let head = "HTTP/1.1 206 Word\r\ncontent-length: 100000\r\ncontent-range: bytes 0-99999/100000\r\n\r\n"
    let desk = try Desk(
      [.compute { _ in .drip(head, pause: 30_000, count: 1) }],
      then: .drip("HTTP/1.1 206 Word\r\n", pause: 30_000, count: 1)
    ) {
      $0.attempts = 2
      $0.stalling = 1
    }
    let error = #expect(throws: BackupError.self) { try desk.client.get("k", at: 0, length: 100_000) }
    #expect(error?.code == "s3-time-out")
    #expect(desk.server.received.count == 2)
  }

  // MARK: Conditions

  @Test func aConditionThatIsNotMetIsSaid() throws {
    let desk = try Desk([Self.error(412, "PreconditionFailed"), .answer(200)])
    let error = #expect(throws: BackupError.self) { try desk.client.put("k", [1], when: .absent) }
    #expect(error?.code == "s3-precondition")
    #expect(desk.server.received.map(\.method) == ["PUT", "HEAD"])
  }

  @Test(arguments: [true, false])
  func aRepeatedWriteKnowsItsOwnObject(isOwn: Bool) throws {
    // The first answer is lost, so that the second attempt finds an object: its own, or that of another.
    let writer = Mutex<String?>(nil)
    let desk = try Desk([
      .compute { request in
        writer.withLock { $0 = request.fields["x-amz-meta-lazaret-write"] }
        return .cut
      },
      Self.error(412, "PreconditionFailed"),
      .compute { _ in
        .answer(200, fields: ["x-amz-meta-lazaret-write": isOwn ? writer.withLock { $0 ?? "" } : "other"])
      },
    ])
    if isOwn {
      try desk.client.put("k", [1], when: .absent)
    } else {
      let error = #expect(throws: BackupError.self) { try desk.client.put("k", [1], when: .absent) }
      #expect(error?.code == "s3-precondition")
    }
    #expect(desk.server.received.map(\.method) == ["PUT", "PUT", "HEAD"])
  }

  @Test func aServerWithoutConditionsIsRefused() throws {
    let desk = try Desk([Self.error(501, "NotImplemented")])
    let error = #expect(throws: BackupError.self) { try desk.client.put("k", [1], when: .absent) }
    #expect(error?.code == "s3-unsupported")
    #expect(error?.detail.contains("conditionally") == true)
  }

  // MARK: Hostile answers

  @Test func anAnswerWithoutEndIsNotTaken() throws {
    let line = "x: " + String(repeating: "a", count: 1000) + "\r\n"
    for step in [
      ScriptedServer.Step.answer(200, body: [UInt8](repeating: 60, count: 9 << 20)),
      .drip("HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 300), pause: 0, count: 10),
      .raw("HTTP/1.1 200 OK\r\nx: " + String(repeating: "a", count: 200_000) + "\r\n\r\n"),
      .raw("no answer at all\r\n\r\n"), .raw("HTTP/9.9 200 OK\r\n\r\n"),
      .raw("HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n"),
    ] {
      let desk = try Desk([], then: step) { $0.attempts = 2 }
      let error = #expect(throws: BackupError.self) { try desk.client.list("") }
      #expect(["s3-answer", "s3-unreachable"].contains(error?.code))
    }
  }

  @Test(arguments: ["http://127.0.0.1:1/other", "file:///etc/passwd"])
  func redirectionsAreNotFollowed(location: String) throws {
    let desk = try Desk([.answer(302, fields: ["location": location])])
    #expect(throws: BackupError.self) { try desk.client.get("k", at: 0, length: 5) }
    #expect(desk.server.received.count == 1)
  }
}

extension ScriptedServer.Step: CustomTestStringConvertible {
  var testDescription: String {
    switch self {
    case .answer(let status, let fields, let body): "\(status) \(fields) of \(body.count)"
    case .raw: "raw"
    case .cut: "cut"
    case .drip: "drip"
    case .compute: "compute"
    }
  }
}
