import Backup
import ObjectStorage
import Platform
import StorageServers
import TestSupport
import Testing

/// What the places of backups are made of: all keep to one contract.
enum PlaceKind: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case folder
  case memory
  case faultyMemory
  case realServer

  var testDescription: String { rawValue }

  /// Those that there are; the real server only where the environment names one.
  static var present: [PlaceKind] { allCases.filter { $0 != .realServer || RealServer.isThere } }

  /// A new place of this kind.
  func make() throws -> MadePlace {
    switch self {
    case .folder:
      let folder = try TemporaryFolder()
      let path = folder.appending("Backups/App")
      return MadePlace(place: { FolderPlace(path, in: FileSystem()) }, holder: folder)
    case .memory:
      let bucket = try MemoryBucket()
      return try MadePlace.storage("bucket", "p", holder: bucket) { bucket.client() }
    case .faultyMemory:
      // Every third request goes wrong, each time in another way.
      // What is asked for again comes through, however many ask at once.
      let failed = Mutex<Set<String>>([])
      let bucket = try MemoryBucket { request in
        let name = "\(request.method) \(request.key)"
        guard failed.withLock({ $0.remove(name) }) == nil, request.number % 3 == 2 else { return nil }
        failed.withLock { _ = $0.insert(name) }
        return [.refuse, .cutBefore, .cutAfter][request.number / 3 % 3]
      }
      return try MadePlace.storage("bucket", "p", holder: bucket) { bucket.client() }
    case .realServer:
      guard let client = try RealServer.client() else { throw NoServer() }
      let prefix = "tests/\(UniversalIdentifier.random())"
      return try MadePlace.storage(client.bucket, prefix, holder: nil) { client }
    }
  }

  struct NoServer: Error {}
}

/// A place that a test was made, and what it is gone with.
struct MadePlace {
  /// The place, as another process would open it.
  let place: () -> any BackupPlace

  let holder: AnyObject?

  static func storage(
    _ bucket: String, _ prefix: String, holder: AnyObject?, _ client: @escaping () throws -> S3Client
  ) throws -> MadePlace {
    let (address, client) = (try S3Address("s3://\(bucket)/\(prefix)"), try client())
    return MadePlace(place: { ObjectStoragePlace(address, client) }, holder: holder)
  }
}
