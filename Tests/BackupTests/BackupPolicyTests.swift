import Backup
import Platform
import TestSupport
import Testing

struct BackupPolicyTests {
  private func read(_ json: String) throws -> BackupPolicy {
    try BackupPolicy(json: Array(json.utf8))
  }

  private let head = #""format": "lazaret-backup-policy", "version": 1"#

  @Test func aFileIsWrittenAndRead() throws {
    let folder = try TemporaryFolder()
    #expect(try BackupPolicy.load(home: folder.path) == BackupPolicy())
    var policy = BackupPolicy(
      everyHours: nil, everyOpenings: 5, trashDays: 30, level: 9, beforeMigration: true, beforeInstall: false,
      beforeRestore: false)
    policy.compression = .zstd
    policy.level = 19
    policy.keep = RetentionPolicy(
      last: .unlimited, daily: .number(7), within: RetentionDuration("1y2m"), tags: [["a", "b"], ["c"]])
    try policy.save(home: folder.path)
    #expect(try BackupPolicy.load(home: folder.path) == policy)
  }

  @Test func whatIsMissingIsAsUsual() throws {
    #expect(try read("{\(head)}") == BackupPolicy())
    #expect(try read("{\(head), \"everyHours\": null}").everyHours == nil)
    #expect(try !read("{\(head), \"beforeRestore\": false}").beforeRestore)
    #expect(try read("{\(head), \"compression\": \"zstd\"}").level == 3)
    #expect(try read("{\(head), \"keep\": {\"last\": 3}}").keep == RetentionPolicy(last: .number(3)))
  }

  @Test(arguments: [
    (#"{"version": 1}"#, "format is missing"), ("[]", "it is of the wrong kind"), ("nonsense", "it is not JSON"),
    (#"{"format": "other", "version": 1}"#, "it is no backup policy"),
    (#"{"format": "lazaret-backup-policy", "version": 2}"#, "it is of version 2, and this software knows version 1"),
    (#"{HEAD, "everyhours": 2}"#, "it has a key \"everyhours\" that no policy has"),
    (#"{HEAD, "keep": {"dayly": 2}}"#, "it has a key \"keep.dayly\" that no policy has"),
    (#"{HEAD, "keep": {"daily": -2}}"#, "keep.daily: it is neither a number from 0 on nor the text \"unlimited\""),
    (#"{HEAD, "keep": {"within": "2w"}}"#, "keep.within: it is not a duration such as \"1y5m7d2h\" or \"14d\""),
    (#"{HEAD, "keep": 7}"#, "keep is of the wrong kind"),
    (#"{HEAD, "everyHours": 0}"#, "everyHours must be from 1 to 1000000, or null for never"),
    (#"{HEAD, "level": 7}"#, "level must be 1, 6 or 9"),
    (#"{HEAD, "compression": "zstd", "level": 20}"#, "level must be 1 to 19 for zstd"),
    (#"{HEAD, "trashDays": -1}"#, "trashDays must be from 0 to 36500"),
  ])
  func whatCannotBeMeantIsRefused(json: String, detail: String) throws {
    let error = #expect(throws: BackupError.self) { try read(json.replacing("HEAD", with: head)) }
    #expect(error?.kind == .policyUnreadable)
    #expect(error?.detail == detail)
  }

  @Test func aBackupIsDueByHoursAndByOpenings() throws {
    let now = Timestamp(secondsSince1970: 1_795_000_000)
    func hoursAgo(_ hours: Int64) -> Timestamp { Timestamp(secondsSince1970: now.secondsSince1970 - hours * 3600) }
    let daily = BackupSchedule(BackupPolicy())
    #expect(daily.isDue([], openings: 1, now: now))
    #expect(!daily.isDue([hoursAgo(90), hoursAgo(23)], openings: 100, now: now))
    #expect(daily.isDue([hoursAgo(24)], openings: 1, now: now))
    // What is dated in the future is no backup of the last hours; the one that is taken now is.
    #expect(daily.isDue([hoursAgo(-1000)], openings: 1, now: now))
    #expect(!daily.isDue([hoursAgo(-1000), hoursAgo(0)], openings: 1, now: now))
    let often = BackupSchedule(BackupPolicy(everyHours: nil, everyOpenings: 3))
    #expect(!often.isDue([], openings: 2, now: now))
    #expect(often.isDue([hoursAgo(0)], openings: 3, now: now))
    #expect(!BackupSchedule(BackupPolicy(everyHours: nil)).isDue([], openings: 9, now: now))
  }
}
