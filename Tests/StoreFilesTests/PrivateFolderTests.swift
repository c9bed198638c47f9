import Foundation
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Private folders")
struct PrivateFolderTests {
  private static let dead = "lazaret-0F0E0D0C-0B0A-4908-8706-050403020100"

  private func names(_ folder: FilePath) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: folder.string))
  }

  @Test("A folder is for its owner alone, and goes with its value")
  func goes() throws {
    let root = try TemporaryFolder()
    var folder: PrivateFolder? = try PrivateFolder(in: root.path, to: "test", .machine)
    let path = try #require(folder?.path)
    let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    #expect(path.starts(with: root.path) && path != root.path)
    folder = nil
    #expect(try names(root.path).isEmpty)
  }

  @Test("What a killed process left goes with the next folder; what is in use, or another's, stays")
  func remains() throws {
    let root = try TemporaryFolder()
    try root.write("a plain copy", to: "\(Self.dead)/Content/Store.sqlite")
    try root.write("a plain copy", to: ".\(Self.dead)/Content/Store.sqlite")
    try root.write("no folder of ours", to: "lazaret-notes/a.txt")
    try root.write("no folder", to: "lazaret-00000000-0B0A-4908-8706-050403020100")
    let first = try PrivateFolder(in: root.path, to: "test", .machine)
    #expect(try names(root.path).count == 3)
    let second = try PrivateFolder(in: root.path, to: "test", .machine)
    PrivateFolder.removeRemains(in: root.path, FileSystem())
    let found = try names(root.path)
    for folder in [first, second] {
      #expect(found.contains(folder.path.removingLastComponent().lastComponent?.string ?? ""))
    }
    #expect(found.count == 4 && found.contains("lazaret-notes"))
    withExtendedLifetime((first, second)) {}
  }

  @Test("What a killed process noted elsewhere goes too, and nothing else there")
  func noted() throws {
    let (root, other) = (try TemporaryFolder(), try TemporaryFolder())
    try root.write(
      #"[{"folder": "\#(other.path.string)", "name": "App-"}, {"folder": "\#(other.path.string)", "name": "\#(Self.dead)"}]"#,
      to: "\(Self.dead)/unfinished.json")
    try other.write("a plain copy", to: "\(Self.dead)/Content/Store.sqlite")
    for name in [".App-1.unfinished", "App-2.unfinished", ".App-3.done", ".Other.unfinished"] {
      try other.write("x", to: name)
    }
    try other.write("x", to: ".App-4.restoring/Store.sqlite")
    try other.write("x", to: ".App-5.restoring/ready.json")
    try other.write("x", to: ".App-6.unfinished")
    try other.write("x", to: ".App-6.replaced")
    var finished: [FilePath] = []
    // A live process works there.
    let lock = try FolderLock(other.path, in: FileSystem())
    PrivateFolder.removeRemains(in: root.path, FileSystem()) { finished.append($0) }
    #expect(try names(other.path).count == 9 && finished.isEmpty)
    lock.release()
    PrivateFolder.removeRemains(in: root.path, FileSystem()) { finished.append($0) }
    #expect(
      try names(other.path) == [
        "App-2.unfinished", ".App-3.done", ".App-5.restoring", ".App-6.unfinished", ".App-6.replaced",
        ".Other.unfinished",
      ])
    #expect(Set(finished) == [other.appending("App-5"), other.appending("App-6")])
    #expect(try !names(root.path).contains(Self.dead))
  }

  @Test("A folder where no other command looks is named among the system's temporary files")
  func marked() throws {
    let (root, other) = (try TemporaryFolder(), try TemporaryFolder())
    func notes() throws -> [String] {
      let system = PrivateFolder.systemFolder
      return try names(system).filter { $0.hasPrefix("lazaret-") }.compactMap { name in
        try? String(contentsOfFile: system.appending(name).appending("unfinished.json").string, encoding: .utf8)
      }
    }
    let folder = try PrivateFolder(in: root.path, to: "test", .machine)
    try folder.noteUnfinished("App-", in: other.path)
    let own = try #require(folder.path.removingLastComponent().lastComponent?.string)
    #expect(try notes().contains { $0.contains(own) && $0.contains("App-") })
    withExtendedLifetime(folder) {}
  }
}
