import Foundation
import GRDB
import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// `lazaret export`, `key` and `bundle`, as a user at a terminal has them, and with the tools of others.
struct ExportCommandTests {
  private func lazaret(_ scene: ExportScene, _ arguments: String..., input: String = "") throws -> ChildProcess.Result {
    try ChildProcess.run(ChildProcess.tool, arguments, input: input, in: scene.home, home: scene.home)
  }

  private func bundle(_ scene: ExportScene) throws -> FilePath {
    let names = try scene.system.entries(of: scene.out)
    #expect(names.count == 1)
    return scene.out.appending(try #require(names.first))
  }

  @Test func nothingIsWrittenUnlessTheUserAgrees() throws {
    let scene = try ExportScene.plain()
    let store = scene.store.string
    let refused = try lazaret(scene, "export", store, "-o", scene.out.string, "--level", "facts")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("[not-confirmed]"))
    let shown = try lazaret(scene, "export", store, "--level", "facts", "--dry-run")
    #expect(shown.status == 0)
    for word in ["facts", "damaged-pages", "scrubbed", "full", "README.txt", "not encrypted"] {
      #expect(shown.output.contains(word))
    }
    for arguments in [
      ["export", store], ["export", store, "--dry-run", "--yes"], ["export", store, "-o", "x", "--armor"],
      ["export", store, "-o", "x", "--level", "facts", "--keep", "cars.name"],
      ["export", store, "-o", "x", "--level", "most"],
    ] {
      #expect(
        try ChildProcess.run(ChildProcess.tool, arguments, in: scene.home, home: scene.home).status == 64,
        "\(arguments)")
    }
    let mistyped = try lazaret(scene, "export", store, "-o", "x", "--encrypt-to", "age1abc", "--yes", "--json")
    #expect(mistyped.status == 64 && mistyped.errors.contains("age-recipient"))
    #expect(try scene.system.entries(of: scene.out).isEmpty)
    try scene.expectTidy()
  }

  @Test func theStoresFolderIsLeftAlone() throws {
    let scene = try ExportScene.plain()
    let dead = ".lazaret-0F0E0D0C-0B0A-4908-8706-050403020100"
    try scene.folder.write("of a killed export", to: "Out/\(dead)/evidence/App.sqlite")
    let before = try FolderContents(of: scene.stores)
    for arguments in [["--dry-run"], ["-o", scene.out.string, "--yes"]] {
      let result = try ChildProcess.run(
        ChildProcess.tool, ["export", scene.store.string, "--level", "facts"] + arguments, in: scene.folder.path)
      #expect(result.status == 0, "\(result.errors)")
      #expect(try FolderContents(of: scene.stores) == before)
    }
    #expect(try scene.system.entries(of: scene.out).allSatisfy { !$0.string.hasPrefix(".") })
  }

  @Test func whatAKilledExportLeftInTheHomeGoes() throws {
    let scene = try ExportScene.plain()
    let dead = ".lazaret-exporting/lazaret-0F0E0D0C-0B0A-4908-8706-050403020100"
    try scene.folder.write("of a killed export", to: "Home/\(dead)/evidence/App.sqlite")
    #expect(try lazaret(scene, "export", scene.store.string, "--level", "facts", "--dry-run").status == 0)
    try scene.expectTidy()
  }

  @Test func columnsThatWereKeptAreTheLikelyCauseOfValuesThatAreFound() throws {
    let kept: Set<String> = ["Tag.name", "Article.title"]
    #expect(SupportBundleErrors.keptDetail(kept).contains("likely because values of Article.title, Tag.name are kept"))
    let hint = try #require(SupportBundleErrors.keptHint(kept))
    #expect(hint.contains("Keep the other columns") && hint.contains("do not keep Article.title, Tag.name"))
    #expect(SupportBundleErrors.keptDetail([]).isEmpty && SupportBundleErrors.keptHint([]) == nil)
  }

  @Test func tablesThatLostRowsAreDamaged() throws {
    let scene = try ExportScene.plain(log: false)
    // Every page of the table but its first ones.
    var bytes = try scene.system.contents(of: scene.store, limit: 1 << 24)
    let queue = try DatabaseQueue(path: scene.store.string)
    let leaves = try queue.read { database in
      try Int.fetchAll(database, sql: "SELECT pageno FROM dbstat WHERE name = 'cars' AND pagetype = 'leaf' LIMIT 5")
    }
    try queue.close()
    for page in leaves {
      bytes.replaceSubrange((page - 1) * 1024..<page * 1024, with: [UInt8](repeating: 0, count: 1024))
    }
    try scene.system.writeAtomically(bytes, to: scene.store, replacing: true)
    let (_, received) = try scene.export(.facts)
    let facts = try scene.json("facts.json", of: received)
    #expect((facts["damagedTables"] as? [String])?.contains("cars") == true, "\(facts)")
  }

  @Test func keysAreMade() throws {
    let scene = try ExportScene()
    let made = try lazaret(scene, "key", "new", "-o", "support.key")
    #expect(made.status == 0)
    #expect(made.output.hasPrefix("age1") && made.output.count == 63)
    let file = scene.home.appending("support.key")
    let status = try #require(try scene.system.status(of: file))
    #expect(status.permissions == .ownerReadWrite)
    let text = String(decoding: try scene.system.contents(of: file, limit: 1000), as: UTF8.self)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].hasPrefix("# created: ") && lines[1] == "# public key: \(made.output.dropLast())")
    #expect(lines[2].hasPrefix("AGE-SECRET-KEY-1"))
    let again = try lazaret(scene, "key", "new", "-o", "support.key")
    #expect(again.status == 1 && again.errors.contains("file-exists"))
    #expect(String(decoding: try scene.system.contents(of: file, limit: 1000), as: UTF8.self) == text)
    #expect(try lazaret(scene, "key", "public", "support.key").output == made.output)
    let printed = try lazaret(scene, "key", "new")
    #expect(printed.output.contains("AGE-SECRET-KEY-1") && printed.errors.hasPrefix("Public key: age1"))
    #expect(try lazaret(scene, "key", "new", "--json").status == 64)
    let nothing = try lazaret(scene, "key", "public", scene.store.string)
    #expect(nothing.status == 1)
  }

  @Test func whatIsExportedIsChecked() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    _ = try lazaret(scene, "key", "new", "-o", "support.key")
    let made = try lazaret(
      scene, "export", scene.store.string, "-o", scene.out.string, "--encrypt-to", "support.key", "--app",
      "com.example.Garage", "--yes", "--json")
    #expect(made.status == 0, "\(made.errors)")
    let path = try bundle(scene)
    #expect(path.string.hasSuffix(".lazaret.tar.gz.age"))
    let locked = try lazaret(scene, "bundle", "check", path.string)
    #expect(locked.status == 1 && locked.errors.contains("bundle-key-needed"))
    let checked = try lazaret(scene, "bundle", "check", path.string, "--identity", "support.key")
    #expect(checked.status == 0 && checked.output.contains("whole"), "\(checked.errors)")
    // A scrubbed bundle tells only the month, and none is made a time of.
    let about = try #require(checked.output.split(separator: "\n").first { $0.hasPrefix("  about ") })
    #expect(about.contains(#/, \d{4}-\d\d$/#), "\(about)")
    try scene.system.unlink(scene.home.appending("support.key.bak"))
    let unpacked = try lazaret(
      scene, "bundle", "unpack", path.string, "-o", "Report", "--identity", "support.key", "--json")
    #expect(unpacked.status == 0)
    let store = scene.home.appending("Report/data/store/App.sqlite")
    #expect(try scene.system.status(of: store) != nil)
    let original = try lazaret(scene, "inspect", scene.store.string, "--check", "full", "--json")
    let scrubbed = try lazaret(scene, "inspect", store.string, "--check", "full", "--json")
    #expect(scrubbed.status == original.status)
  }

  /// The tools of others: `tar`, `sha256sum`, and `age`.
  @Test(.enabled(if: ChildProcess.exists("sha256sum") && ChildProcess.exists("tar"), "tar or sha256sum is missing"))
  func otherProgramsOpenIt() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    let made = try lazaret(scene, "export", scene.store.string, "-o", scene.out.string, "--level", "full", "--yes")
    #expect(made.status == 0, "\(made.errors)")
    let script = """
      set -e; tar -xzf "$1"; cd App-*/; sha256sum --quiet --strict -c manifest-sha256.txt tagmanifest-sha256.txt
      cmp data/store/App.sqlite "$2"
      """
    let run = try ChildProcess.run(
      "sh", ["-c", script, "sh", try bundle(scene).string, scene.store.string], in: scene.out)
    #expect(run.status == 0 && run.output.isEmpty && run.errors.isEmpty, "\(run.output)\(run.errors)")
  }

  @Test(
    .enabled(if: ChildProcess.exists("age") && ChildProcess.exists("age-keygen"), "age is not installed"),
    arguments: [false, true])
  func ageOpensIt(isArmored: Bool) throws {
    let scene = try ExportScene.plain()
    let keys = try ChildProcess.run("age-keygen", ["-o", "theirs.key"], in: scene.home)
    #expect(keys.status == 0)
    _ = try lazaret(scene, "key", "new", "-o", "ours.key")
    var arguments = [
      "export", scene.store.string, "-o", scene.out.string, "--level", "facts", "--yes", "--encrypt-to", "theirs.key",
      "--encrypt-to", "ours.key",
    ]
    if isArmored { arguments.append("--armor") }
    let made = try ChildProcess.run(ChildProcess.tool, arguments, in: scene.home, home: scene.home)
    #expect(made.status == 0, "\(made.errors)")
    let path = try bundle(scene)
    for key in ["theirs.key", "ours.key"] {
      let run = try ChildProcess.run(
        "sh", ["-c", "age -d -i \(key) \"$1\" | tar -tzf -", "sh", path.string], in: scene.home)
      #expect(run.status == 0 && run.output.contains("/data/facts.json"), "\(run.errors)")
    }
  }
}
