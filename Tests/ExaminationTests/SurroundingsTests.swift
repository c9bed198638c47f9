import Foundation
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("The surroundings are not damage")
struct SurroundingsTests {
  private func expectUnavailable(
    _ path: FilePath, _ code: String, sqlite: Int?, _ location: SourceLocation = #_sourceLocation
  ) throws {
    for depth in Examination.Depth.allCases {
      let examination = try examiner().look(path, Models.bundle(), depth)
      #expect(examination.verdict == .unavailable, sourceLocation: location)
      #expect(examination.reason.code == code, "\(examination.reason.words)", sourceLocation: location)
      #expect(examination.reason.sqliteCode == sqlite, sourceLocation: location)
      #expect(examination.reason.coreDataCode == nil, sourceLocation: location)
      VerdictCase.checkWords(examination)
    }
  }

  /// Begins a transaction and keeps it until its input ends.
  static let holder = """
    import sqlite3, sys
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    for statement in sys.argv[2:]:
        db.execute(statement).fetchall()
    print("ready", flush=True)
    sys.stdin.read()
    """

  private func whileHeld(
    _ specimen: Specimen, _ statements: String..., look: (FilePath) throws -> Void
  ) throws {
    let folder = try TemporaryFolder()
    let path = try specimen.place(in: folder)
    let holder = try OtherProcess(Self.holder, [path.string] + statements)
    #expect(holder.waitForLine() == "ready")
    try look(path)
    holder.stop()
  }

  static let needsPython = ConditionTrait.enabled(
    if: OtherProcess.isAvailable, Comment(rawValue: OtherProcess.skipped))

  @Test("Another process has the store to itself", needsPython)
  func exclusive() throws {
    let rollback = try Specimen.plain("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    try whileHeld(rollback, "BEGIN EXCLUSIVE") { path in
      try expectUnavailable(path, "locked", sqlite: 5)
      let reason = try examiner().look(path).reason
      #expect(reason.words.contains("python"), "\(reason.words)")
    }
    try whileHeld(rollback, "PRAGMA locking_mode = EXCLUSIVE", "UPDATE t SET a = 2") { path in
      try expectUnavailable(path, "locked", sqlite: 5)
    }
    try whileHeld(try .sound(), "PRAGMA locking_mode = EXCLUSIVE", "UPDATE ZCAR SET Z_OPT = 2") { path in
      try expectUnavailable(path, "locked", sqlite: 5)
    }
  }

  @Test("A transaction that has begun to write elsewhere does not hide the store", needsPython)
  func immediate() throws {
    try whileHeld(
      try .plain("CREATE TABLE t(a); INSERT INTO t VALUES (1)"), "BEGIN IMMEDIATE", "UPDATE t SET a = 2",
      "INSERT INTO t VALUES (3)"
    ) { path in
      let before = try FolderContents(of: path.folder)
      let examination = try examiner().look(path)
      #expect(examination.verdict == .compatible, "\(examination.reason)")
      #expect(examination.entities.first?.rows == 1)
      #expect(examination.health.notes.contains { $0.code == "writer-active" })
      #expect(!examination.health.notes.contains { $0.code == "journal-hot" })
      #expect(try FolderContents(of: path.folder) == before)
    }
    try whileHeld(try .sound(), "BEGIN IMMEDIATE", "DELETE FROM ZCAR") { path in
      for depth in Examination.Depth.allCases {
        let examination = try examiner().look(path, Models.bundle(), depth)
        #expect(examination.verdict == .compatible, "\(examination.reason)")
        #expect(examination.entities.first?.rows == 12)
      }
    }
  }

