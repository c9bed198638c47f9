import Backup
import Foundation
import Platform

/// A storage lock: a randomly named object, rewritten periodically.
///
/// A process writes its lock, lists the others, and withdraws if it finds a live one: of two at once at least one sees
/// the other, since listings are consistent. An expired lock is a dead process's; an empty one was released where
/// deletion is forbidden.
final class StorageLock: BackupPlaceLock {
  /// The seconds a lock holds after its last write, by the server's clock.
  private static let lease: Int64 = 900

  private static let renewal = 120

  /// The milliseconds to wait for another process, and between two checks.
  private static let patience = 60_000
  private static let longestPause = 4000

  private let key: String
  private let place: ObjectStoragePlace
  private let isReleased = Mutex(false)

  init(of place: ObjectStoragePlace) throws {
    self.place = place
    let name = "\(UniversalIdentifier.random())"
    key = place.address.key(StorageContents.locks + name)
    let (client, key) = (place.client, key)
    var waited = 0
    while true {
      let isFree = try asking { () throws(BackupError) in
        try client.put(key, [1])
        let contents = StorageContents(try client.list(place.address.key(StorageContents.locks)), of: place.address)
        let others = contents.locks.filter { $0.key != StorageContents.locks + name }
        guard others.allSatisfy({ Self.isOver($0, at: contents.date) }) else { return false }
        // An expired lock is harmless if it stays.
        for lock in others where !Self.isChecking(lock, at: contents.date) {
          try? client.delete(place.address.key(lock.key))
        }
        return true
      }
      if isFree { break }
      try asking { () throws(BackupError) in try Self.release(key, client) }
      guard waited < Self.patience else { throw Self.taken(place) }
      waited += max(200, client.pause(upTo: Self.longestPause))
    }
    let state = place.state
    state.holds(until: .now + .seconds(Self.lease / 2))
    let isReleased = isReleased
    WorkThread.start(named: "lock of the backups", stackSize: 1 << 20) {
      var seconds = 0
      while !isReleased.withLock({ $0 }) {
        Thread.sleep(forTimeInterval: 1)
        seconds += 1
        guard seconds.isMultiple(of: Self.renewal) else { continue }
        do throws(BackupError) {
          // Hold the mutex: the release must come last.
          try isReleased.withLock { (isReleased) throws(BackupError) in
            // A lost lock stays lost: another process may have held it since.
            guard !isReleased, !state.hasLostLock else { return }
            try client.put(key, [1])
            if !state.hasLostLock { state.holds(until: .now + .seconds(Self.lease / 2)) }
          }
        } catch {
          // The next renewal retries; without success the lock is lost, and uploads are not committed.
        }
      }
    }
  }

  deinit {
    isReleased.withLock { $0 = true }
    place.state.holds(until: nil)
    // A lock that stays expires.
    try? Self.release(key, place.client)
  }

  /// Deletes the lock, or empties it where deletion is forbidden.
  private static func release(_ key: String, _ client: S3Client) throws(BackupError) {
    do throws(BackupError) {
      try client.delete(key)
    } catch  where error.kind == .s3Access {
      try client.put(key, [])
    }
  }

  /// Whether it is another process's running check of conditional writes.
  private static func isChecking(_ lock: S3ObjectFacts, at date: Timestamp?) -> Bool {
    lock.key.hasPrefix("\(StorageContents.locks)check-") && isExpired(lock, at: date) == false
  }

  private static func isOver(_ lock: S3ObjectFacts, at date: Timestamp?) -> Bool {
    lock.bytes == 0 || isExpired(lock, at: date) == true
  }

  /// Whether the lease has passed; nil if unknown.
  private static func isExpired(_ lock: S3ObjectFacts, at date: Timestamp?) -> Bool? {
    guard let date, let modified = lock.modified else { return nil }
    return date.secondsSince1970 &- modified.secondsSince1970 > lease
  }

  /// Whether the server honours conditional writes.
  ///
  /// A bucket with versions or object lock keeps replaced objects and need not (Ceph's gateway 16 ignores conditions
  /// there).
  ///
  /// - Throws: `s3-unsupported` if writes are neither conditional nor kept.
  static func keepsToConditions(_ client: S3Client, _ address: S3Address) throws(BackupError) -> Bool {
    let key = address.key("\(StorageContents.locks)check-\(UniversalIdentifier.random())")
    try client.put(key, [], when: .absent)
    var isKept = false
    do throws(BackupError) {
      try client.put(key, [], when: .absent)
    } catch  where error.kind == .s3Precondition {
      isKept = true
    }
    do throws(BackupError) {
      try client.delete(key)
    } catch  where error.kind == .s3Access {
      // The empty object counts as no lock.
    }
    if isKept { return true }
    switch try client.keeping() {
    case .versions, .locked: return false
    case .nothing, .unknown:
      throw BackupError(
        .s3Unsupported, operation: "write to the object storage",
        detail: "the server replaces an object that it was told to write only where there is none")
    }
  }

  private static func taken(_ place: ObjectStoragePlace) -> BackupError {
    BackupError(
      FileError(
        .locked, operation: "lock the backups", detail: "another process works on \(place.location)",
        hint: "Run it again when that is done; what a process left that is gone holds for \(lease / 60) minutes."))
  }

  /// The error of a lock that was not renewed in time: another process may have changed the place.
  static func lost(_ place: ObjectStoragePlace) -> BackupError {
    BackupError(
      FileError(
        .locked, operation: "write the backup", detail: "the lock of \(place.location) could not be kept",
        hint: "Run the same command again when the connection is stable."))
  }
}
