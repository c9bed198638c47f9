import Foundation
import HTTPServer
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// `lazaret send` and `lazaret outbox`, against a receiver of this machine that takes a PUT.
struct SendCommandTests {
  /// What came in, and what is answered.
  final class Receiver: Sendable {
    let seen = Mutex<[Request]>([])
    let answers = Mutex<[Response]>([])

    func respond(_ request: Request) -> Response {
      seen.withLock { $0.append(request) }
      return answers.withLock { $0.isEmpty ? nil : $0.removeFirst() } ?? Response(Status(rawValue: 201))
    }
  }

  let desk: Desk
  let bundle: String

  init() throws {
    desk = try Desk()
    bundle = try desk.makeBundle()
  }

  private func serve(_ receiver: Receiver) throws -> Server { try Server { receiver.respond($0) } }

  private func listing() throws -> [[String: Any]] {
    let value = try json(try desk.lazaret("outbox", "list", "--json").output) as? [String: Any]
    return try #require(value?["entries"] as? [[String: Any]])
  }

  @Test func itIsShownAgreedToAndSentOnce() throws {
    let receiver = Receiver()
    let server = try serve(receiver)
    let address = "http://127.0.0.1:\(server.port)/drop/case-7"
    try desk.folder.write("s3cret-token\n", to: "token")
    let arguments = ["send", bundle, "--to", address, "--put", "--token-file", "token"]
    let refused = try desk.run(arguments, input: "no\n")
    #expect(refused.status == 1 && refused.errors.contains("Cancelled: nothing was sent."))
    #expect(receiver.seen.withLock { $0.isEmpty })
    #expect(try listing().isEmpty)
    let bytes = try FileSystem().contents(of: FilePath(bundle), limit: 1 << 20)
    let sum = FileDigest(of: bytes).hexadecimal
    let sent = try desk.run(arguments, input: "yes\n")
    #expect(sent.status == 0, "\(sent.errors)")
    for text in [sum, address, "(\(grouped(bytes.count)) bytes)", "full: ", "WARNING", "Send it? [y/N]"] {
      #expect(sent.errors.contains(text), "\(text)")
    }
    #expect(sent.output.contains("case-7") && sent.output.contains(sum))
    let request = try #require(receiver.seen.withLock { $0.first })
    #expect(request.body == bytes)
    #expect(request.headers["Authorization"] == "Bearer s3cret-token")
    #expect(!(sent.output + sent.errors).contains("s3cret"))
    // Again: nothing is asked, and nothing goes out.
    let again = try desk.run(arguments)
    #expect(again.status == 0 && again.output.contains("nothing was sent"))
    #expect(receiver.seen.withLock { $0.count } == 1)
    #expect(try listing().first?["state"] as? String == "sent")
  }

  @Test func whatCannotBeSentNowWaits() throws {
    let receiver = Receiver()
    receiver.answers.withLock {
      $0 = [Response(Status(rawValue: 503), headers: ["Retry-After": "7200"])]
    }
    let server = try serve(receiver)
    let address = "http://127.0.0.1:\(server.port)/drop"
    let later = try desk.lazaret("send", bundle, "--to", address, "--put", "--yes")
    #expect(later.status == 3)
    #expect(later.errors.contains("[send-unreachable]") && later.errors.contains("lazaret outbox send"))
    let entry = try #require(try listing().first)
    let id = try #require(entry["id"] as? String)
    #expect(entry["state"] as? String == "waiting")
    // Its time has not come.
    let early = try desk.lazaret("outbox", "send")
    #expect(early.status == 0 && early.output.contains("\(id) waits until "))
    #expect(try desk.lazaret("outbox", "list").output.contains("send-unreachable (not before "))
    let retried = try desk.lazaret("outbox", "retry", id)
    #expect(retried.status == 0, "\(retried.errors)")
    #expect(receiver.seen.withLock { $0.count } == 2)
    #expect(try desk.lazaret("outbox", "send").output.hasPrefix("Nothing waits in the outbox of the home: "))
    #expect(try desk.lazaret("outbox", "cancel", id).status == 1)
    #expect(try desk.lazaret("outbox", "cancel", "2001").status == 1)
  }

  @Test func controlCLeavesItToBeGoneOnWith() throws {
    let receiver = Receiver()
    receiver.answers.withLock { $0 = [Response(Status(rawValue: 503), headers: ["Retry-After": "100"])] }
    let server = try serve(receiver)
    let address = "http://127.0.0.1:\(server.port)/drop"
    let child = try ChildProcess(
      ChildProcess.tool, ["send", bundle, "--to", address, "--put", "--yes"], in: desk.folder.path)
    for _ in 0..<1000 where receiver.seen.withLock({ $0.isEmpty }) { Thread.sleep(forTimeInterval: 0.01) }
    Thread.sleep(forTimeInterval: 0.2)
    child.interrupt()
    let result = try child.finish()
    #expect(result.status == 1)
    #expect(result.errors.contains("[cancelled]") && result.errors.contains("lazaret outbox send"))
    #expect(try listing().first?["state"] as? String == "waiting")
    let all = try desk.lazaret("outbox", "retry", try #require(try listing().first?["id"] as? String))
    #expect(all.status == 0, "\(all.errors)")
  }

  @Test func theOutboxIsLimitedAndOrdersMakeSense() throws {
    let https = "https://support.example.com/inbox/uploads"
    let full = try desk.lazaret("send", bundle, "--to", https, "--yes", "--no-send", "--outbox-limit", "100")
    #expect(full.status == 1 && full.errors.contains("[outbox-full]"))
    for address in ["http://support.example.com/", "ftp://x/", "https://me:s3cret@support.example.com/"] {
      let result = try desk.lazaret("send", bundle, "--to", address, "--yes", "--no-send")
      #expect(result.status == 64 && result.errors.contains("[send-request]") && !result.errors.contains("s3cret"))
    }
    #expect(try desk.lazaret("send", desk.model, "--to", https, "--yes").status == 64)
    try desk.folder.write("no bundle", to: "other")
    #expect(try desk.lazaret("send", "other", "--to", https, "--yes").errors.contains("[bundle-unreadable]"))
    #expect(try desk.lazaret("send", bundle, "--to", https, "--yes", "--wait", "--no-send").status == 64)
    #expect(try desk.lazaret("send", bundle, "--to", https, "--yes", "--outbox-limit", "-1").status == 64)
    #expect(try listing().isEmpty)
    let queued = try desk.lazaret("send", bundle, "--to", https, "--yes", "--no-send")
    #expect(queued.status == 0 && queued.output.contains("waits in the outbox"))
    let id = try #require(try listing().first?["id"] as? String)
    #expect(try desk.lazaret("outbox", "cancel", String(id.prefix(20))).output == "\(id) was taken back.\n")
    #expect(try desk.lazaret("outbox", "prune").output == "0 entries removed.\n")
  }
}

extension Desk {
  /// Makes a bundle that holds records as they are.
  func makeBundle() throws -> String {
    let summary = try BundleWriter().write(
      [BundleItem("facts.json", .bytes(Array("{}".utf8)), words: "facts")], level: .full,
      subject: .init(app: "com.example.Garage", store: "App", date: Timestamp(secondsSince1970: 1)), into: folder.path)
    return summary.path.text
  }
}
