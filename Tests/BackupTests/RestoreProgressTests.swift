import Backup
import LazaretTesting
import Platform
import SystemPackage
import TestSupport
import Testing

/// How far a restore says it is: in no phase less than before, and in the end everything.
struct RestoreProgressTests {
  /// What was reported.
  private final class Reports: Sendable {
    struct Report: Hashable {
      var phase: BackupPhase
      var done: Int64
      var total: Int64
    }

    private let state = Mutex<[Report]>([])
    var all: [Report] { state.withLock { $0 } }

    var progress: BackupProgress {
      { phase, done, total in
        self.state.withLock { $0.append(Report(phase: phase, done: done, total: total)) }
        return true
      }
    }

    /// Holds the reports against what progress has to be.
    func expectRising(_ phases: Set<BackupPhase>, _ what: Comment) throws {
      #expect(Set(all.map(\.phase)) == phases, what)
      for phase in phases {
        let own = all.filter { $0.phase == phase }
        for (one, next) in zip(own, own.dropFirst()) {
          #expect(Double(one.done) / Double(one.total) <= Double(next.done) / Double(next.total), what)
        }
        #expect(own.allSatisfy { $0.done >= 0 && $0.total > 0 && $0.done <= $0.total }, what)
        let last = try #require(own.last)
        #expect(last.done == last.total, what)
      }
      #expect(all.last.map { $0.done == $0.total } == true, what)
    }
  }

  private static let filler = """
    CREATE TABLE FILLER (k INTEGER PRIMARY KEY, v BLOB);
    INSERT INTO FILLER WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 6000)
      SELECT NULL, randomblob(1000) FROM c
    """

  private func extract(_ scene: RestoreScene, _ entity: String, salvages: Bool = false) throws -> Reports {
    let reports = Reports()
    _ = try scene.restorer().extract(
      EntitySelection(entities: [entity]), from: MadeBackups.id(1), to: scene.folder.appending("\(entity).sqlite"),
      options: .init(salvages: salvages, progress: reports.progress), temporary: scene.folder.path)
    return reports
  }

  @Test func someRecordsAreDoneWhenTheyAreThere() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 5, records: 60, profile: .edge)
    try scene.change(store, Self.filler)
    try scene.backups.add(1, try scene.bytes(store), values: try scene.values(of: store))
    try extract(scene, "Port").expectRising([.unpacking], "records alone")
    try extract(scene, "Person").expectRising([.unpacking, .externalData], "with large values")
  }

  @Test func whatBeginsAnewDoesNotFallBack() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 5, records: 60, profile: .edge)
    try scene.change(store, Self.filler)
    try scene.backups.add(1, try scene.bytes(store), values: try scene.values(of: store))
    // Values are found damaged when the records are there already; then the whole is restored as far as it goes.
    try scene.backups.damage(1, .externalData, at: 100)
    try extract(scene, "Person", salvages: true).expectRising([.unpacking, .externalData], "salvaged")
  }

  @Test func aChainIsOneWhole() throws {
    let scene = try RestoreScene()
    let store = try scene.store("Ships.sqlite", seed: 6, records: 150)
    try scene.change(store, Self.filler)
    let first = try scene.bytes(store)
    try scene.change(store, "UPDATE FILLER SET v = randomblob(1000) WHERE k % 3 = 0")
    let second = try scene.bytes(store)
    try scene.change(store, "UPDATE FILLER SET v = randomblob(1000) WHERE k % 5 = 0")
    let third = try scene.bytes(store)
    try scene.backups.add(1, first)
    try scene.backups.add(2, second, parent: (1, first), depth: 2)
    try scene.backups.add(3, third, parent: (2, second), depth: 3)
    let reports = Reports()
    _ = try scene.restorer().restore(
      MadeBackups.id(3), to: scene.folder.appending("Other.sqlite"), options: .init(progress: reports.progress))
    try reports.expectRising([.unpacking], "a chain")
  }
}
