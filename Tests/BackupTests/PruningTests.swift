import Backup
import Platform
import SystemPackage
import TestSupport
import Testing

/// Pruning, the trash and bringing back, with kills and failures at every write.
struct PruningTests {
  private let lastTwo = RetentionPolicy(last: .number(2))
  private let now = "2026-11-21T10:11:12Z"

  private func pruner(_ scene: PruningScene, at time: String? = nil, _ system: FileSystem = FileSystem())
    -> BackupPruner
  {
    BackupPruner(of: scene.place(system), surroundings: .still(at: time ?? now, fileSystem: system))
  }

  private func fill(_ scene: PruningScene) throws {
    for day in [1, 2, 3, 10, 11] { try scene.add(day) }
    try scene.add(12, parent: 11, depth: 2)
    try scene.add(13, result: .failed)
  }

  @Test func dropsIntoTheTrashAndBringsBack() throws {
    let scene = try PruningScene()
    try fill(scene)
    let before = try scene.contents(.kept)
    let report = try pruner(scene).prune(lastTwo)
    #expect(
      report.plan.dropped.map { $0.id.description.prefix(10) } == [
        "2026-11-10", "2026-11-03", "2026-11-02", "2026-11-01",
      ])
    #expect(try scene.wholeDays() == ["11", "12", "13"])
    #expect(report.trash.count == 4 && report.emptied.isEmpty)
    #expect(report.trash.first?.expires?.rfc3339 == "2026-11-28T10:11:12Z")
    for day in [10, 3, 2, 1] { #expect(try pruner(scene).undelete(try scene.id(day)) == [try scene.id(day)]) }
    #expect(try scene.contents(.kept) == before)
    #expect(try scene.contents(.trash).isEmpty)
  }

  @Test func aRehearsalChangesNothing() throws {
    let scene = try PruningScene()
    try fill(scene)
    _ = try pruner(scene).prune(RetentionPolicy(last: .number(3)))
    let before = try FolderContents(of: scene.folder.path)
    let report = try pruner(scene, at: "2026-12-30T00:00:00Z").prune(lastTwo, options: .init(isRehearsal: true))
    #expect(report.plan.dropped.count == 1)
    #expect(report.emptied.count == 3)
    #expect(try FolderContents(of: scene.folder.path) == before)
  }

  @Test func theTrashIsEmptiedAfterItsTime() throws {
    let scene = try PruningScene()
    try fill(scene)
    _ = try pruner(scene).prune(lastTwo)
    #expect(try pruner(scene, at: "2026-11-28T10:11:11Z").prune(lastTwo).emptied.isEmpty)
    let report = try pruner(scene, at: "2026-11-28T10:11:12Z").prune(lastTwo)
    #expect(report.emptied.count == 4 && report.trash.isEmpty && report.freedBytes > 400)
    #expect(try scene.contents(.trash).isEmpty)
    #expect(throws: BackupError.self) { try pruner(scene).undelete(try scene.id(1)) }
  }

  @Test func aClockThatJumpedEmptiesNothing() throws {
    let scene = try PruningScene()
    try fill(scene)
    _ = try pruner(scene).prune(lastTwo)
    let report = try pruner(scene, at: "2036-11-21T10:11:12Z").prune(lastTwo)
    #expect(report.emptied.isEmpty && report.trash.count == 4)
  }

  @Test func theTrashKeepsTheLastGoodOnes() throws {
    let scene = try PruningScene()
    try fill(scene)
    _ = try pruner(scene).prune(lastTwo)
    // Meanwhile the kept ones have been found damaged.
    for day in [11, 12] {
      let id = try scene.id(day)
      let proof = BackupProof(id: id, date: id.date, result: .failed, depth: .restored)
      try scene.place().replace("\(id).proof.json", with: try proof.json(), in: .kept)
    }
    let report = try pruner(scene, at: "2026-12-21T10:11:12Z").prune(lastTwo)
    #expect(report.emptied.isEmpty && report.trash.count == 4)
  }

  @Test func bringingBackADeltaBringsItsChain() throws {
    let scene = try PruningScene()
    try scene.add(1)
    try scene.add(2, parent: 1, depth: 2)
    try scene.add(3, parent: 2, depth: 3, valuesIn: 1)
    for day in [10, 11] { try scene.add(day) }
    let before = try scene.contents(.kept)
    #expect(try pruner(scene).prune(lastTwo).plan.dropped.count == 3)
    #expect(try pruner(scene).undelete(try scene.id(3)) == [try scene.id(1), try scene.id(2), try scene.id(3)])
    #expect(try scene.contents(.kept) == before)
  }

  @Test func largeValuesInAnotherBackupKeepIt() throws {
    let scene = try PruningScene()
    for day in [1, 2, 3] { try scene.add(day) }
    try scene.add(10, valuesIn: 2)
    let report = try pruner(scene).prune(RetentionPolicy(last: .number(1)))
    #expect(report.plan.dropped.map(\.id) == [try scene.id(3), try scene.id(1)])
  }

