import Backup
import Platform
import TestSupport
import Testing

/// Decisions beside restic's own: recorded ones always, and those of this machine's restic on request.
struct ResticRetentionTests {
  private func compare(_ recording: ResticRecording) throws {
    let snapshots = try recording.snapshots.enumerated().map { place, snapshot in
      RetentionSnapshot(
        identifier: "\(place)", date: try #require(Timestamp(snapshot.date)), tags: snapshot.tags)
    }
    let now = Timestamp(secondsSince1970: RetentionHistory.latest.secondsSince1970 + 3600)
    for (number, example) in recording.cases.enumerated() {
      let plan = RetentionPlan(
        example.members.map { snapshots[$0] }, policy: RetentionPolicy(arguments: example.arguments), now: now)
      let kept = plan.decisions.compactMap { decision -> ResticRecording.Kept? in
        let rules = decision.reasons.filter(\.isRule)
        guard !rules.isEmpty, let member = Int(decision.snapshot.identifier) else { return nil }
        return ResticRecording.Kept(member: member, reasons: rules.map(\.words))
      }
      #expect(kept == example.kept, "case \(number) of seed \(recording.seed): \(example.arguments)")
      // Nothing that restic keeps is dropped.
      let dropped = Set(plan.dropped.map(\.snapshot.identifier))
      #expect(example.kept.allSatisfy { !dropped.contains("\($0.member)") })
    }
  }

  @Test func decidesAsResticDidOnRecordedHistories() throws {
    let recording = try ResticRecording.recorded()
    #expect(recording.cases.count >= 200)
    try compare(recording)
  }

  @Test(
    .enabled(
      if: environment("LAZARET_RESTIC") != nil && ChildProcess.exists("restic"),
      "restic is asked where LAZARET_RESTIC is set: a seed, which with LAZARET_RECORD is recorded"))
  func decidesAsTheResticOfThisMachine() throws {
    let seed = environment("LAZARET_RESTIC").flatMap { UInt64($0) } ?? 1
    let recording = try ResticRecording.asking(seed: seed, cases: 200)
    if environment("LAZARET_RECORD") != nil { try recording.write() }
    try compare(recording)
  }
}
