import GRDB
import Lazaret
import PersistentStore
import SystemPackage
import TestSupport
import Testing

/// Trouble of the environment at the calls of SQLite and of ours while a store is opened: the opening ends well or with an
/// environmental error, the next one goes on, and no store is replaced by an empty one.
///
/// A few calls of each kind are chosen; all of them with LAZARET_LONG=1.
struct EnvironmentTests {
  private static let isLong = environment("LAZARET_LONG") != nil

  // MARK: SQLite's calls

  /// The codes that a system in trouble gives, at the calls that it gives them at.
  static let faults: [SQLiteTrouble.Fault] = [
    fault(.open, .SQLITE_CANTOPEN), fault(.open, .SQLITE_PERM), fault(.open, .SQLITE_NOMEM),
    fault(.read, .SQLITE_IOERR_READ), fault(.read, .SQLITE_IOERR_NOMEM),
    fault(.write, .SQLITE_FULL), fault(.write, .SQLITE_IOERR_WRITE),
    fault(.truncate, .SQLITE_IOERR_TRUNCATE), fault(.truncate, .SQLITE_FULL),
    fault(.synchronize, .SQLITE_IOERR_FSYNC),
    fault(.size, .SQLITE_IOERR_FSTAT),
    fault(.lock, .SQLITE_BUSY), fault(.lock, .SQLITE_LOCKED), fault(.lock, .SQLITE_IOERR_LOCK),
    fault(.lock, .SQLITE_PERM),
    fault(.mapIndex, .SQLITE_CANTOPEN), fault(.mapIndex, .SQLITE_IOERR_SHMMAP), fault(.mapIndex, .SQLITE_NOMEM),
    fault(.lockIndex, .SQLITE_BUSY), fault(.lockIndex, .SQLITE_IOERR_SHMLOCK),
    fault(.delete, .SQLITE_IOERR_DELETE),
    fault(.access, .SQLITE_IOERR_ACCESS), fault(.access, .SQLITE_NOMEM),
  ]

  private static func fault(_ call: SQLiteTrouble.Call, _ code: ResultCode) -> SQLiteTrouble.Fault {
    SQLiteTrouble.Fault(call, "\(code)", code.rawValue)
  }

  @Test(arguments: TroubledScene.State.allCases, faults)
  func noCallOfSQLiteIsTakenForDamage(state: TroubledScene.State, fault: SQLiteTrouble.Fault) throws {
    let undisturbed = try TroubledScene(state)
    let rehearsal = SQLiteTrouble(fault, atCall: 0, below: undisturbed.folder.string)
    try rehearsal.run { try undisturbed.open() }.store.close()
    // Every opening makes these calls; else the trouble is not where SQLite is.
    if [.open, .read, .lock].contains(fault.call) { #expect(rehearsal.calls > 0) }
    var failures = 0
    for (number, isLasting) in Self.plan(rehearsal.calls, fault) {
      let scene = try TroubledScene(state)
      let trouble = SQLiteTrouble(fault, atCall: number, isLasting: isLasting, below: scene.folder.string)
      let comment: Comment = "\(state), \(fault.testDescription) \(number)\(isLasting ? " and later" : "")"
      try scene.expectWaits(comment) { try trouble.run { try scene.open() } }
      failures += trouble.failures
    }
    if rehearsal.calls > 0 { #expect(failures > 0) }
  }

  /// The calls that fail, alone or with all that follow.
  private static func plan(_ calls: Int, _ fault: SQLiteTrouble.Fault) -> [(number: Int, isLasting: Bool)] {
    let alone = positions(calls, few: 2, salt: Int(fault.code)).map { (number: $0, isLasting: false) }
    // SQLite tries for ten seconds to get a lock on an index that another process has and never gives up.
    guard fault.call != .lockIndex else { return alone }
    return alone + positions(calls, few: 1, salt: Int(fault.code) / 256).map { (number: $0, isLasting: true) }
  }

  // MARK: Our own system calls

  @Test(
    arguments: TroubledScene.State.allCases,
    [
      Errno.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noLocks, .noMemory, .notPermitted, .permissionDenied,
      .noSpace,
      .diskQuotaExceeded, .resourceBusy, .readOnlyFileSystem, .ioError,
    ])
  func noSystemCallIsTakenForDamage(state: TroubledScene.State, errno: Errno) throws {
    let rehearsal = Trouble(.failure(errno), atStep: 0, countingReads: true)
    try TroubledScene(state).open(rehearsal.fileSystem).store.close()
    #expect(rehearsal.steps > 5)
    for step in Self.positions(rehearsal.steps, few: 4, salt: Int(errno.rawValue)) {
      let scene = try TroubledScene(state)
      let trouble = Trouble(.failure(errno), atStep: step, countingReads: true)
      try scene.expectWaits("\(state), \(errno) at step \(step)") { try scene.open(trouble.fileSystem) }
    }
  }

  /// Some of the numbers from 1 on, evenly spread; all in the long run.
  ///
  /// - Parameter salt: what tells one spread from another, so that together they meet many places.
  private static func positions(_ count: Int, few: Int, salt: Int) -> [Int] {
    if isLong || count <= few { return count > 0 ? Array(1...count) : [] }
    let stride = count / few
    return (0..<few).map { 1 + $0 * stride + salt % stride }
  }
}
