import Foundation
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Kills and failures while an opening migrates a store in three steps: the old store or the new one, never neither, never
/// a mix.
@Suite(.serialized)
struct InterruptedMigratingTests {
  private static let isLong = environment("LAZARET_MUTATIONS") != nil

  /// An undisturbed run: its writes, and the bytes it ends in.
  private static func rehearsal(
    via: [String] = ["V2", "V3"], leavingLog: Bool = false
  ) throws -> (steps: Int, result: [String: [UInt8]], before: [String: [UInt8]]) {
    let scene = try MigratingScene()
    if leavingLog { try scene.leaveLog() }
    let before = try scene.parts(scene.store)
    let trouble = Trouble(.death, atStep: 0)
    try scene.coordinator(OpeningPolicy(), via: via, trouble.fileSystem).open(scene.store).store.close()
    try scene.expectMigrated(before, "undisturbed")
    return (trouble.steps, try scene.parts(scene.store), before)
  }

  /// The old store is whole in its place, or whole among the backups while the new one is whole in its place or in the
  /// working folder; and nothing of the old one lies beside the new one.
  private static func expectNothingLost(
    _ scene: MigratingScene, _ before: [String: [UInt8]], _ result: [String: [UInt8]], _ comment: Comment,
    lastStep: String = "step-3.sqlite"
  ) throws {
    let here = try scene.parts(scene.store)
    if here == before { return }
    // A move gives the new names first: for a moment the old store is whole under both.
    let backups = try scene.backupFiles()
    #expect(backups.count == 1, comment)
    guard let backup = backups.first else { return }
    if here["main"] == before["main"] {
      for (part, bytes) in here { #expect(bytes == before[part], comment) }
      return
    }
    #expect(try scene.parts(backup) == before, comment)
    if let main = here["main"] {
      #expect(main == result["main"], comment)
      #expect(here["wal"] == nil && here["journal"] == nil, comment)
    } else {
      // The old main file is the first to go, and the new one the last to come: the next opening puts it there.
      let working = scene.stores.appending(".App.sqlite.migrating")
      let names = try scene.system.entries(of: working).map(\.string)
      #expect(names.contains("journal.json") && names.contains(lastStep), comment)
      let bytes = try scene.system.contents(of: working.appending(lastStep), limit: 1 << 28)
      #expect(bytes == result["main"], comment)
    }
  }

  private static func expectGoesOn(
    _ scene: MigratingScene, _ before: [String: [UInt8]], _ result: [String: [UInt8]], _ comment: Comment,
    via: [String]? = nil
  ) throws {
    try scene.coordinator(via: via).open(scene.store).store.close()
    try scene.expectMigrated(before, comment)
    #expect(try scene.parts(scene.store) == result, comment)
  }

  @Test(arguments: [Errno?.none, .noSpace, .ioError], [["V2", "V3"], []])
  func troubleAtEveryWrite(errno: Errno?, via: [String]) throws {
    let (steps, result, before) = try Self.rehearsal(via: via)
    let lastStep = "step-\(via.count + 1).sqlite"
    #expect(steps > 20)
    let start = Self.isLong ? 1 : [1, 2, 4][errno == nil ? 0 : errno == .noSpace ? 1 : 2]
    for step in stride(from: start, through: steps, by: Self.isLong ? 1 : 6) {
      let scene = try MigratingScene()
      let trouble = Trouble(errno.map { .failure($0) } ?? .death, atStep: step)
      do {
        try scene.coordinator(OpeningPolicy(), via: via, trouble.fileSystem).open(scene.store).store.close()
      } catch let error as any ReportableError {
        #expect(error.isEnvironmental, "step \(step): \(error)")
      }
      try Self.expectNothingLost(scene, before, result, "step \(step)", lastStep: lastStep)
      try Self.expectGoesOn(scene, before, result, "step \(step)", via: via)
    }
  }

  @Test(arguments: [1, 3]) func anInterruptedSwapIsFinishedThroughLinks(links: Int) throws {
    let (steps, _, _) = try Self.rehearsal(leavingLog: true)
    for step in 1...steps {
      let scene = try MigratingScene()
      try scene.leaveLog()
      let before = try scene.parts(scene.store)
      let trouble = Trouble(.death, atStep: step)
      _ = try? scene.coordinator(OpeningPolicy(), trouble.fileSystem).open(scene.store)
      guard try scene.system.status(of: scene.store) == nil else { continue }
      var link = scene.store
      for number in 0..<links {
        let next = scene.folder.appending("link\(number)")
        _ = try ChildProcess.run("ln", ["-s", link.string, next.string])
        link = next
      }
      try scene.coordinator().open(link).store.close()
      return try scene.expectMigrated(before, "step \(step)")
    }
    Issue.record("no step of \(steps) leaves the place empty")
  }

  /// Another process ends in the middle of its swap just when this one has seen an empty place and is about to fill it.
  ///
  /// The place is empty for a moment only where a log has to go before another main file has the name.
  @Test func anEmptyPlaceOfAnInterruptedSwapIsNotFilled() throws {
    let (steps, result, _) = try Self.rehearsal(leavingLog: true)
    var found = 0
    for step in 1...steps {
      let scene = try MigratingScene()
      try scene.leaveLog()
      // Its own: SQLite draws the salts of each log.
      let before = try scene.parts(scene.store)
      #expect(before["wal"] != nil)
      let trouble = Trouble(.death, atStep: step)
      _ = try? scene.coordinator(OpeningPolicy(), trouble.fileSystem).open(scene.store)
      guard try scene.system.status(of: scene.store) == nil else { continue }
      found += 1
      let working = scene.stores.appending(".App.sqlite.migrating")
      let hidden = scene.folder.appending("hidden")
      try scene.system.rename(working, to: hidden)
      let observer = OpeningObserver { progress in
        // Where this fails the working folder stays hidden, and an empty store is made.
        if progress.phase == .creating { try? FileSystem().rename(hidden, to: working) }
      }
      let opening = try scene.coordinator().open(scene.store, observer: observer)
      try opening.store.close()
      #expect(opening.events.map(\.kind) == [.backup, .migration], "step \(step)")
      try scene.expectMigrated(before, "step \(step)")
      #expect(try scene.parts(scene.store) == result, "step \(step)")
    }
    #expect(found > 0)
  }

  /// A real SIGKILL at every write of ours.
  @Test(arguments: [["V2", "V3"], []])
  func killAtEveryWrite(via: [String]) async throws {
    let (steps, result, before) = try Self.rehearsal(via: via)
    let lastStep = "step-\(via.count + 1).sqlite"
    print("opening with a migration of \(via.count + 1) steps has \(steps) writes")
    for step in stride(from: Self.isLong ? 1 : 3, through: steps, by: Self.isLong ? 1 : 7) {
      let scene = try MigratingScene()
      let place = scene.folder.path.string
      await #expect(processExitsWith: .signal(SIGKILL), "step \(step)") {
        [place = place as String, step = step as Int, via = via as [String]] in
        let trouble = Trouble(.kill, atStep: step)
        let folder = FilePath(place)
        var migration = Migrator.Options()
        migration.via = via
        let coordinator = StoreCoordinator(
          model: .coreData(try ModelBundle.load(path: folder.appending("App.xcdatamodeld"))),
          home: folder.appending("Home"), appVersion: "7.1", migration: migration,
          surroundings: .still(fileSystem: trouble.fileSystem))
        _ = try coordinator.open(folder.appending("Stores/App.sqlite"))
      }
      try Self.expectNothingLost(scene, before, result, "step \(step)", lastStep: lastStep)
      try Self.expectGoesOn(scene, before, result, "step \(step)", via: via)
    }
  }

