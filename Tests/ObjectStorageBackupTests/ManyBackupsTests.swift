import Backup
import Foundation
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// The reading of many manifests at once, held against the same backups in a folder, which is read one by one.
struct ManyBackupsTests {
  /// Lets the server take its time for manifests, and notes how many it is asked for at once.
  private final class Watch: Sendable {
    private let state = Mutex((now: 0, most: 0, isWatching: false))

    var most: Int { state.withLock { $0.most } }

    func begin() { state.withLock { $0.isWatching = true } }

    func look(at request: MemoryBucket.Summary) {
      guard request.method == "GET", request.key.hasSuffix(".json") || request.key.hasSuffix(".manifest.age") else {
        return
      }
      let isWatching = state.withLock { state in
        state.now += 1
        if state.isWatching { state.most = max(state.most, state.now) }
        return state.isWatching
      }
      if isWatching { Thread.sleep(forTimeInterval: 0.02) }
      state.withLock { $0.now -= 1 }
    }
  }

  private static let count = 20

  /// Takes backups of a small store.
  private func fill(
    _ place: any BackupPlace, _ count: Int = count, _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> [BackupIdentifier] {
    let scene = try StorageBackupTests.Scene()
    try scene.run("DELETE FROM cars WHERE id > 10; VACUUM")
    return try (0..<count).map { number in
      try scene.back(up: 10 + number, in: place) { request in
        request.isFull = true
        change(&request)
      }.id
    }
  }

  /// The same objects in a folder.
  private func copy(_ place: any BackupPlace, to folder: TemporaryFolder) throws -> FolderPlace {
    for object in try place.list(.kept) {
      let bytes = try place.read(object.name, in: .kept, at: 0, length: Int(object.bytes) + 1)
      try folder.write(bytes, to: "Backups/App/\(object.name)")
    }
    return FolderPlace(folder.appending("Backups/App"), in: FileSystem())
  }

  /// What a catalogue says, in its order; the objects of a backup have none.
  private func content(_ catalog: BackupCatalog) -> [StoredBackup] {
    catalog.backups.map { backup in
      var backup = backup
      backup.objects.sort { $0.name < $1.name }
      return backup
    }
  }

  @Test func severalAreAskedForAtOnceAndNotMany() throws {
    let watch = Watch()
    let bucket = try MemoryBucket { request in
      watch.look(at: request)
      return nil
    }
    let address = try S3Address("s3://bucket/p")
    let place = ObjectStoragePlace(address, bucket.client())
    let ids = try fill(place)
    let folder = try TemporaryFolder()
    let sequential = try BackupCatalog(of: copy(place, to: folder))
    #expect(sequential.backups.map(\.id) == ids.reversed())
    watch.begin()
    let before = bucket.requests
    let catalog = try BackupCatalog(of: ObjectStoragePlace(address, bucket.client()))
    let asked = bucket.requests - before
    #expect((2...8).contains(watch.most), "\(watch.most)")
    #expect(content(catalog) == content(sequential))
    #expect(catalog.backups.allSatisfy { $0.isWhole && $0.isProvenGood })
    // Each manifest and each proof once, and the list in pages of seven.
    let objects = try place.list(.kept).count
    #expect(asked <= 2 * Self.count + objects / 7 + 1, "\(asked)")
  }

  @Test func thoseThatAKeyOpensToo() throws {
    let watch = Watch()
    let bucket = try MemoryBucket { request in
      watch.look(at: request)
      return nil
    }
    let address = try S3Address("s3://bucket/p")
    let identity = AgeIdentity()
    let folder = try TemporaryFolder()
    let encryption = BackupEncryption(
      to: [identity.recipient], deltaKeyFile: folder.appending("BackupKeys/next.key"))
    let ids = try fill(ObjectStoragePlace(address, bucket.client()), 6) { $0.encryption = encryption }
    watch.begin()
    let place = ObjectStoragePlace(address, bucket.client()).unlocked(with: [identity])
    // Before any is read as a backup it is looked which of them the key opens.
    #expect(try place.list(.kept).contains { $0.name == "\(ids[0]).json" })
    #expect((2...8).contains(watch.most), "\(watch.most)")
    let catalog = try BackupCatalog(of: place)
    #expect(catalog.backups.map(\.id) == ids.reversed())
    #expect(catalog.backups.allSatisfy { $0.isWhole && $0.manifest?.isLocked != true })
  }

  @Test func ofSeveralErrorsThatOfTheEarliestBackupIsTold() throws {
    let faults = Mutex<[String: MemoryBucket.Fault]>([:])
    let bucket = try MemoryBucket { request in
      guard request.method == "GET", let fault = faults.withLock({ $0[request.key] }) else { return nil }
      // The one that is to be told comes last.
      if case .forbid = fault { Thread.sleep(forTimeInterval: 0.05) }
      return fault
    }
    let address = try S3Address("s3://bucket/p")
    let ids = try fill(ObjectStoragePlace(address, bucket.client()))
    for (earlier, later) in [(0, 19), (3, 4), (2, 17), (9, 10)] {
      for isFirstForbidden in [true, false] {
        let (one, other) = isFirstForbidden ? (earlier, later) : (later, earlier)
        faults.withLock {
          $0 = ["p/\(ids[one]).json": .forbid, "p/\(ids[other]).json": .refuse]
        }
        let error = #expect(throws: BackupError.self) {
          _ = try BackupCatalog(of: ObjectStoragePlace(address, bucket.client(attempts: 2)))
        }
        #expect(error?.code == (isFirstForbidden ? "s3-access" : "s3-server"), "\(earlier), \(later)")
      }
    }
    faults.withLock { $0 = [:] }
    #expect(try BackupCatalog(of: ObjectStoragePlace(address, bucket.client())).backups.count == Self.count)
  }

