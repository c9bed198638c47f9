import Backup
import ObjectStorage
import Platform
import Testing

struct AddressTests {
  @Test(arguments: [
    ("s3://bucket", "bucket", ""), ("s3://bucket/", "bucket", ""), ("s3://a.b-c/x/y", "a.b-c", "x/y"),
    ("s3://bucket/Stores/App é/", "bucket", "Stores/App é"),
  ])
  func addressesAreTaken(text: String, bucket: String, prefix: String) throws {
    let address = try S3Address(text)
    #expect(address.bucket == bucket)
    #expect(address.prefix == prefix)
    #expect(address.key("n") == (prefix.isEmpty ? "n" : "\(prefix)/n"))
    #expect(try S3Address(address.description) == address)
  }

  @Test(arguments: [
    "", "bucket/x", "S3://bucket", "s3://", "s3:///x", "s3://ab", "s3://Bucket", "s3://bu_cket", "s3://-bucket",
    "s3://bucket-", "s3://a..b", "s3://key:secret@bucket/x", "s3://bucket/a//b", "s3://bucket/../x", "s3://bucket/./x",
    "s3://bucket/x?secret=1", "s3://bucket/x#1", "s3://bucket/a\nb",
    "s3://bucket/" + String(repeating: "a", count: 701),
    "s3://" + String(repeating: "a", count: 64),
  ])
  func othersAreRefused(text: String) {
    let error = #expect(throws: BackupError.self) { try S3Address(text) }
    #expect(error?.code == "s3-address")
    #expect(error?.description.contains("secret") == false)
  }

  @Test(arguments: [
    ("https://storage.example", "storage.example", true, false), ("HTTPS://A.Example:443/", "a.example", true, false),
    ("http://127.0.0.1:9000", "127.0.0.1:9000", false, true), ("http://[::1]:80/", "[::1]", false, true),
    ("http://localhost", "localhost", false, true),
    ("http://127.0.0.1.evil.example", "127.0.0.1.evil.example", false, false),
    ("http://128.0.0.1", "128.0.0.1", false, false),
  ])
  func endpointsAreTaken(text: String, authority: String, isEncrypted: Bool, isLoopback: Bool) throws {
    let endpoint = try #require(S3Endpoint(text))
    #expect(endpoint.authority() == authority)
    #expect(endpoint.isEncrypted == isEncrypted)
    #expect(endpoint.isLoopback == isLoopback)
  }

  @Test(arguments: [
    "", "storage.example", "ftp://storage.example", "https://", "https://user:secret@storage.example",
    "https://storage.example:0", "https://storage.example:99999", "https://storage.example/a?b", "https://a b",
    "https://storage.example/../x", "https://[::1", "https://[evil.example]", "https://storage.example\r\nHost: x",
  ])
  func otherEndpointsAreRefused(text: String) { #expect(S3Endpoint(text) == nil) }
}
