import GRDB
import Lazaret
import ManagedObjectModel
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

/// A disk that is really full.
@Suite(.serialized)
struct FullDiskTests {
  /// Whether this user may mount a file system in memory.
  static let canMount: Bool = {
    guard geteuid() == 0, ChildProcess.exists("mount"), let folder = try? TemporaryFolder() else { return false }
    guard (try? mount(folder.path, kilobytes: 64)) == true else { return false }
    return (try? ChildProcess.run("umount", [folder.path.string]).status) == 0
  }()

  private static func mount(_ folder: FilePath, kilobytes: Int) throws -> Bool {
    try ChildProcess.run("mount", ["-t", "tmpfs", "-o", "size=\(kilobytes)k", "tmpfs", folder.string]).status == 0
  }

  @Test(.enabled(if: canMount, "mounting a small file system needs root"))
  func whateverDoesNotFitLeavesTheStoreWhole() throws {
    var failures = 0
    var successes = 0
    for size in stride(from: 60, through: 320, by: 12) {
      let disk = try TemporaryFolder()
      try #require(try Self.mount(disk.path, kilobytes: size))
      defer { _ = try? ChildProcess.run("umount", ["-l", disk.path.string]) }
      let scene = try Scene(in: disk.path)
      try scene.makeDamagedStore()
      let before = try scene.parts(scene.store())
      do {
        let opening = try scene.coordinator(home: scene.home).open(scene.store())
        successes += 1
        try opening.store.close()
        try scene.expectQuarantined(before, in: try scene.quarantined(), "\(size) kB")
      } catch let error as any ReportableError {
        failures += 1
        #expect(error.code == "no-space", "\(size) kB: \(error)")
        #expect(error.isEnvironmental, "\(size) kB")
        // Whole in its place, or whole in quarantine with a salvage that goes on.
        let isThere = try scene.parts(scene.store()) == before
        #expect(isThere == (try scene.quarantined().isEmpty), "\(size) kB")
        if !isThere { #expect(try scene.quarantined().first?.receipt?.salvage?.isWanted == true, "\(size) kB") }
        // With more room the next run does it.
        _ = try ChildProcess.run("mount", ["-o", "remount,size=4m", disk.path.string])
        try scene.coordinator(home: scene.home).open(scene.store()).store.close()
        try scene.expectGoodStore(scene.store(), "\(size) kB")
        try scene.expectQuarantined(before, in: try scene.quarantined(), "\(size) kB")
      }
    }
    #expect(failures > 0)
    #expect(successes > 0)
  }

  @Test(.enabled(if: canMount, "mounting a small file system needs root"))
  func aSalvageThatDoesNotFitGoesOnWhenThereIsRoom() throws {
    var refused = 0
    var waiting = 0
    var successes = 0
    for (round, room) in [4, 12, 20, 40, 60, 90, 120, 160, 200, 250, 300, 350, 400, 500, 600, 700].enumerated() {
      let disk = try TemporaryFolder()
      try #require(try Self.mount(disk.path, kilobytes: 4096))
      defer { _ = try? ChildProcess.run("umount", ["-l", disk.path.string]) }
      // The undamaged store goes elsewhere before the disk counts.
      let scene = try SalvagingScene(in: disk.path)
      try scene.scene.system.unlink(scene.whole)
      let used = try ChildProcess.run("du", ["-sk", disk.path.string]).output.prefix { $0.isNumber }
      let size = try #require(Int(used)) + room
      _ = try ChildProcess.run("mount", ["-o", "remount,size=\(size)k", disk.path.string])
      // The space is there when it is looked at, and taken by another process on the way, in every other round.
      let isTaken = round % 2 == 1
      let observer = OpeningObserver { progress in
        guard isTaken, progress.phase == .salvaging else { return }
        _ = try? ChildProcess.run(
          "sh", ["-c", "head -c 100000000 /dev/zero > \(disk.path.string)/taken 2>/dev/null"])
      }
      do {
        try scene.coordinator().open(scene.scene.store(), observer: observer).store.close()
        successes += 1
      } catch let error as any ReportableError {
        #expect(error.code == "no-space", "\(size) kB: \(error)")
        #expect(error.isEnvironmental, "\(size) kB")
        if let stored = try scene.scene.quarantined().first {
          waiting += 1
          try scene.scene.expectQuarantined(scene.before, in: [stored], "\(size) kB")
          #expect(stored.receipt?.salvage?.isWanted == true, "\(size) kB")
          #expect(try scene.scene.parts(scene.scene.store())["main"] == nil, "\(size) kB")
        } else {
          refused += 1
          #expect(try scene.scene.parts(scene.scene.store()) == scene.before, "\(size) kB")
        }
        try scene.scene.system.unlink(disk.path.appending("taken"))
        _ = try ChildProcess.run("mount", ["-o", "remount,size=4m", disk.path.string])
        try scene.coordinator().open(scene.scene.store()).store.close()
      }
      _ = try ChildProcess.run("mount", ["-o", "remount,size=4m", disk.path.string])
      try scene.expectRescued("\(size) kB")
    }
    print("full disk: \(refused) salvages were not begun, \(waiting) waited for room, \(successes) had it")
    #expect(refused > 0)
    #expect(waiting > 0)
    #expect(successes > 0)
  }

  @Test(.enabled(if: canMount, "mounting a small file system needs root"))
  func aMigrationThatDoesNotFitSaysHowMuchItNeeds() throws {
    var failures = 0
    var midway = 0
    var successes = 0
    for size in stride(from: 360, through: 2_400, by: 120) {
      let disk = try TemporaryFolder()
      try #require(try Self.mount(disk.path, kilobytes: size))
      defer { _ = try? ChildProcess.run("umount", ["-l", disk.path.string]) }
      let scene = try MigratingScene(rows: 4_000, in: disk.path)
      let before = try scene.parts(scene.store)
      // The space is there when it is looked at, and taken by another process on the way, in every other round.
      let isTaken = size % 240 == 0
      let observer = OpeningObserver { progress in
        guard isTaken, progress.step == "V2 → V3" else { return }
        _ = try? ChildProcess.run(
          "sh", ["-c", "head -c 100000000 /dev/zero > \(disk.path.string)/taken 2>/dev/null"])
      }
      do {
        let opening = try scene.coordinator().open(scene.store, observer: observer)
        successes += 1
        try opening.store.close()
        try scene.expectMigrated(rows: 4_000, before, "\(size) kB")
      } catch let error as any ReportableError {
        failures += 1
        if try scene.system.status(of: disk.path.appending("taken")) != nil { midway += 1 }
        #expect(error.code == "no-space", "\(size) kB: \(error)")
        #expect(error.isEnvironmental, "\(size) kB")
        #expect(error.detail.contains("the migration needs "), "\(size) kB: \(error)")
        #expect(try scene.parts(scene.store) == before, "\(size) kB")
        try scene.system.unlink(disk.path.appending("taken"))
        // No half made file stays behind.
        let working = scene.stores.appending(".App.sqlite.migrating")
        if try scene.system.status(of: working) != nil {
          let left = try scene.system.entries(of: working).map(\.string)
          #expect(!left.contains { $0.contains(".unfinished") }, "\(size) kB: \(left)")
        }
        // The original opens as it is, where SQLite has the room for the index of a log that every opening needs.
        if try scene.system.freeSpace(at: disk.path) > 1 << 17 {
          let model = try scene.bundle().versions[0].model
          let original = try PersistentStore(opening: scene.store, model: model, options: .init(isReadOnly: true))
          #expect(try original.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") } == 4_000)
          try original.close()
        }
        // With more room the next run does it.
        _ = try ChildProcess.run("mount", ["-o", "remount,size=16m", disk.path.string])
        try scene.coordinator().open(scene.store).store.close()
        try scene.expectMigrated(rows: 4_000, nil, "\(size) kB")
      }
    }
    print("full disk: \(failures) failures, \(midway) of them on the way, \(successes) successes")
    #expect(failures > midway)
    #expect(midway > 0)
    #expect(successes > 0)
  }
}