  @Test("A frame that a live writer has written half is no part of the log; after the writer it is damage", needsPython)
  func halfWrittenFrame() throws {
    let specimen = try Specimen.sound()
    var bytes: [UInt8] = []
    try whileHeld(specimen, "PRAGMA journal_mode = WAL", "UPDATE ZCAR SET ZNAME = 'new'", "BEGIN IMMEDIATE") { path in
      bytes = try FileSystem().contents(of: FilePath(path.string + "-wal"), limit: 1 << 20)
      // A commit of page 2 with the log's salts and a wrong checksum.
      let frame = [0, 0, 0, 2, 0, 0, 0, 9] + bytes[16..<24] + [UInt8](repeating: 7, count: 8 + Specimen.pageSize)
      let log = try #require(FileHandle(forWritingAtPath: path.string + "-wal"))
      try log.seekToEnd()
      try log.write(contentsOf: frame)
      try log.close()
      bytes += frame
      for depth in Examination.Depth.allCases {
        let examination = try examiner().look(path, Models.bundle(), depth)
        #expect(examination.verdict == .compatible, "\(examination.reason)")
        #expect(examination.health.notes.contains { $0.code == "writer-active" })
        #expect(!examination.health.notes.contains { $0.code.hasPrefix("wal-") }, "\(examination.health.notes)")
      }
    }
    let folder = try TemporaryFolder()
    let path = try specimen.place(in: folder)
    try folder.write(bytes, to: "Store.sqlite-wal")
    #expect(try examiner().look(path, Models.bundle()).reason.code == "wal-frame-checksum-wrong")
  }

  /// Writes transaction after transaction until its input ends.
  static let writer = """
    import sqlite3, sys, threading
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
    db.execute("PRAGMA journal_mode = " + sys.argv[2]).fetchall()
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA wal_autocheckpoint = 20")
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("ready", flush=True)
    i = 1000
    while not over.is_set():
        i += 1
        db.execute("BEGIN IMMEDIATE")
        for k in range(i % 7 + 1):
            db.execute("INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 1, 1, hex(zeroblob(?)))", (i * 10 + k, i % 900))
        db.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, ?) WHERE Z_NAME = 'Car'", (i * 10 + 10,))
        db.execute("DELETE FROM ZCAR WHERE Z_PK < ? AND Z_PK > 900", ((i - 40) * 10,))
        db.execute("ROLLBACK" if i % 5 == 0 else "COMMIT")
    """

