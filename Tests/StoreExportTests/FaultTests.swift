import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// Exports that are cut short: nothing is left of them, and the store is as it was.
struct FaultTests {
  @Test(arguments: [Trouble.Kind.failure(.noSpace), .failure(.ioError), .death])
  func nothingIsLeftOfAFailure(_ kind: Trouble.Kind) throws {
    let scene = try ExportScene.plain(rows: 60)
    try scene.damage("zero:20")
    let before = try FolderContents(of: scene.stores)
    var isDone = false
    for step in 1..<420 {
      let trouble = Trouble(kind, atStep: step)
      let options = ExportOptions(level: step % 2 == 0 ? .full : .damagedPages)
      do {
        let summary = try scene.exporter(trouble.fileSystem).export(options, at: scene.out)
        if trouble.steps < step {
          isDone = true
          break
        }
        // A step that only tidies up may fail.
        try scene.system.unlink(try #require(summary.path.path))
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      #expect(try FolderContents(of: scene.stores) == before, "step \(step)")
      // The next export removes what a dead one left.
      let summary = try scene.exporter(seed: 1000).export(
        ExportOptions(level: .facts), at: scene.folder.appending("Next.\(step)"))
      try scene.system.unlink(try #require(summary.path.path))
      for name in try scene.system.entries(of: scene.out) {
        #expect(!name.string.hasPrefix("."), "step \(step) left \(name.string)")
        try scene.system.unlink(scene.out.appending(name))
      }
      try scene.expectTidy("step \(step)")
    }
    #expect(isDone)
  }

  @Test(arguments: BundleLevel.allCases)
  func itCanBeEndedAtAnyTime(_ level: BundleLevel) throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    try expectEndable(scene, scene.exporter(), level)
  }

  /// Ends an export at each of its reports in turn, until one is let go to its end.
  private func expectEndable(_ scene: ExportScene, _ exporter: StoreExports, _ level: BundleLevel) throws {
    let before = try FolderContents(of: scene.stores)
    for limit in 0..<200 {
      let calls = Mutex(0)
      do {
        _ = try exporter.export(ExportOptions(level: level), at: scene.out) { _, _, _ in
          calls.withLock { count in
            count += 1
            return count <= limit
          }
        }
        // A caller that has let it go to its end has not ended it.
        #expect(calls.withLock { $0 } <= limit)
        break
      } catch let error as SupportBundleError {
        #expect(error.kind == .cancelled, "\(error)")
      }
      #expect(try scene.system.entries(of: scene.out).isEmpty)
      try scene.expectTidy()
    }
    #expect(try FolderContents(of: scene.stores) == before)
  }

  @Test func aScrubBesideTheAnalysisIsTheSame() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    var sums: [[String: String]] = []
    for least in [Int64.max, 0] {
      var exporter = scene.exporter()
      exporter.exports.scrubsBesideFrom = least
      let folder = scene.out.appending("\(least)")
      try scene.system.makeDirectory(folder)
      var options = ExportOptions(level: .scrubbed)
      options.usesSameKey = true
      let summary = try exporter.export(options, at: folder)
      let items = summary.bundle.items.filter { $0.name.hasPrefix("data/store/") || $0.name == "data/scrub.json" }
      sums.append(Dictionary(uniqueKeysWithValues: items.map { ($0.name, $0.sha256) }))
      try scene.expectTidy()
    }
    #expect(sums[0].count >= 2)
    #expect(sums[0] == sums[1])
  }

  @Test func aScrubBesideTheAnalysisEndsWithIt() throws {
    let scene = try ExportScene.plain()
    try scene.damage("zero:20")
    var exporter = scene.exporter()
    exporter.exports.scrubsBesideFrom = 0
    try expectEndable(scene, exporter, .scrubbed)
  }

  @Test func aBundleThatIsThereStays() throws {
    let scene = try ExportScene.plain()
    let path = scene.out.appending("Mine.lazaret.tar.gz")
    try scene.system.writeAtomically([1, 2, 3], to: path, replacing: false)
    #expect(throws: SupportBundleError.self) {
      try scene.exporter().export(ExportOptions(level: .facts), at: path)
    }
    #expect(try scene.system.contents(of: path, limit: 10) == [1, 2, 3])
    try scene.expectTidy()
  }
}
