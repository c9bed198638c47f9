import Foundation
import HTTPServer
import Inbox
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// What counts against quotas besides the bundles themselves, and what is forgotten.
@Suite("The room of the inbox")
struct InboxRoomTests {
  private func used(_ desk: InboxDesk) throws -> Int64 { try desk.inbox.records.usage().values.reduce(0, +) }

  /// Bytes that hardly get smaller by packing.
  private func noise(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: 5)
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  @Test func whatABundleUnpacksToCounts() throws {
    let desk = try InboxDesk()
    let bytes = try desk.bundle([("note", [UInt8](repeating: 7, count: 300_000))], level: .facts)
    let id = try desk.send(bytes)
    #expect(try used(desk) == Int64(bytes.count))
    try desk.work(desk.pool())
    let placed = try #require(try desk.inbox.records.placed(of: id))
    #expect(placed >= 300_000 && placed < 400_000)
    #expect(try used(desk) == Int64(bytes.count) + placed)
    try desk.inbox.discard(id)
    #expect(try used(desk) == 0)
  }

  @Test(arguments: ["zeros", "files", "folders"])
  func aBundleThatUnpacksToMoreThanTheQuotaIsRefusedAndNothingOfItStays(_ kind: String) throws {
    let desk = try InboxDesk(quota: 400_000)
    let items: [(String, [UInt8])] =
      switch kind {
      case "zeros": [("note", [UInt8](repeating: 0, count: 2_000_000))]
      case "files": (0..<500).map { ("f\($0)", []) }
      default: (0..<30).map { number in ((0..<12).map { "\(number)x\($0)" }.joined(separator: "/"), []) }
      }
    let bytes = try desk.bundle(items, level: .facts)
    let id = try desk.send(bytes)
    let pool = desk.pool()
    try desk.work(pool)
    let bundle = try #require(try desk.inbox.records.bundle(id))
    #expect(bundle.state == .refused && bundle.failure?.code == "sender-quota", "\(bundle.failure?.code ?? "none")")
    #expect(
      try FileSystem().entries(of: desk.folders.bundle(id)) == [
        try #require(try desk.inbox.received(bundle).lastComponent)
      ]
    )
    #expect(try used(desk) == Int64(bytes.count))
    // The rest of the inbox goes on.
    let other = try desk.inbox.addSender("Other", quota: 1 << 30).text
    let second = try desk.send(try desk.bundle([("note", [1])], level: .facts), token: other)
    try desk.work(pool)
    #expect(try desk.inbox.records.bundle(second)?.state == .unpacked)
  }

  @Test func aBundleThatFitsOnceThereIsRoomIsOpenedByAnotherTry() throws {
    let desk = try InboxDesk(quota: 1_000_000)
    let first = try desk.send(try desk.bundle([("note", noise(300_000))], level: .facts))
    let pool = desk.pool()
    try desk.work(pool)
    #expect(try desk.inbox.records.bundle(first)?.state == .unpacked)
    let second = try desk.send(try desk.bundle([("note", [UInt8](repeating: 1, count: 500_000))], level: .facts))
    try desk.work(pool)
    #expect(try desk.inbox.records.bundle(second)?.failure?.code == "sender-quota")
    try desk.inbox.discard(first)
    try desk.inbox.retry(second)
    try desk.work(pool)
    #expect(try desk.inbox.records.bundle(second)?.state == .unpacked)
  }

  @Test func theInboxAsAWholeHasItsRoomToo() throws {
    let desk = try InboxDesk(limits: InboxLimits(totalBytes: 500_000))
    let id = try desk.send(try desk.bundle([("note", [UInt8](repeating: 0, count: 900_000))], level: .facts))
    try desk.work(desk.pool())
    #expect(try desk.inbox.records.bundle(id)?.failure?.code == "sender-quota")
  }

  @Test func uploadsThatAreOverAreForgottenAndTheBundlesAreStillKnown() throws {
    let desk = try InboxDesk()
    let bytes = try desk.bundle([("note", [1, 2, 3])], level: .facts)
    let address = try desk.create(bytes)
    _ = try desk.append(bytes, to: address, at: 0)
    let receipt = try desk.receipt(address)
    let ended = try desk.create([1, 2, 3])
    _ = try desk.ask(.delete, ended)
    try desk.inbox.expireUploads()
    #expect(try desk.inbox.records.upload(String(address.suffix(36))) != nil)
    desk.clock.pass(8 * 86_400)
    try desk.inbox.expireUploads()
    #expect(try desk.inbox.records.upload(String(address.suffix(36))) == nil)
    #expect(try desk.inbox.records.upload(String(ended.suffix(36))) == nil)
    // The same file again is not asked for again, and has the same receipt.
    let response = try desk.ask(
      .post, TusServer.path,
      ["Upload-Length": "\(bytes.count)", "Upload-Metadata": InboxDesk.metadata(bytes)])
    #expect(response.headers["Upload-Offset"] == "\(bytes.count)")
    let again = try desk.receipt(try #require(response.headers["Location"]))
    #expect(again["id"] as? String == receipt["id"] as? String)
  }

  @Test func whatAnEarlierVersionPlacedIsCountedAtTheNextStart() throws {
    let desk = try InboxDesk()
    let id = try desk.send(try desk.bundle([("note", [1])], level: .facts))
    #expect(try desk.inbox.records.placed(of: id) == nil)
    try desk.folder.write([UInt8](repeating: 1, count: 10_000), to: "Home/Inbox/Bundles/\(id)/bag/data/x")
    try desk.inbox.finishInterrupted()
    // Three blocks for the file, one for each of its folders.
    #expect(try desk.inbox.records.placed(of: id) == 5 * 4096)
  }

  // MARK: Isolation

  @Test(.enabled(if: ChildProcess.exists("true"))) func aWorkerThatTriesCannotGetOut() throws {
    let folder = try TemporaryFolder()
    let result = try ChildProcess.run(ChildProcess.tool, ["inbox-worker", "--is-trial", folder.path.string])
    #expect(result.status == 0, "\(result.errors)")
    let told = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    let missing = try #require(told["missing"] as? [String])
    let done = try #require(told["done"] as? [String: Bool])
    #expect(done.count == 7)
    // What the kernel does not have is told, and not tested.
    if !missing.contains("calls") {
      for name in ["socket", "socket6", "local", "program"] { #expect(done[name] == false, "\(name)") }
    }
    if !missing.contains("files") {
      for name in ["read", "list", "write"] { #expect(done[name] == false, "\(name)") }
    }
    #expect(try FileSystem().entries(of: folder.path).isEmpty)
  }
}
