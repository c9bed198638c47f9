import Backup
import GRDB
import ObjectStorage
import Platform
import StorageServers
import SystemPackage
import TestSupport
import Testing

/// Whole backups, from their creation to their removal, in every kind of place.
struct StorageBackupTests {
  /// A store in a folder of its own.
  struct Scene {
    let folder: TemporaryFolder
    let store: FilePath

    init() throws {
      folder = try TemporaryFolder()
      store = folder.appending("App.sqlite")
      try run(
        """
        CREATE TABLE cars (id INTEGER PRIMARY KEY, name TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO cars SELECT i, hex(i * 7919 % 10007) || i FROM n;
        """)
    }

    func run(_ sql: String) throws {
      let queue = try DatabaseQueue(path: store.string)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
    }

    static func sum(_ path: FilePath) throws -> String? {
      let queue = try DatabaseQueue(path: path.string)
      defer { try? queue.close() }
      return try queue.read {
        try String.fetchOne($0, sql: "SELECT count(*) || ' ' || sum(id) || ' ' || max(name) FROM cars")
      }
    }

    func surroundings(_ minute: Int) throws -> Surroundings {
      let time = try #require(Timestamp("2026-11-21T10:\(minute):12Z"))
      return Surroundings(fileSystem: FileSystem(), now: { time }, makeUUID: Surroundings.machine.makeUUID)
    }

    func back(
      up minute: Int, in place: any BackupPlace, _ change: (inout BackupRequest) -> Void = { _ in }
    ) throws -> StoredBackup {
      var request = BackupRequest()
      change(&request)
      return try BackupCreator(surroundings: surroundings(minute), temporary: folder.path)
        .create(store, in: place, request)
    }
  }

