import GRDB
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// What SQLite's result codes are owed to: the environment, the one who watches, or the content.
struct ResultCodeTests {
  @Test(arguments: [
    (ResultCode.SQLITE_BUSY, ResultCodeCause.locked), (.SQLITE_BUSY_SNAPSHOT, .locked), (.SQLITE_LOCKED, .locked),
    (.SQLITE_PROTOCOL, .locked), (.SQLITE_FULL, .noSpace), (.SQLITE_IOERR, .inputOutput),
    (.SQLITE_IOERR_READ, .inputOutput), (.SQLITE_IOERR_LOCK, .inputOutput), (.SQLITE_IOERR_NOMEM, .outOfMemory),
    (.SQLITE_NOMEM, .outOfMemory), (.SQLITE_CANTOPEN, .cannotOpen), (.SQLITE_CANTOPEN_FULLPATH, .cannotOpen),
    (.SQLITE_PERM, .permissionDenied), (.SQLITE_READONLY, .readOnly), (.SQLITE_READONLY_DBMOVED, .moved),
    (.SQLITE_NOLFS, .unsupported),
  ])
  func theEnvironmentIsNeverTakenForDamage(code: ResultCode, cause: ResultCodeCause) {
    #expect(ResultCodeCause(code) == cause)
    #expect(cause.isEnvironmental)
    let error = DatabaseError(resultCode: code)
    #expect(PersistentStoreError(error, operation: "try it", path: nil).isEnvironmental)
    #expect(DatabaseFailure(error, operation: "try it", path: nil).environmentalError != nil)
  }

  @Test(arguments: [
    ResultCode.SQLITE_CORRUPT, .SQLITE_CORRUPT_VTAB, .SQLITE_NOTADB, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH,
    .SQLITE_TOOBIG, .SQLITE_ERROR, .SQLITE_AUTH, .SQLITE_RANGE, .SQLITE_MISUSE, .SQLITE_FORMAT,
  ])
  func contentIsNeverTakenForTheEnvironment(code: ResultCode) {
    #expect(ResultCodeCause(code) == .content)
    let error = DatabaseError(resultCode: code)
    #expect(!PersistentStoreError(error, operation: "try it", path: nil).isEnvironmental)
    #expect(DatabaseFailure(error, operation: "try it", path: nil).environmentalError == nil)
  }

  @Test func anInterruptionIsNeither() {
    #expect(ResultCodeCause(.SQLITE_INTERRUPT) == .interrupted)
    #expect(!ResultCodeCause.interrupted.isEnvironmental)
    let error = DatabaseError(resultCode: .SQLITE_INTERRUPT)
    guard case .interrupted = DatabaseFailure(error, operation: "try it", path: nil) else {
      Issue.record("it is not told as an interruption")
      return
    }
  }

  @Test func errorsOfFilesStayWhatTheyAreOnTheirWay() throws {
    let missing = FileError(.notFound, operation: "read", path: "x")
    guard case .file(let error) = DatabaseFailure(missing, operation: "try it", path: nil) else {
      Issue.record("a missing file is no file error any more")
      return
    }
    #expect(error.kind == .notFound)
    #expect(DatabaseFailure(missing, operation: "try it", path: nil).environmentalError == nil)
    let locked = PersistentStoreError(.locked, operation: "read", detail: "locked")
    #expect(DatabaseFailure(locked, operation: "try it", path: nil).environmentalError?.kind == .locked)
    let memory = PersistentStoreError(.outOfMemory, operation: "read", detail: "none left")
    #expect(DatabaseFailure(memory, operation: "try it", path: nil).environmentalError?.code == "out-of-memory")
    #expect(DatabaseFailure(Errno.tooManyOpenFiles, operation: "try it", path: nil).environmentalError != nil)
  }

  @Test func theLimitsOfASchemaScriptAreItsOwnFault() throws {
    // 16,384 pages and 16 MB a value are what a script may have.
    for statement in [
      "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        + "SELECT zeroblob(1000000) AS b FROM n",
      "CREATE TABLE t AS SELECT zeroblob(20000000) AS b",
    ] {
      let script = try SchemaScript(statement)
      let error = #expect(throws: PersistentStoreError.self) { try StoreCreation.bytes(of: script) }
      #expect(error?.kind == .schemaScriptRefused)
      #expect(error?.isEnvironmental == false)
    }
  }

  // MARK: Lines of the integrity check

  @Test func troubleOfReadingIsFoundInTheLinesOfACheck() {
    #expect(
      IntegrityCheck.resultCode(in: "Tree 2 page 7: unable to get the page. error code=266") == .SQLITE_IOERR_READ)
    #expect(IntegrityCheck.resultCode(in: "On page 3: btreeInitPage() returns error code 11") == .SQLITE_CORRUPT)
    for line in ["ok", "Page 4 is never used", "error code=", "wrong # of entries in index ZINDEX", "code 7"] {
      #expect(IntegrityCheck.resultCode(in: line) == nil)
    }
  }

  @Test func aDamagedTableIsFoundByTheCheck() throws {
    let folder = try TemporaryFolder()
    let path = folder.appending("App.sqlite")
    let queue = try DatabaseQueue(path: path.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1), (2), (3)")
      #expect(try IntegrityCheck.lines(of: database) == ["ok"])
      #expect(try IntegrityCheck.lines(of: database, table: "t") == ["ok"])
      // An index without its entries.
      try database.execute(
        sql: "CREATE TABLE empty (x); PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = "
          + "(SELECT rootpage FROM sqlite_master WHERE name = 'empty') WHERE name = 't'; PRAGMA writable_schema = RESET"
      )
      #expect(try IntegrityCheck.lines(of: database, table: "t") != ["ok"])
      #expect(try IntegrityCheck.lines(of: database, limit: 1).count == 1)
    }
    try queue.close()
  }
}
