import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// A bundle sent in parts, and everything that a receiver and a line can do meanwhile.
struct TusTests {
  private let system = FileSystem()

  @Test func itArrivesInParts() throws {
    let desk = try SendingDesk()
    let token = desk.folder.appending("token")
    try desk.folder.write("s3cret-token\n", to: "token")
    let entry = try desk.add(tokenFile: token)
    let shown = Mutex<[SendingProgress]>([])
    let outcome = try desk.sender().send(entry.id) { progress in shown.withLock { $0.append(progress) } }
    try desk.expectArrived()
    #expect(!outcome.wasThere)
    #expect(outcome.receipt.id == "u1")
    #expect(outcome.receipt.isReceivers)
    #expect(outcome.receipt.date == "2026-11-21T10:20:30Z")
    #expect(outcome.receipt.receiver == "https://support.example.com")
    let patches = desk.receiver.requests.filter { $0.method == .patch }
    #expect(patches.count >= 4)
    for request in desk.receiver.requests { #expect(request.fields["Authorization"] == "Bearer s3cret-token") }
    for request in patches {
      #expect(request.fields["Content-Type"] == "application/offset+octet-stream")
      #expect(request.fields["Upload-Checksum"]?.hasPrefix("sha256 ") == true)
      #expect(request.fields["Tus-Resumable"] == "1.0.0")
    }
    let post = try #require(desk.receiver.requests.first { $0.method == .post })
    let metadata = try #require(UploadMetadata(post.fields["Upload-Metadata"] ?? "-"))
    #expect(metadata["sha256"] == entry.sha256)
    #expect(metadata["filename"] == desk.bundle.lastComponent?.string)
    #expect(metadata["filetype"] == "application/gzip")
    #expect(metadata["level"] == "scrubbed")
    let progress = shown.withLock { $0 }
    #expect(progress.last == SendingProgress(phase: .finishing, done: entry.bytes, total: entry.bytes))
    #expect(progress.map(\.done) == progress.map(\.done).sorted())
    let sent = try desk.outbox().entry(entry.id)
    #expect(sent.state == .sent && sent.receipt == outcome.receipt && sent.upload == nil)
    #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) == nil)
    #expect(try system.status(of: desk.bundle) != nil)

    // The same again: the same receipt, and nothing goes out.
    let requests = desk.receiver.requests.count
    let again = try desk.add()
    #expect(again.id == entry.id)
    let second = try desk.sender().send(again.id)
    #expect(second.receipt == outcome.receipt && second.wasThere)
    #expect(desk.receiver.requests.count == requests)

    // From a home that knows nothing of it the receiver knows it again.
    let other = Outbox(home: desk.folder.appending("Other"), surroundings: desk.time.surroundings())
    let third = try desk.sender(other).send(try desk.add(in: other).id)
    #expect(third.receipt.id == outcome.receipt.id && third.wasThere)
    #expect(desk.receiver.state.withLock { $0.received } == entry.bytes)

    // The token is in no file of the outbox.
    for file in try system.descendants(of: desk.outbox().path).files {
      let text = String(decoding: try system.contents(of: file.path, limit: 1 << 20), as: UTF8.self)
      #expect(!text.contains("s3cret"))
    }
  }

  @Test func aForeignReceiverNeedsToDoNoMoreThanTus() throws {
    let desk = try SendingDesk(isOurs: false)
    let outcome = try desk.sender().send(try desk.add().id)
    try desk.expectArrived()
    #expect(outcome.receipt.id == "u1" && !outcome.receipt.isReceivers)
    #expect(outcome.receipt.sha256 == FileDigest(of: try desk.bytes()).hexadecimal)
    #expect(desk.receiver.requests.allSatisfy { $0.fields["Upload-Checksum"] == nil })
  }

  @Test func brokenLinesAreGoneOnFrom() throws {
    let desk = try SendingDesk(size: 200_000)
    let entry = try desk.add()
    desk.receiver.order(.options, .unreachable)
    desk.receiver.order(.post, .unreachable, .unreachable)
    desk.receiver.order(.patch, .cut(0.3), .cut(0), .cut(1), .unreachable, .cut(0.99), .cut(0.5))
    desk.receiver.order(.head, .unreachable, .answer(UploadResponse(503, fields: ["Retry-After": "250"])))
    desk.receiver.order(.get, .unreachable)
    let outcome = try desk.sender(waits: true).send(entry.id)
    try desk.expectArrived()
    #expect(outcome.receipt.bytes == entry.bytes)
    let sent = try desk.outbox().entry(entry.id)
    #expect(sent.state == .sent && sent.receipt == outcome.receipt && sent.tries > 0 && sent.lastError == nil)
    #expect(desk.time.pauses.contains { $0 >= .seconds(250) })
    // What had arrived was not sent again.
    #expect(desk.receiver.state.withLock { $0.received } == entry.bytes)
  }

  @Test func twentyCutsInARowAreNoneTooMany() throws {
    for seed in UInt64(1)...5 {
      let desk = try SendingDesk(size: 200_000)
      var generator = SeededGenerator(seed: seed)
      for _ in 0..<20 { desk.receiver.order(.patch, .cut(Double.random(in: 0.01...1, using: &generator))) }
      _ = try desk.sender().send(try desk.add().id)
      try desk.expectArrived("seed \(seed)")
    }
  }

  @Test func anAnswerThatWasLostIsAskedForAgain() throws {
    // The announcement arrived and its answer did not: the receiver has an upload that no sender knows, and gets another.
    let desk = try SendingDesk()
    desk.receiver.order(.post, .cut(1))
    _ = try desk.sender().send(try desk.add().id)
    try desk.expectArrived()
  }

  @Test func patienceHasAnEndAndTheEntryWaits() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    for _ in 0..<9 { desk.receiver.order(.patch, .unreachable) }
    let error = try desk.failure(entry.id)
    #expect(error.code == "send-unreachable" && error.isEnvironmental)
    let waiting = try desk.outbox().entry(entry.id)
    #expect(waiting.state == .waiting && waiting.tries == 6 && waiting.lastError == "send-unreachable")
    #expect(waiting.upload != nil && waiting.nextTry != nil)
    #expect(desk.time.pauses.count == 5)
    // Another process goes on; one that waits has no end of patience.
    _ = try desk.sender(waits: true).send(entry.id)
    try desk.expectArrived()
    #expect(desk.receiver.methods.count { $0 == "POST" } == 1)
  }

