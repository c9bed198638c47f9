import ObjectStorage
import Platform
import Testing

/// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header: Transferring Payload in
/// a Single Chunk", with the signatures that stand there.
struct SignatureTests {
  static let signer = RequestSigner(
    credentials: S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    region: "us-east-1")

  struct Example: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var request: HTTPRequest
    var signed: String
    var signature: String
  }

  private static func request(
    _ method: HTTPRequest.Method, _ path: String, query: [(name: String, value: String)] = [],
    fields: [(name: String, value: String)] = [], body: String = ""
  ) -> HTTPRequest {
    HTTPRequest(
      method: method, authority: "examplebucket.s3.amazonaws.com", path: path, query: query, fields: fields,
      body: Array(body.utf8)[...])
  }

  static let examples = [
    Example(
      testDescription: "GET Object", request: request(.get, "/test.txt", fields: [("Range", "bytes=0-9")]),
      signed: "host;range;x-amz-content-sha256;x-amz-date",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      testDescription: "PUT Object",
      request: request(
        .put, "/" + PercentEncoding.encode("test$file.text", keepsSlashes: true),
        fields: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
        body: "Welcome to Amazon S3."),
      signed: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      testDescription: "GET Bucket Lifecycle", request: request(.get, "/", query: [("lifecycle", "")]),
      signed: "host;x-amz-content-sha256;x-amz-date",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      testDescription: "GET Bucket (List Objects)",
      request: request(.get, "/", query: [("prefix", "J"), ("max-keys", "2")]),
      signed: "host;x-amz-content-sha256;x-amz-date",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: examples)
  func publishedExamplesHaveTheirSignatures(example: Example) throws {
    let date = try #require(Timestamp("2013-05-24T00:00:00Z"))
    let fields = Self.signer.fields(of: example.request, at: date)
    let expected =
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
      + "SignedHeaders=\(example.signed),Signature=\(example.signature)"
    #expect(fields.last?.name == "authorization")
    #expect(fields.last?.value == expected)
  }

  @Test func whatIsSignedIsSent() throws {
    var request = Self.request(.get, "/a", query: [("b", "ä /~"), ("a-b", "2"), ("a", "1")])
    #expect(request.encodedQuery == "a=1&a-b=2&b=%C3%A4%20%2F~")
    request.fields = [("x-amz-meta-a", "  one   two ")]
    let signer = RequestSigner(
      credentials: S3Credentials(accessKey: "k", secretKey: "s", sessionToken: "token"), region: "eu-west-1")
    let fields = signer.fields(of: request, at: Timestamp(secondsSince1970: 0))
    #expect(fields.map(\.name).dropLast().sorted() == fields.map(\.name).dropLast())
    #expect(fields.first { $0.name == "x-amz-security-token" }?.value == "token")
    #expect(fields.first { $0.name == "x-amz-meta-a" }?.value == "one two")
    #expect(fields.first { $0.name == "x-amz-date" }?.value == "19700101T000000Z")
  }

  @Test func keysAreEncodedByteByByte() {
    #expect(PercentEncoding.encode("a/b=c~d+é", keepsSlashes: true) == "a/b%3Dc~d%2B%C3%A9")
    #expect(PercentEncoding.decode("a%2Fb+c%2B%C3%A9", plusIsSpace: true) == "a/b c+é")
    for bad in ["%", "%4", "%zz", "%FF"] { #expect(PercentEncoding.decode(bad[...]) == nil) }
  }
}
