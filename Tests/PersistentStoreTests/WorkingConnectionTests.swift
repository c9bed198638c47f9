import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// The connection that migration and salvage work with.
struct WorkingConnectionTests {
  private func failure(_ error: any Error) -> DatabaseFailure {
    DatabaseFailure(error, operation: "try it", path: nil)
  }

  @Test func aLongStatementEndsWithinASecondOfBeingCancelled() throws {
    let folder = try TemporaryFolder()
    let begun = ContinuousClock.now
    let asked = Mutex(0)
    let connection = try WorkingConnection(
      folder.appending("New.sqlite"), .create, label: "test", cacheKilobytes: 512
    ) {
      asked.withLock { asked in
        asked += 1
        return asked > 1
      }
    }
    do {
      _ = try connection.run { database in
        try Int.fetchOne(
          database,
          sql:
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000) SELECT count(*) FROM n"
        )
      }
      Issue.record("it was not interrupted")
    } catch {
      guard case .interrupted = failure(error) else {
        Issue.record("\(error)")
        return
      }
    }
    // Two rounds of asking; the rest is for a machine that has other work.
    #expect(ContinuousClock.now - begun < .seconds(60))
    // What comes after it works.
    let one = try connection.read { try Int.fetchOne($0, sql: "SELECT 1") }
    #expect(one == 1)
    try connection.close()
  }

  @Test func whatIsMadeIsItsOwnersAloneFromTheStart() throws {
    let folder = try TemporaryFolder()
    let (main, other) = (folder.appending("Main.sqlite"), folder.appending("Other.sqlite"))
    let connection = try WorkingConnection(main, .create, label: "test", cacheKilobytes: 512)
    try connection.run { database in
      try WorkingConnection.attach(other, .create, as: "other", to: database)
      // Before anything is in it, and with a statement that is not finished, whose journal is there.
      #expect(try FileSystem().status(of: other)?.permissions == .ownerReadWrite)
      try database.execute(sql: "CREATE TABLE other.t (x); BEGIN; INSERT INTO other.t VALUES (1)")
      for name in try FileSystem().entries(of: folder.path) {
        let status = try FileSystem().status(of: folder.path.appending(name))
        #expect(status?.permissions == .ownerReadWrite, "\(name)")
      }
      try database.execute(sql: "COMMIT")
    }
    try connection.close()
  }

  @Test func locksAndFullDisksAreEnvironmental() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("Locked %41?.sqlite")
    let first = try WorkingConnection(path, .create, label: "one", cacheKilobytes: 512)
    try first.run { try $0.execute(sql: "CREATE TABLE t (x)") }
    let second = try WorkingConnection(path, .write, label: "two", cacheKilobytes: 512)
    try first.run { try $0.execute(sql: "BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)") }
    do {
      try second.run { try $0.execute(sql: "INSERT INTO t VALUES (2)") }
      Issue.record("it was not locked")
    } catch {
      guard case .file(let error) = failure(error) else {
        Issue.record("\(error)")
        return
      }
      #expect(error.kind == .locked)
    }
    for (code, kind) in [
      (ResultCode.SQLITE_FULL, FileError.Kind.noSpace), (.SQLITE_IOERR, .inputOutput),
      (.SQLITE_CANTOPEN, .cannotOpen), (.SQLITE_NOMEM, .outOfMemory), (.SQLITE_PERM, .permissionDenied),
    ] {
      guard case .file(let error) = failure(DatabaseError(resultCode: code)) else {
        Issue.record("\(code)")
        continue
      }
      #expect(error.kind == kind)
    }
    guard case .sqlite(let code, _) = failure(DatabaseError(resultCode: .SQLITE_CORRUPT)) else {
      Issue.record("damage was taken for the environment")
      return
    }
    #expect(code == 11)
    #expect(try FileSystem().entries(of: folder.path).map(\.string).contains("Locked %41?.sqlite"))
    try first.close()
    try second.close()
  }
}