  @Test func aLongPauseIsLeftToAnotherTime() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    desk.receiver.order(.post, .answer(UploadResponse(429, fields: ["Retry-After": "7200"])))
    let error = try desk.failure(entry.id)
    #expect(error.code == "send-unreachable")
    #expect(try desk.outbox().entry(entry.id).nextTry == "2026-11-21T12:11:12Z")
    #expect(desk.time.pauses.isEmpty)
  }

  static let refusals: [(Int, String)] = [
    (400, "send-refused"), (401, "send-unauthorized"), (403, "send-refused"), (404, "send-refused"),
    (412, "send-refused"),
    (413, "send-too-large"), (415, "send-refused"), (422, "send-refused"), (200, "send-answer"), (304, "send-answer"),
  ]

  @Test(arguments: refusals)
  func refusalsAreNotTriedAgain(status: Int, code: String) throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    let problem = "{\"title\": \"no\", \"detail\": \"because\\u001b[31m of this\"}"
    desk.receiver.order(
      .post,
      .answer(
        UploadResponse(status, fields: ["Content-Type": "application/problem+json"], body: Array(problem.utf8))))
    let error = try desk.failure(entry.id)
    #expect(error.code == code && !error.isEnvironmental)
    if status >= 400 { #expect(error.detail.contains("because\\u{1b}[31m of this")) }
    #expect(desk.receiver.methods == ["OPTIONS", "POST"])
    let failed = try desk.outbox().entry(entry.id)
    #expect(failed.state == .failed && failed.lastError == code)
    // A user who asks gets another try.
    _ = try desk.sender().send(entry.id)
    try desk.expectArrived()
  }

  static let passing = [408, 409, 423, 425, 429, 460, 500, 502, 503, 504, 507]

  @Test(arguments: passing)
  func whatMayPassIsTriedAgain(status: Int) throws {
    let desk = try SendingDesk()
    desk.receiver.order(.patch, .answer(UploadResponse(status)))
    _ = try desk.sender().send(try desk.add().id)
    try desk.expectArrived()
  }

  @Test func aBundleThatIsTooLargeIsNotEvenAnnounced() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    desk.receiver.order(
      .options, .answer(UploadResponse(204, fields: ["Tus-Version": "1.0.0", "Tus-Max-Size": "1000"])))
    let error = try desk.failure(entry.id)
    #expect(error.code == "send-too-large" && error.detail.contains("1000"))
    #expect(desk.receiver.methods == ["OPTIONS"])
  }

  @Test func whatAReceiverForgotIsAnnouncedAnew() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    desk.receiver.order(.patch, .cut(0.5), .forget, .forget)
    _ = try desk.sender().send(entry.id)
    try desk.expectArrived()
    #expect(desk.receiver.methods.count { $0 == "POST" } == 3)
    // But not for ever.
    let other = try SendingDesk()
    let second = try other.add()
    for _ in 0..<20 { other.receiver.order(.patch, .forget) }
    #expect(try other.failure(second.id).code == "send-answer")
  }

  @Test func anUploadThatExpiredIsAnnouncedAnew() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    for _ in 0..<8 { desk.receiver.order(.patch, .unreachable) }
    _ = try desk.failure(entry.id)
    let waiting = try desk.outbox().entry(entry.id)
    #expect(waiting.expires == "2026-11-22T10:11:12Z" && waiting.upload?.hasSuffix("/u1") == true)
    desk.time.pass(3 * 86_400)
    desk.receiver.order(.head, .answer(UploadResponse(410)))
    _ = try desk.sender().send(entry.id)
    #expect(desk.receiver.methods.count { $0 == "POST" } == 2)
    try desk.expectArrived()
  }

  static let lies = ["-1", "0", "40", "999999999999", "", "nonsense", "99999999999999999999999999", "1e3", "+5"]

  @Test(arguments: lies)
  func offsetsAreNotBelieved(text: String) throws {
    // Of a part: the receiver is asked again what it has.
    let desk = try SendingDesk()
    desk.receiver.order(
      .patch, .answer(UploadResponse(204)), .lie(UploadResponse(204, fields: ["Upload-Offset": text])))
    _ = try desk.sender().send(try desk.add().id)
    try desk.expectArrived("\(text)")
    // Of everything: it makes no sense.
    guard text != "0", text != "40" else { return }
    let other = try SendingDesk()
    let entry = try other.add()
    other.receiver.order(.patch, .cut(0.5))
    other.receiver.order(.head, .answer(UploadResponse(200, fields: ["Upload-Offset": text])))
    #expect(try other.failure(entry.id).code == "send-answer")
  }

  @Test func aReceiverThatContradictsItselfIsGivenUp() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    for _ in 0..<200 { desk.receiver.order(.patch, .answer(UploadResponse(409))) }
    #expect(try desk.failure(entry.id).code == "send-answer")
    #expect(desk.receiver.requests.count < 200)
    // An upload of another length is not the one.
    let other = try SendingDesk()
    let second = try other.add()
    other.receiver.order(.patch, .cut(0.5))
    other.receiver.order(.head, .answer(UploadResponse(200, fields: ["Upload-Offset": "5", "Upload-Length": "6"])))
    #expect(try other.failure(second.id).code == "send-answer")
  }

  @Test func whoTakesOneByteAtATimeIsGivenUp() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    for number in 1...3000 {
      desk.receiver.order(.patch, .answer(UploadResponse(204, fields: ["Upload-Offset": "\(number)"])))
    }
    #expect(try desk.failure(entry.id).code == "send-answer")
    #expect(desk.receiver.requests.count < 1100)
  }

  static let elsewhere = [
    "https://evil.example.com/u1", "//evil.example.com/u1", "http://support.example.com/u1",
    "https://support.example.com:444/u1", "https://a@support.example.com/u1", "\\\\evil", "",
  ]

  @Test(arguments: elsewhere)
  func nothingGoesElsewhere(location: String) throws {
    for status in [201, 301, 302, 307, 308] {
      let desk = try SendingDesk()
      let entry = try desk.add()
      desk.receiver.order(.post, .answer(UploadResponse(status, fields: ["Location": location])))
      #expect(try desk.failure(entry.id).code == "send-redirected")
      #expect(desk.receiver.methods == ["OPTIONS", "POST"])
      #expect(try desk.outbox().entry(entry.id).state == .failed)
    }
    let desk = try SendingDesk()
    let entry = try desk.add()
    desk.receiver.order(.patch, .answer(UploadResponse(308, fields: ["Location": location])))
    #expect(try desk.failure(entry.id).code == "send-redirected")
  }

  @Test func redirectionsAtTheReceiverAreFollowed() throws {
    let desk = try SendingDesk()
    desk.receiver.order(.options, .answer(UploadResponse(302, fields: ["Location": "/other/uploads"])))
    desk.receiver.order(.post, .answer(UploadResponse(308, fields: ["Location": "/other/uploads"])))
    desk.receiver.order(.patch, .answer(UploadResponse(307, fields: ["Location": "/other/uploads/u1"])))
    _ = try desk.sender().send(try desk.add().id)
    try desk.expectArrived()
    let circle = try SendingDesk()
    let entry = try circle.add()
    for _ in 0..<20 { circle.receiver.order(.post, .answer(UploadResponse(308, fields: ["Location": "/x"]))) }
    #expect(try circle.failure(entry.id).code == "send-redirected")
  }

  @Test func aReceiptIsChecked() throws {
    let sum = FileDigest(of: try SendingDesk().bytes()).hexadecimal
    let count = try SendingDesk().bytes().count
    for text in [
      "{\"id\": \"1\", \"sha256\": \"00\", \"bytes\": \(count)}",
      "{\"id\": \"1\", \"sha256\": \"\(sum)\", \"bytes\": 5}",
      "{\"id\": \"1\", \"sha256\": \"\(String(repeating: "0", count: 64))\", \"bytes\": 5, \"date\": \"x\"}",
    ] {
      let desk = try SendingDesk()
      let entry = try desk.add()
      desk.receiver.order(
        .get, .answer(UploadResponse(200, fields: ["Content-Type": "application/json"], body: Array(text.utf8))))
      #expect(try desk.failure(entry.id).code == "send-receipt")
      #expect(try desk.outbox().entry(entry.id).state == .failed)
      #expect(try system.status(of: desk.outbox().bundlePath(of: entry.id)) != nil)
    }
    // What is no receipt is none.
    for response in [
      UploadResponse(200, fields: ["Content-Type": "text/html"], body: Array("<h1>".utf8)), UploadResponse(501),
      UploadResponse(200, fields: ["Content-Type": "application/json"], body: Array("[]".utf8)),
      UploadResponse(200, fields: ["Content-Type": "application/json"], body: [], isCutOff: true),
      UploadResponse(404), UploadResponse(500),
    ] {
      let desk = try SendingDesk()
      desk.receiver.order(.get, .answer(response))
      let outcome = try desk.sender().send(try desk.add().id)
      #expect(!outcome.receipt.isReceivers && outcome.receipt.id == "u1")
    }
    // A name that could steer a terminal or a page is not kept as it is.
    let desk = try SendingDesk()
    let id = "<script>\\u001b[31m\\u202e" + String(repeating: "x", count: 400)
    let text =
      "{\"id\": \"\(id)\", \"sha256\": \"\(FileDigest(of: try desk.bytes()).hexadecimal)\", \"bytes\": \(try desk.bytes().count)}"
    desk.receiver.order(
      .get, .answer(UploadResponse(200, fields: ["Content-Type": "application/json"], body: Array(text.utf8))))
    let receipt = try desk.sender().send(try desk.add().id).receipt
    #expect(receipt.id.hasPrefix("_script__[31m_xxx") && receipt.id.count == 200)
  }

  @Test func whoClaimsToHaveItHasToProveIt() throws {
    let desk = try SendingDesk(isOurs: false)
    let entry = try desk.add()
    desk.receiver.order(
      .post,
      .answer(UploadResponse(201, fields: ["Location": "/inbox/uploads/u9", "Upload-Offset": "\(entry.bytes)"])))
    #expect(try desk.failure(entry.id).code == "send-answer")
  }

  @Test func aBundleThatChangesWhileItIsSentDoesNotArrive() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    let count = Mutex(0)
    let bundle = desk.bundle
    let error = #expect(throws: SupportBundleError.self) {
      try desk.sender().send(entry.id) { progress in
        guard progress.phase == .sending, progress.done > 15_000 else { return }
        let isFirst = count.withLock { count in
          count += 1
          return count == 1
        }
        // The outbox has a second name of the very file.
        if isFirst, let file = try? FileSystem().update(bundle) { try? file.write([9, 9, 9], at: 30_000) }
      }
    }
    #expect(error?.code == "bundle-changed")
    #expect(desk.receiver.complete.isEmpty)
    #expect(desk.receiver.state.withLock { $0.deleted } == ["u1"])
    #expect(try desk.outbox().entry(entry.id).state == .failed)
    #expect(try desk.failure(entry.id).code == "bundle-changed")

    // And one that got shorter.
    let other = try SendingDesk()
    let second = try other.add()
    let file = try system.update(other.bundle)
    try file.truncate(to: 100)
    #expect(try other.failure(second.id).code == "bundle-changed")
    #expect(other.receiver.complete.isEmpty)
  }

  @Test func stoppingLeavesItToBeGoneOnWith() throws {
    let desk = try SendingDesk()
    let entry = try desk.add()
    let isStopped = Mutex(false)
    let error = #expect(throws: SupportBundleError.self) {
      try desk.sender().send(
        entry.id, progress: { progress in if progress.done >= 20_000 { isStopped.withLock { $0 = true } } },
        isStopped: { isStopped.withLock { $0 } })
    }
    #expect(error?.code == "cancelled")
    let waiting = try desk.outbox().entry(entry.id)
    #expect(waiting.state == .waiting && waiting.offset == 20_000 && waiting.lastError == nil)
    _ = try desk.sender().send(entry.id)
    try desk.expectArrived()
    #expect(desk.receiver.state.withLock { $0.received } == entry.bytes)
  }

  @Test func partsShrinkOnASlowLineAndGrowOnAFastOne() throws {
    let desk = try SendingDesk(size: 6 << 20)
    let entry = try desk.add()
    // No time passes on this clock: the line is as fast as can be.
    _ = try desk.sender(part: 4 << 20).send(entry.id)
    var parts = desk.receiver.requests.compactMap { request -> Int? in
      guard request.method == .patch, case .bytes(let bytes) = request.body else { return nil }
      return bytes.count
    }
    #expect(parts.prefix(2) == [1 << 20, 2 << 20])
    let slow = try SendingDesk(size: 3 << 20)
    let second = try slow.add()
    _ = try slow.sender(part: 4 << 20).send(second.id) { progress in
      if progress.phase == .sending { slow.time.pass(10) }
    }
    parts = slow.receiver.requests.compactMap { request -> Int? in
      guard request.method == .patch, case .bytes(let bytes) = request.body else { return nil }
      return bytes.count
    }
    #expect(parts.prefix(3) == [1 << 20, 512 << 10, 256 << 10])
    try slow.expectArrived()
  }
}