  /// SQLite's own writes are not ours to count: the process is killed at moments from a seed instead, again and again,
  /// until it comes through.
  @Test func killsAtRandomMoments() throws {
    let rows = 8_000
    let whole = try MigratingScene(rows: rows)
    func run(_ scene: MigratingScene) throws -> ChildProcess {
      try ChildProcess(
        ChildProcess.tool,
        ["open", scene.store.string, "--model", scene.model.string, "--home", scene.home.string, "--json"])
    }
    let start = ContinuousClock.now
    #expect(try run(whole).finish().status == 0)
    let duration = ContinuousClock.now - start
    let milliseconds = max(20, Int(duration / .milliseconds(1)))
    let seed = UInt64(environment("LAZARET_SEED") ?? "") ?? 20_261_121
    print("kills at random moments: seed \(seed), an undisturbed run takes \(milliseconds) ms")
    var generator = SeededGenerator(seed: seed)
    var kills = 0
    for round in 1...(Self.isLong ? 60 : 6) {
      let scene = try MigratingScene(rows: rows)
      let before = try scene.parts(scene.store)
      for attempt in 1... {
        let child = try run(scene)
        if attempt < 8 {
          let delay = Int.random(in: 5...milliseconds, using: &generator)
          Thread.sleep(forTimeInterval: Double(delay) / 1_000)
          child.kill()
        }
        let status = try child.finish().status
        if status == 0 { break }
        kills += 1
        #expect(status == 128 + SIGKILL, "round \(round)")
        // The old store whole, here or among the backups.
        let backups = try scene.backupFiles()
        #expect(
          try scene.parts(scene.store) == before || backups.contains { try scene.parts($0) == before }
            || !backups.isEmpty && scene.parts(scene.store)["main"] == before["main"], "round \(round)")
      }
      try scene.expectMigrated(rows: rows, before, "round \(round)")
    }
    print("\(kills) kills")
    #expect(kills > 0)
  }
}
