import Platform
import SystemPackage
import TestSupport
import Testing

struct FileSystemTests {
  let folder: TemporaryFolder
  let system = FileSystem()

  init() throws { folder = try TemporaryFolder() }

  @Test func aNamedPipeIsRefusedAtOnce() throws {
    let pipe = folder.appending("pipe")
    try #require(makeNamedPipe(pipe) == 0)
    let error = #expect(throws: FileError.self) { try system.open(pipe) }
    #expect(error?.kind == .notRegularFile)
  }

  @Test func errorsSayWhatAndWhereAndWhatToDo() throws {
    let error = #expect(throws: FileError.self) { try system.open(folder.appending("no\u{1B}[31mthing")) }
    let text = try #require(error).description
    #expect(text.contains("cannot open the file"))
    #expect(text.contains("[file-not-found]"))
    #expect(!text.contains("\u{1B}"))
  }

  @Test(arguments: [
    (Errno.noSpace, "no-space"), (.ioError, "io-error"), (.permissionDenied, "permission-denied"),
    (.readOnlyFileSystem, "read-only-file-system"), (.diskQuotaExceeded, "no-space"), (.resourceBusy, "locked"),
    (.notPermitted, "permission-denied"), (.tooManyOpenFiles, "too-many-open-files"),
    (.tooManyOpenFilesInSystem, "too-many-open-files"), (.noMemory, "out-of-memory"), (.noLocks, "no-locks"),
    (.fileTooLarge, "file-too-large"),
  ])
  func environmentalErrorsAreNoDamage(errno: Errno, code: String) throws {
    let path = try folder.write("x", to: "file")
    let trouble = Trouble(.failure(errno), atStep: 1, countingReads: true)
    let error = #expect(throws: FileError.self) { try trouble.fileSystem.open(path) }
    #expect(error?.code == code)
    #expect(error?.isEnvironmental == true)
  }

  @Test("A file is installed or not, as is said, where names cannot be removed", arguments: [1, .max])
  func installsAsSaid(failures: Int) throws {
    let source = try folder.write("new", to: "source")
    let target = folder.appending("target")
    let left = Platform.Mutex(failures)
    let trouble = FileSystem { (operation: FileOperation) throws(Errno) in
      guard operation.kind == .unlink,
        left.withLock({ count in
          defer { count -= 1 }
          return count > 0
        })
      else { return }
      throw Errno.noSpace
    }
    let error: FileError?
    do throws(FileError) {
      try trouble.install(source, at: target, replacing: false)
      error = nil
    } catch let failure {
      error = failure
    }
    #expect(try system.status(of: source) != nil)
    #expect(try (system.status(of: target) == nil) == (error != nil))
  }

  @Test func atomicWritesLeaveTheOldOrTheNew() throws {
    let path = try folder.write("old", to: "file")
    let rehearsal = Trouble(.death, atStep: 0)
    try rehearsal.fileSystem.writeAtomically(Array("new".utf8), to: path, replacing: true)
    for step in 1...rehearsal.steps {
      try system.writeAtomically(Array("old".utf8), to: path, replacing: true)
      let trouble = Trouble(.death, atStep: step)
      #expect(throws: FileError.self) {
        try trouble.fileSystem.writeAtomically(Array("new".utf8), to: path, replacing: true)
      }
      let content = String(decoding: try system.contents(of: path, limit: 10), as: UTF8.self)
      #expect(["old", "new"].contains(content))
    }
  }

  @Test func copiesAreComparedAndKeepTheirBytes() throws {
    var generator = SeededGenerator(seed: 3)
    let bytes = (0..<3_000_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let path = try folder.write(bytes, to: "original")
    let digest = try system.copy(path, to: folder.appending("copy"))
    #expect(try system.contents(of: folder.appending("copy"), limit: 4_000_000) == bytes)
    #expect(digest.text == FileDigest(of: bytes).hexadecimal)
  }

  @Test func digestsAreSHA256() {
    #expect(
      FileDigest(of: Array("abc".utf8)).hexadecimal
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  @Test func oneProcessAtATimeChangesAFolder() throws {
    let lock = try FolderLock(folder.path, in: system)
    let error = #expect(throws: FileError.self) { _ = try FolderLock(folder.path, patience: 60, in: system) }
    #expect(error?.kind == .locked)
    _ = consume lock
    _ = try FolderLock(folder.path, patience: 60, in: system)
  }
}
