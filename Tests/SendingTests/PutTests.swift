import Foundation
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

struct PutTests {
  @Test(arguments: [true, false])
  func itGoesInOneRequest(isOurs: Bool) throws {
    let desk = try SendingDesk(isEncrypted: true, isOurs: isOurs)
    let entry = try desk.add(to: desk.receiver.origin + "/drop/case-17", by: .put)
    let outcome = try desk.sender(part: 1 << 20).send(entry.id, as: try AccessToken("abc"))
    #expect(desk.receiver.state.withLock { $0.puts } == [try desk.bytes()])
    #expect(outcome.receipt.id == (isOurs ? "put-1" : "case-17"))
    let request = try #require(desk.receiver.requests.first)
    #expect(desk.receiver.requests.count == 1)
    let sum = try #require(request.fields["Repr-Digest"])
    #expect(sum.hasPrefix("sha-256=:") && sum.hasSuffix("=:"))
    let digest = Data(base64Encoded: String(sum.dropFirst(9).dropLast()))?.map { String(format: "%02x", $0) }.joined()
    #expect(digest == entry.sha256)
    #expect(request.fields["Content-Type"] == "application/octet-stream")
    #expect(request.fields["Authorization"] == "Bearer abc")
    #expect(try desk.sender().send(entry.id).wasThere)
  }

  @Test func aLargeOneGoesFromItsFile() throws {
    let desk = try SendingDesk()
    let entry = try desk.add(by: .put)
    desk.receiver.order(.put, .unreachable, .answer(UploadResponse(503)), .cut(0.5))
    _ = try desk.sender(part: 1000).send(entry.id)
    let bytes = try desk.bytes()
    #expect(desk.receiver.state.withLock { $0.puts.last } == bytes)
    for request in desk.receiver.requests {
      guard case .file(_, let size) = request.body else {
        Issue.record("it went from memory")
        continue
      }
      #expect(size == entry.bytes)
    }
  }

  @Test func aChangedOneDoesNotGo() throws {
    for part in [1000, 1 << 20] {
      let desk = try SendingDesk()
      let entry = try desk.add(by: .put)
      let file = try FileSystem().update(desk.bundle)
      try file.write([1], at: 20_000)
      #expect(try desk.failure(desk.sender(part: part), entry.id).code == "bundle-changed")
      #expect(desk.receiver.requests.isEmpty)
    }
  }

  @Test func refusalsAndRedirections() throws {
    let desk = try SendingDesk()
    let entry = try desk.add(by: .put)
    desk.receiver.order(.put, .answer(UploadResponse(403)))
    #expect(try desk.failure(entry.id).code == "send-refused")
    desk.receiver.order(.put, .answer(UploadResponse(307, fields: ["Location": "https://evil.example.com/"])))
    #expect(try desk.failure(entry.id).code == "send-redirected")
    #expect(desk.receiver.state.withLock { $0.puts.isEmpty })
  }

  @Test func theSecretPartOfAnAddressIsNotKept() throws {
    let desk = try SendingDesk()
    let address = desk.receiver.origin + "/drop/1?X-Signature=s3cret"
    let entry = try desk.add(to: address, by: .put)
    #expect(entry.isAddressWithheld)
    for file in try FileSystem().descendants(of: desk.outbox().path).files {
      let text = String(decoding: try FileSystem().contents(of: file.path, limit: 1 << 20), as: UTF8.self)
      #expect(!text.contains("s3cret"))
    }
    #expect(try desk.failure(entry.id).code == "send-request")
    let other = try ReceiverAddress("https://evil.example.com/drop/1?X-Signature=s3cret")
    #expect(throws: SupportBundleError.self) { try desk.sender().send(entry.id, to: other) }
    #expect(desk.receiver.requests.isEmpty)
    _ = try desk.sender().send(entry.id, to: try ReceiverAddress(address))
    #expect(desk.receiver.requests.first?.address.text == address)
  }
}
