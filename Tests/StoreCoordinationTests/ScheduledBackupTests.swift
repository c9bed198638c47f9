import Backup
import GRDB
import Lazaret
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

/// Backups that are taken by themselves, and what an app does with them.
struct ScheduledBackupTests {
  private func surroundings(_ time: String) -> Surroundings { .still(at: time) }

  private func add(_ count: Int, to scene: Scene) throws {
    let store = try PersistentStore(opening: scene.store())
    try store.write { database in
      for _ in 0..<count {
        try database.execute(
          sql:
            "INSERT INTO ZCAR (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 'x'); "
            + "UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      }
    }
    try store.close()
  }

  @Test func aBackupIsTakenWhenItIsDueAndOldOnesGo() throws {
    let scene = try Scene()
    try scene.makeStore()
    var policy = BackupPolicy(keep: RetentionPolicy(last: .number(2)))
    try policy.save(home: scene.home)
    func backUp(_ time: String) throws -> Backups.Scheduled {
      try Backups(home: scene.home, surroundings: surroundings(time)).backUpIfDue(scene.store())
    }
    #expect(try backUp("2026-11-01T10:00:00Z").backup?.manifest?.reason == .scheduled)
    #expect(try backUp("2026-11-01T20:00:00Z").backup == nil)
    #expect(try backUp("2026-11-02T10:00:00Z").backup != nil)
    let third = try backUp("2026-11-03T10:00:00Z")
    #expect(third.backup != nil)
    // The first is a parent of deltas, or it goes.
    let kept = try Backups(home: scene.home).catalog(of: scene.store()).backups
    #expect(kept.allSatisfy { $0.isWhole })
    #expect(third.pruning?.plan.kept.count == kept.count)
    policy = BackupPolicy(everyHours: nil, everyOpenings: 3)
    try policy.save(home: scene.home)
    let taken = try (1...7).map { try backUp("2026-11-04T10:00:0\($0)Z").backup != nil }
    #expect(taken == [false, false, true, false, false, true, false])
  }

  @Test(arguments: [false, true])
  func whatAMigrationKeepsIsAmongTheBackups(packs: Bool) throws {
    let scene = try Scene()
    try scene.makeStore(version: "V1")
    if packs { try BackupPolicy(beforeMigration: true).save(home: scene.home) }
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    try opening.store.close()
    #expect(opening.events.map(\.kind) == (packs ? [.backup, .backup, .migration] : [.backup, .migration]))
    let backups = Backups(home: scene.home, surroundings: surroundings("2026-11-23T10:00:00Z"))
    let listed = try backups.catalog(of: scene.store()).backups
    #expect(listed.map { $0.manifest?.kind } == (packs ? [.original, .full] : [.original]))
    #expect(listed.allSatisfy { $0.isWhole && $0.manifest?.reason == .beforeMigration })
    let original = try #require(listed.first)
    #expect(try backups.prove(original.id, in: backups.place(of: scene.store())).result == .proven)
    // It is no backup of what is there now: one is due.
    #expect(try backups.backUpIfDue(scene.store()).backup?.isProvenGood == true)
    // And back to the version before.
    _ = try backups.restore(over: scene.store(), original.id)
    let examination = try Examiner().examine(scene.store(), model: try scene.appModel())
    #expect(examination.verdict == .outdated)
  }

  @Test func anOriginalWithRemovedRecordsStaysUntilItIsReleased() throws {
    let scene = try Scene()
    try scene.makeStore(version: "V1")
    try BackupPolicy(keep: RetentionPolicy(last: .number(1))).save(home: scene.home)
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    try opening.store.close()
    func backups(_ time: String) -> Backups { Backups(home: scene.home, surroundings: surroundings(time)) }
    let original = try #require(try backups("2026-11-22T10:00:00Z").catalog(of: scene.store()).backups.first)
    #expect(original.manifest?.kind == .original && original.onlyHere == nil)
    let note = OnlyHereNote(step: "V1 → V2", entities: [.init(name: "Person", rows: 12)])
    let main = try backups("2026-11-22T10:00:00Z").place(of: scene.store()).path.appending("\(original.id).sqlite")
    try scene.system.writeAtomically(try note.json(), to: OnlyHereNote.path(beside: main), replacing: true)
    let first = try backups("2026-11-22T10:00:00Z").backUpIfDue(scene.store())
    #expect(first.pruning?.plan.dropped.isEmpty == true)
    let reasons = first.pruning?.plan.kept.first { $0.id == original.id }?.reasons
    #expect(reasons == [.onlyHere(note)])
    #expect(try backups("2026-11-22T11:00:00Z").release(original.id) == note)
    #expect(try backups("2026-11-22T11:00:00Z").release(original.id) == nil)
    let second = try backups("2026-11-23T10:00:00Z").backUpIfDue(scene.store())
    #expect(second.pruning?.plan.dropped.map(\.id).contains(original.id) == true)
    do {
      try backups("2026-11-23T11:00:00Z").release(original.id)
      Issue.record("it is in the trash")
    } catch { #expect(BackupError(any: error).kind == .notFound) }
  }

  @Test func aPolicyCanForbidWhatIsTakenBefore() throws {
    let scene = try Scene()
    try scene.makeStore()
    let backups = Backups(home: scene.home, surroundings: surroundings("2026-11-01T10:00:00Z"))
    _ = try backups.create(scene.store())
    try BackupPolicy(beforeRestore: false).save(home: scene.home)
    let restored = try backups.restore(over: scene.store())
    #expect(restored.backup == nil)
    #expect(try scene.quarantined().count == 1)
  }

  @Test func aBackupTakenBeforeIsRestoredOverTheStore() throws {
    let scene = try Scene()
    try scene.makeStore()
    try add(3, to: scene)
    let backups = Backups(home: scene.home, surroundings: surroundings("2026-11-01T10:00:00Z"))
    let taken = try backups.create(scene.store())
    try add(2, to: scene)
    let later = Backups(home: scene.home, surroundings: surroundings("2026-11-02T10:00:00Z"))
    let preview = try later.preview(of: scene.store())
    #expect(preview.entities.map(\.lost) == [2] && preview.entities.map(\.unchanged) == [3])
    let restored = try later.restore(over: scene.store())
    #expect(restored.report.id == taken.id && restored.report.isComplete)
    #expect(restored.backup?.manifest?.reason == .beforeRestore)
    #expect(try scene.quarantined().count == 1)
    let opening = try scene.coordinator(home: scene.home).open(scene.store())
    #expect(try opening.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") } == 3)
    try opening.store.close()
    // And back again, by the backup that was taken before.
    let back = Backups(home: scene.home, surroundings: surroundings("2026-11-03T10:00:00Z"))
    let again = try back.restore(over: scene.store(), try #require(restored.backup).id, takesBackup: false)
    #expect(again.backup == nil)
    let store = try PersistentStore(opening: scene.store())
    #expect(try store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZCAR") } == 5)
    try store.close()
  }
}
