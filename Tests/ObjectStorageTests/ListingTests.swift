import Backup
import ObjectStorage
import Platform
import StorageServers
import Testing

/// Listings and uploads against a server that answers as it is told to.
struct ListingTests {
  typealias Desk = ClientTests.Desk

  private static func page(_ entries: [(String, String)], next: String? = nil, encoding: String = "")
    -> ScriptedServer.Step
  {
    let contents = entries.map { key, size in
      "<Contents><Key>\(key)</Key><LastModified>2013-05-24T01:02:03.000Z</LastModified><Size>\(size)</Size></Contents>"
    }
    let rest = next.map { "<IsTruncated>true</IsTruncated><NextContinuationToken>\($0)</NextContinuationToken>" } ?? ""
    let text =
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(encoding)\(contents.joined())\(rest)"
    return .text(200, text + "</ListBucketResult>", fields: ["Date": "Fri, 24 May 2013 02:00:00 GMT"])
  }

  @Test func pagesAreReadToTheEnd() throws {
    let desk = try Desk([
      Self.page([("p/a", "1"), ("p/b&amp;c", "2")], next: "x+/="), Self.page([], next: "y"),
      Self.page([("p/d%2Be+f", "4000000000")], encoding: "<EncodingType>url</EncodingType>"),
    ])
    let listing = try desk.client.list("p/")
    #expect(listing.objects.map(\.key) == ["p/a", "p/b&c", "p/d+e f"])
    #expect(listing.objects.map(\.bytes) == [1, 2, 4_000_000_000])
    #expect(listing.objects.first?.modified == Timestamp("2013-05-24T01:02:03Z"))
    #expect(listing.date == Timestamp("2013-05-24T02:00:00Z"))
    #expect(
      desk.server.received.map(\.target) == [
        "/bucket?encoding-type=url&list-type=2&prefix=p%2F",
        "/bucket?continuation-token=x%2B%2F%3D&encoding-type=url&list-type=2&prefix=p%2F",
        "/bucket?continuation-token=y&encoding-type=url&list-type=2&prefix=p%2F",
      ])
  }

  @Test func pagesWithoutEndAreGivenUp() throws {
    let same = try Desk([], then: Self.page([], next: "x"))
    #expect(throws: BackupError.self) { try same.client.list("p/") }
    #expect(same.server.received.count == 2)
    let other = try Desk(
      [],
      then: .compute { request in
        let isEven = request.target.contains("token=a")
        return Self.page([("p/a", "1")], next: isEven ? "b" : "a")
      })
    let error = #expect(throws: BackupError.self) { try other.client.list("p/") }
    #expect(error?.code == "s3-answer")
    #expect(other.server.received.count == 1000)
  }

  @Test(arguments: [
    page([("other", "1")]), page([("p/a", "-1")]), page([("p/a", "x")]), page([("p/a", "99999999999999999999")]),
    page([("p/" + String(repeating: "a", count: 1025), "1")]), page([], next: ""),
    page([], next: String(repeating: "a", count: 5000)), .text(200, ""), .text(200, "<Other/>"), .text(200, "{}"),
    .text(200, "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>"),
    .text(200, "<ListBucketResult>" + String(repeating: "<a>", count: 100_000)),
  ])
  func oddPagesAreRefused(step: ScriptedServer.Step) throws {
    let desk = try Desk([step])
    let error = #expect(throws: BackupError.self) { try desk.client.list("p/") }
    #expect(error?.code == "s3-answer")
  }

  // MARK: Uploads

  private static let begun = ScriptedServer.Step.text(
    200, "<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>")
  private static let completed = ScriptedServer.Step.text(200, "<CompleteMultipartUploadResult/>")

  @Test func anUploadGoesPartByPart() throws {
    let desk = try Desk([
      Self.begun, .answer(200, fields: ["ETag": "\"a&b\""]), .answer(200, fields: ["ETag": "\"c\""]), Self.completed,
      .answer(200, fields: ["Content-Length": "3"]),
    ])
    let upload = try desk.client.beginUpload("k")
    let parts = [try desk.client.put([1, 2], as: 1, of: upload), try desk.client.put([3], as: 2, of: upload)]
    try desk.client.complete(upload, parts, bytes: 3)
    #expect(
      desk.server.received.map { "\($0.method) \($0.target)" } == [
        "POST /bucket/k?uploads=", "PUT /bucket/k?partNumber=1&uploadId=u%2F1",
        "PUT /bucket/k?partNumber=2&uploadId=u%2F1", "POST /bucket/k?uploadId=u%2F1", "HEAD /bucket/k",
      ])
    #expect(desk.server.received[0].fields["content-length"] == "0")
    #expect(desk.server.received[1].fields["content-md5"] != nil)
    let text = String(decoding: desk.server.received[3].body, as: UTF8.self)
    #expect(text.contains("<Part><PartNumber>1</PartNumber><ETag>&quot;a&amp;b&quot;</ETag></Part>"))
  }

  @Test func aRefusalBehindASuccessIsNotASuccess() throws {
    let refused = ScriptedServer.Step.text(200, "<Error><Code>InternalError</Code></Error>")
    let desk = try Desk([refused, Self.completed, .answer(200, fields: ["Content-Length": "3"])])
    try desk.client.complete(S3Upload(key: "k", id: "u"), [], bytes: 3)
    #expect(desk.server.received.count == 3)
    let other = try Desk([.text(200, "<Error><Code>InvalidPart</Code></Error>")])
    #expect(throws: BackupError.self) { try other.client.complete(S3Upload(key: "k", id: "u"), [], bytes: 3) }
    let short = try Desk([Self.completed, .answer(200, fields: ["Content-Length": "2"])])
    #expect(throws: BackupError.self) { try short.client.complete(S3Upload(key: "k", id: "u"), [], bytes: 3) }
  }

  @Test func aLostAnswerToTheEndIsMadeUpFor() throws {
    let gone = ScriptedServer.Step.text(404, "<Error><Code>NoSuchUpload</Code></Error>")
    let desk = try Desk([.cut, gone, .answer(200, fields: ["Content-Length": "3"])])
    try desk.client.complete(S3Upload(key: "k", id: "u"), [], bytes: 3)
    // What is there is not what was written.
    let other = try Desk([gone], then: .answer(200, fields: ["Content-Length": "4"]))
    #expect(throws: BackupError.self) { try other.client.complete(S3Upload(key: "k", id: "u"), [], bytes: 3) }
  }

  @Test func unfinishedUploadsAreListed() throws {
    let desk = try Desk([
      .text(
        200,
        """
        <ListMultipartUploadsResult><Upload><Key>p/a</Key><UploadId>1</UploadId></Upload>\
        <Upload><Key>q</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>
        """), .answer(204), .answer(404),
    ])
    let uploads = try desk.client.uploads("p/")
    #expect(uploads == [S3Upload(key: "p/a", id: "1")])
    for _ in 0..<2 { try desk.client.abort(uploads[0]) }
    #expect(desk.server.received.last?.target == "/bucket/p/a?uploadId=1")
  }

  @Test func unfinishedUploadsAreListedToTheEnd() throws {
    func page(_ numbers: Range<Int>, _ rest: String) -> ScriptedServer.Step {
      let uploads = numbers.map { "<Upload><Key>p/\($0)</Key><UploadId>u\($0)</UploadId></Upload>" }.joined()
      return .text(200, "<ListMultipartUploadsResult>\(uploads)\(rest)</ListMultipartUploadsResult>")
    }
    func marker(_ number: Int) -> String {
      "<IsTruncated>true</IsTruncated><NextKeyMarker>p/\(number)</NextKeyMarker>"
        + "<NextUploadIdMarker>u\(number)</NextUploadIdMarker>"
    }
    let desk = try Desk([page(0..<3, marker(2)), page(3..<5, "")])
    #expect(try desk.client.uploads("p/").map(\.id) == ["u0", "u1", "u2", "u3", "u4"])
    let target = desk.server.received.last?.target ?? ""
    #expect(target.contains("key-marker=p%2F2") && target.contains("upload-id-marker=u2"), "\(target)")
    // One that never ends.
    let odd = try Desk([], then: page(0..<1, marker(0)))
    #expect(throws: BackupError.self) { try odd.client.uploads("p/") }
    #expect(odd.server.received.count == 2)
  }

  // MARK: The bucket

  @Test func whatTheBucketKeepsIsTold() throws {
    let none = ScriptedServer.Step.text(404, "<Error><Code>ObjectLockConfigurationNotFoundError</Code></Error>")
    let cases: [([ScriptedServer.Step], BucketRetention)] = [
      ([none, .text(200, "<VersioningConfiguration/>")], .nothing),
      ([none, .text(200, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")], .versions),
      ([none, .text(200, "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>")], .nothing),
      ([.answer(403), .answer(403)], .unknown),
      ([.answer(501), .answer(501)], .unknown),
      (
        [
          .text(
            200, "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>")
        ], .locked(days: nil)
      ),
      (
        [
          .text(
            200,
            """
            <ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
            <Mode>COMPLIANCE</Mode><Days>30</Days></DefaultRetention></Rule></ObjectLockConfiguration>
            """)
        ], .locked(days: 30)
      ),
      (
        [
          .text(
            200,
            """
            <ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
            <Mode>GOVERNANCE</Mode><Years>2</Years></DefaultRetention></Rule></ObjectLockConfiguration>
            """)
        ], .locked(days: 730)
      ),
    ]
    for (steps, expected) in cases {
      let desk = try Desk(steps)
      #expect(try desk.client.keeping() == expected)
    }
  }
}