  @Test func aBackupThatIsRemovedMeanwhileIsLeftOut() throws {
    let bucket = try MemoryBucket()
    let address = try S3Address("s3://bucket/p")
    let ids = try fill(ObjectStoragePlace(address, bucket.client()))
    let vanishing = VanishingPlace(
      base: ObjectStoragePlace(address, bucket.client()), gone: [ids[5].description, ids[12].description])
    let catalog = try BackupCatalog(of: vanishing)
    #expect(
      catalog.backups.map(\.id) == ids.enumerated().filter { ![5, 12].contains($0.offset) }.map(\.element).reversed())
  }
}

/// A place whose list is older than what can be read: some backups were removed since.
private struct VanishingPlace: BackupPlace {
  let base: ObjectStoragePlace
  let gone: Set<String>
  private let lists = Mutex(0)

  init(base: ObjectStoragePlace, gone: Set<String>) {
    self.base = base
    self.gone = gone
  }

  var location: String { base.location }
  var readsAtOnce: Int { base.readsAtOnce }

  private func isGone(_ name: String) -> Bool { gone.contains { name.hasPrefix($0) } }

  func list(_ section: BackupSection) throws -> [BackupObject] {
    let isFirst = lists.withLock { lists in
      defer { lists += 1 }
      return lists == 0
    }
    let all = try base.list(section)
    return isFirst ? all : all.filter { !isGone($0.name) }
  }

  func read(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws -> [UInt8] {
    if isGone(name) { throw BackupError(FileError(.notFound, operation: "read", detail: "it is gone")) }
    return try base.read(name, in: section, at: offset, length: length)
  }

  func begin(_ name: String) throws -> any BackupUpload { try base.begin(name) }
  func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws {
    try base.replace(name, with: bytes, in: section)
  }
  func move(_ name: String, from: BackupSection, to: BackupSection) throws {
    try base.move(name, from: from, to: to)
  }
  func delete(_ name: String, in section: BackupSection) throws { try base.delete(name, in: section) }
  func removeUnfinished() throws { try base.removeUnfinished() }
  func lock() throws -> any BackupPlaceLock { try base.lock() }
}
