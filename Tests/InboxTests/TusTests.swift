import Foundation
import HTTPServer
import Inbox
import Platform
import SystemPackage
import TestSupport
import Testing

/// The protocol, request by request, without any socket.
@Suite("tus 1.0")
struct TusTests {
  private let bytes = Array("a bundle that is none, but has some bytes".utf8)

  /// What is wrong, and what is sent: method, address (`ID` for the upload's), fields beyond the usual ones, body; and the answer.
  private typealias Case = (
    String, Method, String, [String: String], [UInt8], version: String?, token: String?, status: Int, code: String?
  )

  private var table: [Case] {
    let (all, one) = (TusServer.path, TusServer.path + "/ID")
    let type = ["Content-Type": TusField.partType]
    func part(_ more: [String: String] = [:]) -> [String: String] {
      type.merging(["Upload-Offset": "0"]) { $1 }.merging(more) { $1 }
    }
    let sum = "sha256 " + Data(SHA256.hash(data: Data("abc".utf8))).base64EncodedString()
    let sha1 = "sha1 " + Data(Insecure.SHA1.hash(data: Data("abc".utf8))).base64EncodedString()
    let other = String(repeating: "0", count: 8) + "-0000-0000-0000-" + String(repeating: "0", count: 12)
    let abc = Array("abc".utf8)
    return [
      // Who asks
      ("no token", .post, all, ["Upload-Length": "5"], [], "1.0.0", "", 401, "token-needed"),
      ("wrong token", .post, all, ["Upload-Length": "5"], [], "1.0.0", "lzi_0", 401, "token-needed"),
      (
        "token of another kind", .post, all, ["Upload-Length": "5", "Authorization": "Basic YTpi"], [], "1.0.0", nil,
        401, nil
      ),
      ("token twice", .post, all, ["Upload-Length": "5", "Authorization": "Bearer a b"], [], "1.0.0", nil, 401, nil),
      ("HEAD without token", .head, one, [:], [], "1.0.0", "", 401, nil),
      ("PATCH without token", .patch, one, part(), abc, "1.0.0", "", 401, nil),
      ("DELETE without token", .delete, one, [:], [], "1.0.0", "", 401, nil),
      ("receipt without token", .get, one, [:], [], nil, "", 401, nil),
      // Versions
      ("no version", .post, all, ["Upload-Length": "5"], [], nil, nil, 412, "version-unknown"),
      ("later version", .post, all, ["Upload-Length": "5"], [], "2.0.0", nil, 412, "version-unknown"),
      ("PATCH without version", .patch, one, part(), abc, nil, nil, 412, nil),
      ("HEAD without version", .head, one, [:], [], nil, nil, 412, nil),
      ("DELETE without version", .delete, one, [:], [], nil, nil, 412, nil),
      // Creation
      ("no length", .post, all, [:], [], "1.0.0", nil, 400, "length-needed"),
      ("length of words", .post, all, ["Upload-Length": "five"], [], "1.0.0", nil, 400, "field-malformed"),
      ("negative length", .post, all, ["Upload-Length": "-5"], [], "1.0.0", nil, 400, nil),
      ("signed length", .post, all, ["Upload-Length": "+5"], [], "1.0.0", nil, 400, nil),
      ("length of no digits", .post, all, ["Upload-Length": ""], [], "1.0.0", nil, 400, nil),
      ("length beyond 64 bits", .post, all, ["Upload-Length": "99999999999999999999"], [], "1.0.0", nil, 400, nil),
      ("nothing", .post, all, ["Upload-Length": "0"], [], "1.0.0", nil, 400, "empty"),
      ("too large", .post, all, ["Upload-Length": "1000001"], [], "1.0.0", nil, 413, "bundle-too-large"),
      ("later length", .post, all, ["Upload-Defer-Length": "1"], [], "1.0.0", nil, 400, "extension-unknown"),
      (
        "part of a whole", .post, all, ["Upload-Length": "5", "Upload-Concat": "partial"], [], "1.0.0", nil, 400,
        "extension-unknown"
      ),
      (
        "bad metadata", .post, all, ["Upload-Length": "5", "Upload-Metadata": "a b c"], [], "1.0.0", nil, 400,
        "metadata-malformed"
      ),
      (
        "doubled metadata", .post, all, ["Upload-Length": "5", "Upload-Metadata": "a YQ==,a YQ=="], [], "1.0.0", nil,
        400, nil
      ),
      (
        "sum of words", .post, all, ["Upload-Length": "5", "Upload-Metadata": "sha256 YWJj"], [], "1.0.0", nil, 400, nil
      ),
      (
        "body of another type", .post, all, ["Upload-Length": "5", "Content-Type": "text/plain"], abc, "1.0.0", nil,
        415, "type-unknown"
      ),
      (
        "body longer than the upload", .post, all, type.merging(["Upload-Length": "2"]) { $1 }, abc, "1.0.0", nil, 413,
        nil
      ),
      (
        "wrong sum of the first part", .post, all, type.merging(["Upload-Length": "5", "Upload-Checksum": sum]) { $1 },
        [1], "1.0.0", nil, 460, nil
      ),
      (
        "in place of", .post, one, ["X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0"], abc, "1.0.0", nil, 405,
        nil
      ),
      ("PUT", .put, one, [:], abc, "1.0.0", nil, 405, nil),
      // Addresses
      ("no such upload", .head, all + "/" + other, [:], [], "1.0.0", nil, 404, "no-such-upload"),
      ("no identifier", .head, all + "/abc", [:], [], "1.0.0", nil, 404, nil),
      ("a path", .patch, all + "/..x", part(), abc, "1.0.0", nil, 404, nil),
      ("below an upload", .get, one + "/x", [:], [], "1.0.0", nil, 404, nil),
      // Parts
      ("no offset", .patch, one, type, abc, "1.0.0", nil, 400, "offset-needed"),
      ("offset of words", .patch, one, part(["Upload-Offset": "x"]), abc, "1.0.0", nil, 400, nil),
      ("offset ahead", .patch, one, part(["Upload-Offset": "1"]), abc, "1.0.0", nil, 409, "offset-wrong"),
      ("no type", .patch, one, ["Upload-Offset": "0"], abc, "1.0.0", nil, 415, nil),
      ("another type", .patch, one, part(["Content-Type": "application/octet-stream"]), abc, "1.0.0", nil, 415, nil),
      (
        "more than is missing", .patch, one, part(), [UInt8](repeating: 0, count: 100), "1.0.0", nil, 413,
        "upload-too-long"
      ),
      ("wrong sum", .patch, one, part(["Upload-Checksum": sum]), [1, 2, 3], "1.0.0", nil, 460, "checksum-mismatch"),
      ("wrong SHA-1", .patch, one, part(["Upload-Checksum": sha1]), [1, 2, 3], "1.0.0", nil, 460, nil),
      (
        "unknown sum", .patch, one, part(["Upload-Checksum": "md5 kAFQmDzST7DWlj99KOF/cg=="]), abc, "1.0.0", nil, 400,
        "checksum-unknown"
      ),
      ("malformed sum", .patch, one, part(["Upload-Checksum": "sha256"]), abc, "1.0.0", nil, 400, "checksum-malformed"),
      ("short sum", .patch, one, part(["Upload-Checksum": "sha256 YWJj"]), abc, "1.0.0", nil, 400, nil),
      // Receipts
      ("no receipt yet", .get, one, [:], [], nil, nil, 409, "upload-unfinished"),
      // What is done
      ("options", .options, all, [:], [], nil, "", 204, nil),
      ("options of one", .options, one, [:], [], nil, "", 204, nil),
      ("how far", .head, one, [:], [], "1.0.0", nil, 200, nil),
      ("a new one", .post, all, ["Upload-Length": "5"], [], "1.0.0", nil, 201, nil),
      ("no bytes", .patch, one, part(), [], "1.0.0", nil, 204, nil),
      ("a part", .patch, one, part(["Upload-Checksum": sum]), abc, "1.0.0", nil, 204, nil),
      ("the same part again", .patch, one, part(), abc, "1.0.0", nil, 409, "offset-wrong"),
      (
        "another part", .patch, one, part(["Upload-Offset": "3", "Upload-Checksum": sha1]), abc, "1.0.0", nil, 204, nil
      ),
      ("the end of it", .delete, one, [:], [], "1.0.0", nil, 204, nil),
      ("a part of what was ended", .patch, one, part(["Upload-Offset": "6"]), abc, "1.0.0", nil, 410, "upload-gone"),
      ("how far what was ended", .head, one, [:], [], "1.0.0", nil, 410, nil),
      ("another end", .delete, one, [:], [], "1.0.0", nil, 410, nil),
    ]
  }