  @Test func whatIsApartOrUnknownStays() throws {
    let scene = try PruningScene()
    try scene.add(1, evidence: true)
    try scene.add(2, isSound: false)
    try scene.add(3)
    try scene.place().replace("\(try scene.id(3)).json", with: Array("{}".utf8), in: .kept)
    try scene.add(4)
    for day in [10, 11] { try scene.add(day) }
    let report = try pruner(scene).prune(lastTwo)
    #expect(report.plan.dropped.map(\.id) == [try scene.id(4)])
    // A manifest that was lost is no reason to keep what cannot be listed.
    try scene.place().delete("\(try scene.id(10)).json", in: .kept)
    try scene.add(12)
    let next = try pruner(scene).prune(lastTwo)
    #expect(next.plan.dropped.map(\.id) == [try scene.id(10)])
    #expect(try pruner(scene).undelete(try scene.id(10)) == [try scene.id(10)])
  }

  @Test func aBackupOfTheSameSecondIsNeverTakenForTheDroppedOne() throws {
    let scene = try PruningScene()
    try fill(scene)
    _ = try pruner(scene).prune(lastTwo)
    try scene.add(1, tags: ["another"])
    let (kept, trashed) = (try scene.contents(.kept), try scene.contents(.trash))
    #expect(throws: BackupError.self) { try pruner(scene).undelete(try scene.id(1)) }
    #expect(try scene.contents(.kept) == kept)
    #expect(try scene.contents(.trash) == trashed)
  }

  // MARK: Interruption

  private static let troubles: [Trouble.Kind] = [
    .death, .failure(.noSpace), .failure(.ioError), .failure(.permissionDenied),
  ]

  /// Runs a job with trouble at each of its writes; after each, nothing is lost, nothing half is listed as whole, and the
  /// same job can be brought to its end.
  private func atEveryWrite(
    prepare: (PruningScene) throws -> Void, job: (PruningScene, FileSystem) throws -> Void
  ) throws {
    let rehearsal = Trouble(.death, atStep: 0)
    let scene = try PruningScene()
    try prepare(scene)
    let before = try everything(scene)
    try job(scene, rehearsal.fileSystem)
    let after = (try scene.contents(.kept), try everything(scene))
    #expect(rehearsal.steps > 10)
    for kind in Self.troubles {
      for step in 1...rehearsal.steps {
        let scene = try PruningScene()
        try prepare(scene)
        do { try job(scene, Trouble(kind, atStep: step).fileSystem) } catch is any ReportableError {}
        let told = Comment(rawValue: "\(kind) at \(step)")
        let now = try everything(scene)
        // Whatever the job keeps is there, somewhere; and nothing is there that was not before.
        for (name, bytes) in after.1 { #expect(now[name] == bytes, told) }
        for (name, bytes) in now { #expect(before[name] == bytes, told) }
        for backup in try BackupCatalog(of: scene.place()).backups where backup.isWhole {
          for file in backup.manifest?.files ?? [] {
            #expect(try scene.contents(.kept)[file.name] == before[file.name], told)
          }
        }
        do { try job(scene, FileSystem()) } catch let error as BackupError where error.kind == .notFound {
          // It had come to its end already.
        }
        #expect(try scene.contents(.kept) == after.0, told)
        #expect(try everything(scene) == after.1, told)
        #expect(try scene.contents(.trash).keys.allSatisfy { !$0.hasPrefix(".") }, told)
      }
    }
  }

  /// The contents of both sections, records of the trash left out.
  private func everything(_ scene: PruningScene) throws -> [String: [UInt8]] {
    var all = try scene.contents(.kept)
    for (name, bytes) in try scene.contents(.trash) where !name.hasSuffix(".dropped.json") {
      #expect(all[name] == nil || all[name] == bytes)
      all[name] = bytes
    }
    return all
  }

  @Test func aPruningMayBeCutShortAnywhere() throws {
    try atEveryWrite(prepare: fill) { scene, system in _ = try pruner(scene, system).prune(lastTwo) }
  }

  @Test func anEmptyingMayBeCutShortAnywhere() throws {
    try atEveryWrite { scene in
      try fill(scene)
      _ = try pruner(scene).prune(lastTwo)
    } job: { scene, system in
      _ = try pruner(scene, at: "2026-12-21T10:11:12Z", system).prune(lastTwo)
    }
  }

  @Test func aBringingBackMayBeCutShortAnywhere() throws {
    try atEveryWrite { scene in
      try scene.add(1)
      try scene.add(2, parent: 1, depth: 2)
      for day in [10, 11] { try scene.add(day) }
      _ = try pruner(scene).prune(lastTwo)
    } job: { scene, system in
      _ = try pruner(scene, system).undelete(try scene.id(2))
    }
  }

  @Test func whatTheTrashNeedsStaysInIt() throws {
    let scene = try PruningScene()
    try scene.add(1)
    for day in [10, 11] { try scene.add(day) }
    _ = try pruner(scene, at: "2026-11-12T00:00:00Z").prune(lastTwo)
    // A delta of the dropped one, dropped later.
    try scene.add(5, parent: 1, depth: 2)
    _ = try pruner(scene, at: "2026-11-18T00:00:00Z").prune(lastTwo)
    #expect(try pruner(scene, at: "2026-11-20T00:00:00Z").prune(lastTwo).emptied.isEmpty)
    let last = try pruner(scene, at: "2026-11-26T00:00:00Z").prune(lastTwo)
    #expect(last.emptied == [try scene.id(5), try scene.id(1)])
  }
}

extension PruningTests {
  private func pruner(_ scene: PruningScene, _ system: FileSystem) -> BackupPruner { pruner(scene, at: nil, system) }
}