  @Test(
    "A store that another process keeps writing to is never called damaged", needsPython,
    arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
  func busy(mode: String) throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 200).place(in: folder)
    let writer = try OtherProcess(Self.writer, [path.string, mode])
    #expect(writer.waitForLine() == "ready")
    var verdicts: [Verdict: Int] = [:]
    for round in 0..<200 {
      let examination = try Examiner().look(path, Models.bundle(), round % 2 == 0 ? .quick : .full)
      verdicts[examination.verdict, default: 0] += 1
      #expect(
        examination.verdict == .compatible || examination.verdict == .unavailable,
        "round \(round): \(examination.reason.code) \(examination.reason.words)")
    }
    writer.stop()
    print("looked at a busy store in mode \(mode): \(verdicts.map { "\($0.key.rawValue) \($0.value)" }.sorted())")
    let after = try examiner().look(path, Models.bundle(), .full)
    #expect(after.verdict == .compatible, "\(after.reason)")
  }

  @Test("Neither a folder, nor a pipe, nor a link that leads nowhere, nor a placeholder")
  func otherThings() throws {
    let folder = try TemporaryFolder()
    try FileSystem().makeDirectory(folder.appending("Folder.sqlite"))
    try expectUnavailable(folder.appending("Folder.sqlite"), "is-a-directory", sqlite: 14)
    try #require(namedPipe(at: folder.appending("Pipe.sqlite").string))
    try expectUnavailable(folder.appending("Pipe.sqlite"), "not-a-regular-file", sqlite: 14)
    try #require(symbolicLink(at: folder.appending("Link.sqlite").string, to: "/nowhere/Store.sqlite"))
    try expectUnavailable(folder.appending("Link.sqlite"), "dangling-link", sqlite: 14)
    try #require(symbolicLink(at: folder.appending("Loop.sqlite").string, to: "Loop.sqlite"))
    try expectUnavailable(folder.appending("Loop.sqlite"), "dangling-link", sqlite: 14)
    try folder.write([1], to: ".Cloud.sqlite.icloud")
    try expectUnavailable(folder.appending("Cloud.sqlite"), "not-downloaded", sqlite: 14)
    // A pipe in the place of the log or the journal hangs nothing either.
    for ending in ["-wal", "-journal"] {
      let other = try TemporaryFolder()
      let path = try Specimen.sound().place(in: other)
      try #require(namedPipe(at: path.string + ending))
      try expectUnavailable(path, "not-a-regular-file", sqlite: 14)
    }
  }

  @Test("A folder that is not there is a store that is not there")
  func noFolder() throws {
    let folder = try TemporaryFolder()
    let examination = try examiner().look(folder.appending("no/Store.sqlite"))
    #expect(examination.verdict == .missing)
    VerdictCase.checkWords(examination)
  }

  @Test(
    "Permission denied, to the file, to its log and to its folder",
    .enabled(if: Unprivileged.isAvailable, Comment(rawValue: Unprivileged.skipped)))
  func permissions() throws {
    for locked in ["Store.sqlite", "Store.sqlite-wal", ""] {
      let folder = try TemporaryFolder(in: "/tmp")
      let path = try Specimen.sound().running(Specimen.insert(3, from: 50)).place(in: folder)
      for name in ["Store.sqlite", "Store.sqlite-wal"] {
        try #require(changeMode(of: folder.appending(name).string, to: 0o444))
      }
      try #require(changeMode(of: folder.path.string, to: 0o755))
      try #require(changeMode(of: folder.appending(locked).string, to: 0))
      let result = try Unprivileged.run(["inspect", path.string, "--json"])
      #expect(result.status == 3, "\(locked): \(result.output)")
      #expect(result.output.contains("\"unavailable\""), "\(locked): \(result.output)")
      #expect(result.output.contains("permission-denied"), "\(locked): \(result.output)")
      _ = changeMode(of: folder.path.string, to: 0o755)
    }
  }

  @Test(
    "An error of the system at any step is never taken for damage",
    arguments: [Errno.ioError, .permissionDenied, .tooManyOpenFiles, .noMemory, .noSuchFileOrDirectory])
  func faults(errno: Errno) throws {
    for (name, specimen) in try EvidenceTests.specimens() {
      let folder = try TemporaryFolder()
      let path = try specimen.place(in: folder)
      for depth in Examination.Depth.allCases {
        let counter = Trouble(.failure(errno), atStep: 0, countingReads: true)
        let sound = try examiner(counter.fileSystem).look(path, Models.bundle(), depth)
        let steps = counter.steps
        #expect(steps > 5)
        for step in 1...steps {
          let trouble = Trouble(.failure(errno), atStep: step, countingReads: true)
          let examination = try examiner(trouble.fileSystem).look(path, Models.bundle(), depth)
          VerdictCase.checkWords(examination)
          // A file that is gone for one step is looked for again; any other error ends the look.
          let isFine =
            examination.verdict == .unavailable
            || errno == .noSuchFileOrDirectory
              && (examination.verdict == sound.verdict || examination.verdict == .missing)
          #expect(isFine, "\(name), \(depth), step \(step) of \(steps): \(examination.verdict) \(examination.reason)")
        }
      }
    }
  }

  @Test("A disk that fails for good is never taken for damage")
  func deadDisk() throws {
    let folder = try TemporaryFolder()
    let path = try Specimen.sound(cars: 200).running(Specimen.insert(9, from: 900)).place(in: folder)
    let counter = Trouble(.death, atStep: 0, countingReads: true)
    _ = try examiner(counter.fileSystem).look(path, Models.bundle(), .full)
    for step in 1...counter.steps {
      let trouble = Trouble(.death, atStep: step, countingReads: true)
      let examination = try examiner(trouble.fileSystem).look(path, Models.bundle(), .full)
      #expect(examination.verdict == .unavailable, "step \(step): \(examination.reason)")
      #expect(examination.reason.code == "io-error")
      #expect(examination.reason.sqliteCode == 10)
    }
  }
}