  @Test func everyRequestGetsItsAnswer() throws {
    let desk = try InboxDesk(limits: InboxLimits(bundleBytes: 1_000_000, openUploads: 50))
    let upload = try desk.create(bytes)
    #expect(table.count >= 40)
    for item in table {
      let address = item.2.replacing(TusServer.path + "/ID", with: upload)
      let response = try desk.ask(item.1, address, item.3, body: item.4, token: item.token, version: item.version)
      let told = Comment(rawValue: "\(item.0): \(response.words)")
      #expect(response.status.rawValue == item.status, told)
      #expect(response.headers["Tus-Resumable"] == "1.0.0", told)
      if let code = item.code { #expect(response.words.contains("\"code\":\"\(code)\""), told) }
      if item.status == 412 { #expect(response.headers["Tus-Version"] == "1.0.0") }
      if item.status == 401 { #expect(response.headers["WWW-Authenticate"] == "Bearer") }
    }
    #expect(try desk.outside() == ["Home"])
  }

  @Test func optionsTellWhatIsOffered() throws {
    let desk = try InboxDesk(limits: InboxLimits(bundleBytes: 1_000_000))
    let response = try desk.ask(.options, TusServer.path, token: "", version: nil)
    #expect(response.headers["Tus-Version"] == "1.0.0")
    #expect(response.headers["Tus-Max-Size"] == "1000000")
    #expect(response.headers["Tus-Checksum-Algorithm"] == "sha1,sha256")
    let extensions = try #require(response.headers["Tus-Extension"]?.split(separator: ","))
    #expect(Set(extensions) == ["creation", "creation-with-upload", "expiration", "termination", "checksum"])
  }

  @Test func aBundleComesInPartsAndGetsItsReceipt() throws {
    let desk = try InboxDesk()
    let upload = try desk.create(bytes)
    let head = try desk.ask(.head, upload)
    #expect(head.headers["Upload-Offset"] == "0")
    #expect(head.headers["Upload-Length"] == "\(bytes.count)")
    #expect(head.headers["Cache-Control"] == "no-store")
    #expect(head.headers["Upload-Expires"]?.hasSuffix(" GMT") == true)
    #expect(head.headers["Upload-Metadata"] == InboxDesk.metadata(bytes))
    #expect(try desk.append(Array(bytes[..<10]), to: upload, at: 0).headers["Upload-Offset"] == "10")
    let last = try desk.append(Array(bytes[10...]), to: upload, at: 10)
    #expect(last.status == .noContent && last.headers["Upload-Expires"] == nil)
    let receipt = try desk.receipt(upload)
    #expect(receipt["sha256"] as? String == FileDigest(of: bytes).hexadecimal)
    #expect(receipt["bytes"] as? Int == bytes.count)
    #expect(receipt["date"] as? String == desk.clock.now.rfc3339)
    let id = try #require(receipt["id"] as? String)
    let kept = try FileSystem().contents(of: desk.folders.received(id, encrypted: false), limit: 1 << 20)
    #expect(kept == bytes)
    let mode = try #require(try FileSystem().status(of: desk.folders.received(id, encrypted: false)))
    #expect(mode.permissions.rawValue & 0o777 == 0o600)
    // A finished one stays.
    #expect(try desk.ask(.delete, upload).status == .forbidden)
    #expect(try desk.append([], to: upload, at: bytes.count).status == .conflict)
    #expect(try desk.ask(.head, upload).headers["Upload-Offset"] == "\(bytes.count)")
    // The same again: nothing is sent, and the receipt is the same.
    desk.clock.pass(100)
    let again = try desk.ask(
      .post, TusServer.path, ["Upload-Length": "\(bytes.count)", "Upload-Metadata": InboxDesk.metadata(bytes)])
    #expect(again.status == .created)
    #expect(again.headers["Upload-Offset"] == "\(bytes.count)")
    let location = try #require(again.headers["Location"])
    #expect(try desk.receipt(location)["date"] as? String == receipt["date"] as? String)
    // A foreign client does not say the sum; the receipt is the same all the same.
    let plain = try desk.ask(.post, TusServer.path, ["Upload-Length": "\(bytes.count)"])
    let foreign = try #require(plain.headers["Location"])
    #expect(try desk.append(bytes, to: foreign, at: 0).status == .noContent)
    #expect(try desk.receipt(foreign)["id"] as? String == id)
    #expect(try desk.inbox.records.bundleCount() == 1)
    // Another sender's is another bundle, and neither sees the other's uploads.
    let other = try desk.inbox.addSender("Other", quota: 1 << 20).text
    #expect(try desk.ask(.head, upload, token: other).status == .notFound)
    #expect(try desk.ask(.get, upload, token: other).status == .notFound)
    let theirs = try desk.send(bytes, token: other)
    #expect(theirs != id)
  }

  @Test func theFirstBytesMayComeAtOnce() throws {
    let desk = try InboxDesk()
    let fields = ["Upload-Length": "\(bytes.count)", "Content-Type": TusField.partType]
    let some = try desk.ask(.post, TusServer.path, fields, body: Array(bytes[..<5]))
    #expect(some.status == .created && some.headers["Upload-Offset"] == "5")
    let location = try #require(some.headers["Location"])
    #expect(try desk.append(Array(bytes[5...]), to: location, at: 5).status == .noContent)
    let whole = try desk.ask(.post, TusServer.path, fields, body: bytes)
    #expect(whole.headers["Upload-Offset"] == "\(bytes.count)")
    #expect(
      try desk.receipt(location)["id"] as? String == desk.receipt(try #require(whole.headers["Location"]))["id"]
        as? String)
  }

  @Test func whatIsNotWhatItsSumSaysIsDropped() throws {
    let desk = try InboxDesk()
    let upload = try desk.create(bytes, sum: String(repeating: "0", count: 64))
    let response = try desk.append(bytes, to: upload, at: 0)
    #expect(response.status == .unprocessableContent)
    #expect(response.headers["Content-Type"]?.hasPrefix("application/problem+json") == true)
    #expect(response.words.contains("sum-wrong"))
    #expect(try desk.ask(.head, upload).status == .gone)
    #expect(try FileSystem().entries(of: desk.folders.uploads).isEmpty)
    #expect(try desk.inbox.records.bundleCount() == 0)
  }

  @Test func aWrongPartIsNotCounted() throws {
    let desk = try InboxDesk()
    let upload = try desk.create(bytes)
    _ = try desk.append(Array(bytes[..<10]), to: upload, at: 0)
    let sum = "sha256 " + Data(SHA256.hash(data: Data([1]))).base64EncodedString()
    let response = try desk.append(Array(bytes[10...]), to: upload, at: 10, ["Upload-Checksum": sum])
    #expect(response.status == .checksumMismatch)
    #expect(try desk.ask(.head, upload).headers["Upload-Offset"] == "10")
    #expect(try desk.append(Array(bytes[10...]), to: upload, at: 10).status == .noContent)
    _ = try desk.receipt(upload)
  }

  @Test func quotasAndLimits() throws {
    let desk = try InboxDesk(limits: InboxLimits(bundleBytes: 1000, totalBytes: 1500, openUploads: 2), quota: 800)
    let first = try desk.create([UInt8](repeating: 1, count: 500))
    let full = try desk.ask(.post, TusServer.path, ["Upload-Length": "301"])
    #expect(full.status == .insufficientStorage && full.words.contains("sender-quota"))
    let second = try desk.create([UInt8](repeating: 2, count: 300))
    let many = try desk.ask(.post, TusServer.path, ["Upload-Length": "1"])
    #expect(many.status == .tooManyRequests && many.headers["Retry-After"] == "60")
    #expect(try desk.ask(.delete, second).status == .noContent)
    // What has arrived counts as what is announced does.
    #expect(try desk.append([UInt8](repeating: 1, count: 500), to: first, at: 0).status == .noContent)
    #expect(try desk.ask(.post, TusServer.path, ["Upload-Length": "301"]).status == .insufficientStorage)
    let other = try desk.inbox.addSender("Other", quota: 5000).text
    _ = try desk.create([UInt8](repeating: 3, count: 1000), token: other)
    let total = try desk.ask(.post, TusServer.path, ["Upload-Length": "300"])
    #expect(total.status == .insufficientStorage && total.words.contains("inbox-quota"))
    try desk.inbox.records.revokeSender("Other", at: desk.clock.now)
    #expect(try desk.ask(.post, TusServer.path, ["Upload-Length": "1"], token: other).status == .unauthorized)
  }

  @Test func whatIsNotGoneOnWithExpires() throws {
    let desk = try InboxDesk()
    let upload = try desk.create(bytes)
    _ = try desk.append(Array(bytes[..<10]), to: upload, at: 0)
    desk.clock.pass(6 * 86_400)
    #expect(try desk.append(Array(bytes[10..<20]), to: upload, at: 10).status == .noContent)
    desk.clock.pass(6 * 86_400)
    #expect(try desk.ask(.head, upload).status == .ok)
    desk.clock.pass(2 * 86_400)
    #expect(try desk.ask(.head, upload).status == .gone)
    #expect(try desk.append(Array(bytes[20...]), to: upload, at: 20).status == .gone)
    try desk.inbox.expireUploads()
    #expect(try FileSystem().entries(of: desk.folders.uploads).isEmpty)
  }

  @Test func tokensAreNotKept() throws {
    let desk = try InboxDesk()
    try desk.send(bytes)
    for name in try FileSystem().entries(of: desk.folders.root) where name.string.hasPrefix("records") {
      let path = desk.folders.root.appending(name)
      guard try FileSystem().status(of: path)?.kind == .regular else { continue }
      let content = try FileSystem().contents(of: path, limit: 1 << 24)
      #expect(String(decoding: content, as: UTF8.self).contains(desk.token.dropFirst(4)) == false)
    }
    let refused: [String] = ["", " x", "x ", "a\nb", String(repeating: "x", count: 101), "a\u{202E}b"]
    for name in refused { #expect(throws: InboxError.self) { _ = try desk.inbox.addSender(name, quota: 1) } }
  }
}
