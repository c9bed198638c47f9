import Backup
import ObjectStorage
import Platform
import StorageServers
import TestSupport
import Testing

/// The client against a real server, where the environment names one.
@Suite(.enabled(if: RealServer.isThere, Comment(rawValue: RealServer.absence)))
struct RealServerTests {
  let client: S3Client
  let prefix = "tests/\(UniversalIdentifier.random())"

  init() throws { client = try #require(try RealServer.client()) }

  @Test(arguments: ["a", "with space", "é~=+%&?#'\"<>", "a/../b", "./x", "-_.!*()"])
  func objectsOfAnyNameAreWrittenAndRead(name: String) throws {
    let key = "\(prefix)/\(name)"
    let bytes = Array("0123456789".utf8)
    #expect(try client.head(key) == nil)
    try client.put(key, bytes[...])
    #expect(try client.head(key)?.bytes == 10)
    #expect(try client.get(key, at: 0, length: 100) == bytes)
    #expect(try client.get(key, at: 3, length: 4) == Array("3456".utf8))
    #expect(try client.get(key, at: 8, length: 4) == Array("89".utf8))
    #expect(try client.get(key, at: 10, length: 4) == [])
    #expect(try client.list(prefix).objects.map(\.key) == [key])
    try client.delete(key)
    try client.delete(key)
    #expect(try client.head(key) == nil)
    let error = #expect(throws: BackupError.self) { try client.get(key, at: 0, length: 1) }
    #expect(error?.code == "s3-not-found")
  }

  @Test func ofManyConditionalWritesOneWins() throws {
    let (client, key) = (client, "\(prefix)/one")
    let outcomes = concurrently(Array(0..<8)) { number throws(Never) -> String in
      do throws(BackupError) {
        try client.put(key, [UInt8(number)], when: .absent)
        return "won \(number)"
      } catch {
        return error.code
      }
    }
    let winners = outcomes.filter { $0.hasPrefix("won") }
    #expect(winners.count == 1)
    #expect(outcomes.filter { $0 == "s3-precondition" }.count == 7)
    #expect(winners == ["won \(try client.get(key, at: 0, length: 2)[0])"])
  }

  @Test func listingsGoOnOverPages() throws {
    let (client, prefix) = (client, prefix)
    let names = (0..<1003).map { "\(prefix)/\(1000 + $0)" }
    _ = try concurrently(Array(0..<8)) { worker throws(BackupError) in
      for (index, name) in names.enumerated() where index % 8 == worker { try client.put(name, [1, 2]) }
    }
    let listing = try client.list(prefix + "/")
    #expect(listing.objects.map(\.key) == names)
    #expect(listing.objects.allSatisfy { $0.bytes == 2 && $0.modified != nil })
    #expect(listing.date != nil)
    #expect(try client.list(prefix + "/nothing").objects.isEmpty)
  }

  @Test func uploadsAreWholeOrNotThere() throws {
    let key = "\(prefix)/large"
    var generator = SeededGenerator(seed: 3)
    let first = (0..<S3Client.shortestPart).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let upload = try client.beginUpload(key)
    let parts = [
      try client.put(first[...], as: 1, of: upload), try client.put(Array("end".utf8)[...], as: 2, of: upload),
    ]
    #expect(try client.head(key) == nil)
    #expect(try client.uploads(prefix).map(\.id) == [upload.id])
    try client.complete(upload, parts, bytes: Int64(first.count) + 3)
    #expect(try client.uploads(prefix).isEmpty)
    #expect(try client.get(key, at: Int64(first.count) - 2, length: 10) == first.suffix(2) + Array("end".utf8))
    #expect(FileDigest(of: try client.get(key, at: 0, length: 1 << 23)) == FileDigest(of: first + Array("end".utf8)))
    let other = try client.beginUpload(key)
    try client.abort(other)
    try client.abort(other)
    #expect(try client.uploads(prefix).isEmpty)
  }

  @Test func wrongCredentialsAndBucketsAreTold() throws {
    let wrong = try #require(try RealServer.client(changing: ["AWS_SECRET_ACCESS_KEY": "wrong"]))
    let error = #expect(throws: BackupError.self) { try wrong.list("") }
    #expect(error?.code == "s3-credentials")
    let unknown = try #require(try RealServer.client(changing: ["AWS_ACCESS_KEY_ID": "unknown"]))
    #expect(#expect(throws: BackupError.self) { try unknown.list("") }?.code == "s3-credentials")
    let other = S3Client("lazaret-none-\(prefix.count)", client.settings)
    #expect(#expect(throws: BackupError.self) { try other.list("") }?.code == "s3-no-bucket")
  }

  @Test func bucketsSayWhatTheyKeep() throws {
    #expect(try client.keeping() == .nothing)
    if let versioned = try RealServer.client("LAZARET_S3_VERSIONED") { #expect(try versioned.keeping() == .versions) }
    if let locked = try RealServer.client("LAZARET_S3_LOCKED") { #expect(try locked.keeping() == .locked(days: nil)) }
  }
}