  @Test(arguments: PlaceKind.present)
  func aBackupIsTakenProvenRestoredDroppedAndBroughtBack(kind: PlaceKind) throws {
    let (scene, made) = (try Scene(), try kind.make())
    let first = try scene.back(up: 10, in: made.place())
    let before = try Scene.sum(scene.store)
    try scene.run("UPDATE cars SET name = 'z' WHERE id = 77")
    let second = try scene.back(up: 11, in: made.place())
    #expect(second.manifest?.kind == .delta)
    let catalog = try BackupCatalog(of: made.place())
    #expect(catalog.backups.map(\.id) == [second.id, first.id])
    #expect(catalog.backups.allSatisfy { $0.isWhole && $0.isProvenGood })
    for (backup, sum) in [(first, before), (second, try Scene.sum(scene.store))] {
      let path = scene.folder.appending("\(backup.id).restored.sqlite")
      _ = try BackupRestorer(of: made.place()).restore(backup.id, to: path)
      #expect(try Scene.sum(path) == sum)
    }
    var options = BackupProver.Options { _, _, _ in true }
    options.depth = .restored
    let proof = try BackupProver(surroundings: .machine, temporary: scene.folder.path).prove(
      second.id, in: catalog, options)
    #expect(proof.result == .proven)
    try scene.run("UPDATE cars SET name = 'y'")
    let third = try scene.back(up: 12, in: made.place()) { $0.isFull = true }
    let pruner = BackupPruner(of: made.place(), surroundings: try scene.surroundings(13))
    let report = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(verifies: true))
    #expect(Set(report.plan.dropped.map(\.id)) == [first.id, second.id])
    #expect(try BackupCatalog(of: made.place()).backups.map(\.id) == [third.id])
    #expect(try pruner.trash().map(\.id) == [second.id, first.id])
    #expect(try pruner.undelete(second.id) == [first.id, second.id])
    #expect(try BackupCatalog(of: made.place()).backups.map(\.id) == [third.id, second.id, first.id])
    let path = scene.folder.appending("again.sqlite")
    _ = try BackupRestorer(of: made.place()).restore(first.id, to: path)
    #expect(try Scene.sum(path) == before)
    let last = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    #expect(last.plan.dropped.count == 2)
    _ = try BackupPruner(of: made.place(), surroundings: try scene.surroundings(14))
      .prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 0))
    #expect(try made.place().list(.trash).isEmpty)
    #expect(try Set(made.place().list(.kept).map { $0.name.prefix(21) }) == [Substring(third.id.description)])
  }

  @Test(arguments: PlaceKind.present)
  func anEncryptedBackupIsReadWithItsKeyAlone(kind: PlaceKind) throws {
    let (scene, made) = (try Scene(), try kind.make())
    let identity = AgeIdentity()
    let keyFile = scene.folder.appending("BackupKeys/next.key")
    let encryption = BackupEncryption(to: [identity.recipient], deltaKeyFile: keyFile)
    let first = try scene.back(up: 10, in: made.place()) { $0.encryption = encryption }
    try scene.run("UPDATE cars SET name = 'z' WHERE id = 77")
    let second = try scene.back(up: 11, in: made.place()) { $0.encryption = encryption }
    #expect(try BackupCatalog(of: made.place()).backups.allSatisfy { $0.manifest?.isLocked == true })
    let place = made.place()
    let open = (place as? FolderPlace)?.unlocked(with: [identity]) as (any BackupPlace)?
    let unlocked = try #require(open ?? (place as? ObjectStoragePlace)?.unlocked(with: [identity]))
    #expect(try BackupCatalog(of: unlocked).backup(second.id).manifest?.parent == first.id)
    let path = scene.folder.appending("restored.sqlite")
    _ = try BackupRestorer(of: unlocked).restore(second.id, to: path)
    #expect(try Scene.sum(path) == Scene.sum(scene.store))
    let error = #expect(throws: BackupError.self) {
      _ = try BackupRestorer(of: made.place()).restore(second.id, to: scene.folder.appending("other.sqlite"))
    }
    #expect(error?.code == "backup-encrypted")
    #expect(throws: BackupError.self) { _ = try scene.back(up: 12, in: made.place()) }
  }

  // MARK: What goes wrong

  @Test func aRunThatEndsAnywhereLeavesNoHalfBackup() throws {
    let scene = try Scene()
    let probe = try MemoryBucket()
    let address = try S3Address("s3://bucket/p")
    _ = try scene.back(up: 10, in: ObjectStoragePlace(address, probe.client()))
    let total = probe.requests
    #expect(total > 10)
    for stop in 0..<total {
      // From some request on nothing comes through any more, until the next run.
      let isDown = Mutex(true)
      let bucket = try MemoryBucket { request in
        request.number >= stop && isDown.withLock { $0 } ? (request.number == stop ? .cutAfter : .cutBefore) : nil
      }
      let place = ObjectStoragePlace(address, bucket.client(attempts: 1))
      let isDone: Bool
      do {
        _ = try scene.back(up: 10, in: place)
        isDone = true
      } catch is any ReportableError {
        isDone = false
      }
      isDown.withLock { $0 = false }
      let backups = try BackupCatalog(of: ObjectStoragePlace(address, bucket.client())).backups
      #expect(backups.filter { !$0.isWhole }.isEmpty, "request \(stop)")
      #expect(backups.count == 1 || !isDone, "request \(stop)")
    }
  }

  @Test func afterARunThatEndedTheNextOneGoesOn() throws {
    let scene = try Scene()
    let isDown = Mutex(false)
    let bucket = try MemoryBucket { request in
      // The manifest never comes through, and nothing after it.
      if request.method == "PUT", request.key.hasSuffix("-10-10-12.json") { isDown.withLock { $0 = true } }
      return isDown.withLock { $0 } ? .cutBefore : nil
    }
    let address = try S3Address("s3://bucket/p")
    #expect(throws: BackupError.self) {
      _ = try scene.back(up: 10, in: ObjectStoragePlace(address, bucket.client(attempts: 1)))
    }
    #expect(bucket.keys.contains { $0.hasSuffix(".sqlite.gz") })
    #expect(bucket.keys.contains { $0.hasPrefix("p/begun/") })
    #expect(bucket.keys.contains { $0.hasPrefix("p/locks/") })
    isDown.withLock { $0 = false }
    // Its lock holds for as long as it could be there still.
    #expect(throws: BackupError.self) { _ = try scene.back(up: 11, in: ObjectStoragePlace(address, bucket.client())) }
    bucket.advance(seconds: 901)
    let next = try scene.back(up: 11, in: ObjectStoragePlace(address, bucket.client()))
    #expect(bucket.keys.allSatisfy { $0.hasPrefix("p/\(next.id).") })
  }

  @Test func aServerThatIgnoresConditionsIsRefused() throws {
    let bucket = try MemoryBucket(ignoringConditions: true)
    let place = ObjectStoragePlace(try S3Address("s3://bucket/p"), bucket.client())
    let error = #expect(throws: BackupError.self) { _ = try place.lock() }
    #expect(error?.code == "s3-unsupported")
    #expect(bucket.keys.isEmpty)
  }

  @Test func whereVersionsAreKeptAFileIsLookedForFirst() throws {
    let scene = try Scene()
    let bucket = try MemoryBucket(ignoringConditions: true, keepingVersions: true)
    let place = ObjectStoragePlace(try S3Address("s3://bucket/p"), bucket.client())
    let backup = try scene.back(up: 10, in: place)
    #expect(try BackupCatalog(of: place).backups.map(\.id) == [backup.id])
    let lock = try place.lock()
    let upload = try place.begin("\(backup.id).json")
    try upload.append([1])
    let error = #expect(throws: BackupError.self) { try upload.commit() }
    #expect(error?.kind == .nameTaken)
    withExtendedLifetime(lock) {}
  }

  @Test(
    .enabled(if: RealServer.isThere, Comment(rawValue: RealServer.absence)),
    arguments: ["LAZARET_S3_VERSIONED", "LAZARET_S3_LOCKED"])
  func realBucketsThatKeepVersionsHoldBackups(variable: String) throws {
    guard let client = try RealServer.client(variable) else { return }
    let scene = try Scene()
    let address = try S3Address("s3://\(client.bucket)/tests/\(UniversalIdentifier.random())")
    let place = ObjectStoragePlace(address, client)
    let backup = try scene.back(up: 10, in: place)
    try scene.run("UPDATE cars SET name = 'y'")
    _ = try scene.back(up: 11, in: place) { $0.isFull = true }
    let pruner = BackupPruner(of: place, surroundings: try scene.surroundings(12))
    #expect(try pruner.prune(RetentionPolicy(last: .number(1))).plan.dropped.map(\.id) == [backup.id])
    #expect(try BackupCatalog(of: place).backups.count == 1)
    #expect(try pruner.undelete(backup.id) == [backup.id])
    #expect(try BackupCatalog(of: place).backups.count == 2)
    #expect([BucketRetention.versions, .locked(days: nil)].contains(try place.keeping()))
  }

  @Test func theLockHoldsOthersOff() throws {
    let bucket = try MemoryBucket()
    let address = try S3Address("s3://bucket/p")
    let lock = try ObjectStoragePlace(address, bucket.client()).lock()
    let error = #expect(throws: BackupError.self) { _ = try ObjectStoragePlace(address, bucket.client()).lock() }
    #expect(error?.code == "locked")
    withExtendedLifetime(lock) {}
    #expect(bucket.keys.filter { $0.hasPrefix("p/locks/") }.count <= 1)
  }

  @Test func whereNothingCanBeRemovedBackupsAreTakenAllTheSame() throws {
    let scene = try Scene()
    let bucket = try MemoryBucket { $0.method == "DELETE" ? .forbid : nil }
    let place = { ObjectStoragePlace(try S3Address("s3://bucket/p"), bucket.client()) }
    _ = try scene.back(up: 10, in: try place())
    let second = try scene.back(up: 11, in: try place())
    #expect(try BackupCatalog(of: try place()).backups.count == 2)
    let pruner = BackupPruner(of: try place(), surroundings: try scene.surroundings(14))
    // What is dropped stays in the trash.
    try scene.run("UPDATE cars SET name = 'y'")
    _ = try scene.back(up: 13, in: try place()) { $0.isFull = true }
    _ = try pruner.prune(RetentionPolicy(last: .number(1)), options: .init(trashDays: 7))
    let error = #expect(throws: BackupError.self) { _ = try pruner.undelete(second.id) }
    #expect(error?.code == "s3-access")
  }

  @Test func onePrefixIsForOneStore() throws {
    let (scene, other) = (try Scene(), try Scene())
    let bucket = try MemoryBucket()
    let place = ObjectStoragePlace(try S3Address("s3://bucket/p"), bucket.client())
    try place.claim(for: scene.store, isEncrypted: false)
    try place.claim(for: scene.store, isEncrypted: false)
    let error = #expect(throws: BackupError.self) { try place.claim(for: other.store, isEncrypted: false) }
    #expect(error?.code == "backup-of-other-store")
    try place.requireOwn(scene.store)
    #expect(throws: BackupError.self) { try place.requireOwn(other.store) }
    let quiet = ObjectStoragePlace(try S3Address("s3://bucket/q"), bucket.client())
    try quiet.claim(for: scene.store, isEncrypted: true)
    #expect(!bucket.keys.contains { $0.hasPrefix("q/") })
  }

  @Test func aPartOfABackupIsReadWithoutTheRest() throws {
    let scene = try Scene()
    try scene.run(
      """
      CREATE TABLE blobs (id INTEGER PRIMARY KEY, data BLOB);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
      INSERT INTO blobs SELECT i, randomblob(1000000) FROM n;
      """)
    let bucket = try MemoryBucket()
    let place = ObjectStoragePlace(try S3Address("s3://bucket/p"), bucket.client())
    let backup = try scene.back(up: 10, in: place) { $0.proves = false }
    let before = bucket.bytesRead
    let name = "\(backup.id).sqlite.gz"
    #expect(try place.read(name, in: .kept, at: 5_000_000, length: 100_000).count == 100_000)
    #expect(bucket.bytesRead - before == 100_000)
    #expect(bucket.openUploads == 0)
  }
}
