import Foundation
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Looking touches nothing")
struct EvidenceTests {
  /// Stores in every state that SQLite itself would tidy up.
  static func specimens() throws -> [(name: String, specimen: Specimen)] {
    [
      ("a resting store", try .sound()),
      ("rows in the log", try Specimen.sound().running(Specimen.insert(30, from: 100))),
      ("a hot journal", try LogVerdictTests.hot()),
      (
        "uncommitted frames",
        try Specimen.sound().running("PRAGMA cache_size = 2", "BEGIN", Specimen.insert(600, from: 200))
      ),
      (
        "an empty file with a log",
        Specimen(main: [], log: try Specimen.sound().running(Specimen.insert(3, from: 50)).log)
      ),
      ("a damaged store", try Specimen.sound(cars: 300).losingLeaf(of: "ZCAR")),
      ("no SQLite at all", Specimen(main: Array("hello".utf8))),
    ]
  }

  @Test("No byte, name or time changes, however a store is looked at")
  func untouched() throws {
    for (name, specimen) in try Self.specimens() {
      let folder = try TemporaryFolder()
      let path = try specimen.place(in: folder)
      try folder.write([1, 2, 3], to: ".Store_SUPPORT/_EXTERNAL_DATA/8A1C")
      try folder.write([0, 0, 0], to: "Store.sqlite-shm")
      let before = try FolderContents(of: folder.path)
      for depth in Examination.Depth.allCases {
        for counting in [true, false] {
          for model in [nil, Models.bundle()] { _ = try examiner().look(path, model, depth, counting: counting) }
        }
      }
      #expect(try FolderContents(of: folder.path) == before, "\(name)")
    }
  }

  @Test("No step of an examination is one that writes")
  func onlyReads() throws {
    for (name, specimen) in try Self.specimens() {
      let folder = try TemporaryFolder()
      let path = try specimen.place(in: folder)
      let trouble = Trouble(.failure(.ioError), atStep: 1)
      let examination = try examiner(trouble.fileSystem).look(path, Models.bundle(), .full)
      #expect(trouble.steps == 0, "\(name)")
      #expect(examination.verdict != .unavailable, "\(name)")
    }
  }

  @Test(
    "A folder that no one may write to, looked at by a user without rights",
    .enabled(if: Unprivileged.isAvailable, Comment(rawValue: Unprivileged.skipped)))
  func readOnlyFolder() throws {
    for (name, specimen) in try Self.specimens() {
      let folder = try TemporaryFolder(in: "/tmp")
      let path = try specimen.place(in: folder)
      for part in StoreFileSet.Part.allCases {
        let file = StoreFileSet(main: path).path(of: part)
        if try FileSystem().status(of: file) != nil { try #require(changeMode(of: file.string, to: 0o444)) }
      }
      try #require(changeMode(of: folder.path.string, to: 0o555))
      let before = try FolderContents(of: folder.path)
      let own = try examiner().look(path, nil, .full)
      let result = try Unprivileged.run(["inspect", path.string, "--check", "full", "--json"])
      let json = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
      #expect(json["verdict"] as? String == own.verdict.rawValue, "\(name): \(result.output)")
      #expect(result.status == (own.verdict == .damaged || own.health.mayLackCommits ? 2 : 0), "\(name)")
      #expect(try FolderContents(of: folder.path) == before, "\(name)")
      _ = changeMode(of: folder.path.string, to: 0o755)
    }
  }
}
