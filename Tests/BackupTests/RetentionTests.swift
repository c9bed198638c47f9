import Backup
import Platform
import Testing

/// What retention promises whatever the rules say.
struct RetentionTests {
  private let day: Int64 = 86400
  private let now = Timestamp(secondsSince1970: 1_795_000_000)

  private func snapshot(
    _ name: String, daysAgo: Double, proof: RetentionSnapshot.Proof = .proven, parent: String? = nil,
    tags: [String] = [], evidence: Bool = false
  ) -> RetentionSnapshot {
    RetentionSnapshot(
      identifier: name, date: Timestamp(secondsSince1970: now.secondsSince1970 - Int64(daysAgo * 86400)), tags: tags,
      proof: proof, needs: parent.map { [$0] } ?? [], standing: evidence ? .apart : .ordinary)
  }

  private func kept(_ history: [RetentionSnapshot], _ policy: RetentionPolicy) -> Set<String> {
    Set(RetentionPlan(history, policy: policy, now: now).kept.map(\.snapshot.identifier))
  }

  private func reasons(
    _ name: String, _ history: [RetentionSnapshot], _ policy: RetentionPolicy
  ) -> [String] {
    RetentionPlan(history, policy: policy, now: now).decisions.first { $0.snapshot.identifier == name }?
      .reasons.map(\.code) ?? []
  }

  private let lastOne = RetentionPolicy(last: .number(1))

  @Test func theLastProvenOneStaysBehindAnyNumberOfUnprovenOnes() {
    let history =
      [snapshot("good", daysAgo: 40)]
      + (1...30).map { snapshot("bad\($0)", daysAgo: Double($0), proof: $0.isMultiple(of: 2) ? .failed : .unproven) }
    #expect(kept(history, lastOne) == ["good", "bad1"])
    #expect(reasons("good", history, lastOne) == ["last-proven", "last"])
    #expect(reasons("bad1", history, lastOne) == ["newest", "not-proven-yet", "last"])
    // Said is what was checked, and not that it was verified.
    let words: [(RetentionSnapshot.Verification, String)] = [
      (.files, "read back"), (.pages, "could not be compared"), (.changed, "indexes of what had changed"),
      (.whole, "every index"),
    ]
    for (verification, part) in words {
      var checked = snapshot("one", daysAgo: 1)
      checked.verification = verification
      let told = RetentionPlan([checked], policy: lastOne, now: now).decisions.first?.reasons.map(\.words) ?? []
      #expect(told.contains { $0.hasPrefix("the last one") && $0.contains(part) }, "\(told)")
      #expect(!told.contains { $0.contains("verified") }, "\(told)")
    }
    #expect(reasons("bad2", history, lastOne) == ["no-proof"])
  }

  @Test func unprovenOnesTakeNoProvenOnesPlace() {
    let history = (0..<10).map {
      snapshot("\($0)", daysAgo: Double($0), proof: $0 < 5 ? .inconclusive : .proven)
    }
    #expect(kept(history, RetentionPolicy(daily: .number(3))) == ["0", "1", "2", "5", "6", "7"])
  }

  @Test func aKeptDeltaKeepsItsWholeChain() {
    let history = (0..<8).map {
      snapshot("\($0)", daysAgo: Double($0), parent: $0 < 5 ? "\($0 + 1)" : nil)
    }
    #expect(kept(history, lastOne) == ["0", "1", "2", "3", "4", "5"])
    #expect(reasons("5", history, lastOne) == ["needed"])
  }

  @Test func aChainThatRunsInACircleEndsTheJudgingAllTheSame() {
    let history = [
      snapshot("a", daysAgo: 1, parent: "b"), snapshot("b", daysAgo: 2, parent: "a"),
      snapshot("c", daysAgo: 3, parent: "c"), snapshot("d", daysAgo: 4, parent: "nobody"),
    ]
    #expect(kept(history, lastOne) == ["a", "b"])
  }

  @Test func evidenceIsNeitherDroppedNorCounted() {
    let history = [
      snapshot("evidence", daysAgo: 1, evidence: true), snapshot("new", daysAgo: 2), snapshot("old", daysAgo: 3),
    ]
    #expect(kept(history, lastOne) == ["evidence", "new"])
  }

  @Test(arguments: [(1.0, true), (29.5, true), (30.5, false)])
  func theLastGoodOneOfBeforeAQuarantineStaysForThirtyDays(daysAgo: Double, isKept: Bool) {
    let since = Timestamp(secondsSince1970: now.secondsSince1970 - Int64(daysAgo * 86400))
    func of(_ snapshot: RetentionSnapshot, _ lineage: StoreLineage?) -> RetentionSnapshot {
      var snapshot = snapshot
      snapshot.lineage = lineage
      return snapshot
    }
    let after = StoreLineage(generation: "b", since: since, parent: "2026-11-20-10-11-12")
    let history = [
      of(snapshot("new", daysAgo: 0.1), after), of(snapshot("newer", daysAgo: 0.2), after),
      of(snapshot("unproven", daysAgo: 31, proof: .failed), StoreLineage(generation: "a", since: since)),
      of(snapshot("last", daysAgo: 32), nil), of(snapshot("former", daysAgo: 33), nil),
    ]
    #expect(kept(history, lastOne) == (isKept ? ["new", "last"] : ["new"]))
    #expect(reasons("last", history, lastOne) == [isKept ? "before-quarantine" : "no-rule"])
    // A store that nothing made room for is the same as before.
    let named = history.map { $0.lineage == nil ? $0 : of($0, StoreLineage(generation: "b", since: since)) }
    #expect(kept(named, lastOne) == ["new"])
  }

  @Test func anOriginalWithRemovedRecordsIsNeitherDroppedNorCounted() {
    var original = snapshot("original", daysAgo: 1)
    original.onlyHere = OnlyHereNote(step: "V1 → V2", entities: [.init(name: "Person", rows: 12)])
    let history = [original, snapshot("new", daysAgo: 2), snapshot("old", daysAgo: 3)]
    #expect(kept(history, lastOne) == ["original", "new"])
    #expect(reasons("original", history, lastOne) == ["only-here"])
    #expect(reasons("new", history, lastOne) == ["newest", "last-proven", "last"])
    // Neither its age nor its proof nor the clock has a say.
    for daysAgo in [-4000.0, 0, 200, 9000] {
      for proof in [RetentionSnapshot.Proof.proven, .unproven, .failed, .inconclusive] {
        var other = snapshot("original", daysAgo: daysAgo, proof: proof)
        other.onlyHere = OnlyHereNote(step: nil, entities: [])
        #expect(kept([other] + history.dropFirst(), lastOne) == ["original", "new"])
      }
    }
    original.onlyHere = nil
    #expect(kept([original] + history.dropFirst(), lastOne) == ["original"])
  }

  private static let records: [([Int64], String)] = [
    ([1], "1 record of E0"), ([1000], "1,000 records of E0"), ([12, 3], "12 records of E0 and 3 of E1"),
    ([12, 3, 4], "12 records of E0, 3 of E1 and 4 of E2"),
    ([12, 3, 4, 5], "12 records of E0, 3 of E1, 4 of E2 and 5 of 1 other entity"),
    ([1, 1, 1, .max, 1], "1 record of E0, 1 of E1, 1 of E2 and 9,223,372,036,854,775,807 of 2 other entities"),
  ]

  @Test(arguments: Self.records)
  func removedRecordsAreToldByTheirEntities(rows: [Int64], words: String) {
    let entities = rows.enumerated().map { OnlyHereNote.Entity(name: "E\($0)", rows: $1) }
    let reason = RetentionReason.onlyHere(OnlyHereNote(step: "V1 → V2", entities: entities))
    #expect(reason.words == "holds \(words) that its migration removed, and is kept until it is released")
    #expect(!reason.isRule)
  }

  @Test func namesOfRemovedEntitiesSteerNoTerminal() {
    let long = OnlyHereNote.Entity(name: "\u{1B}[2J\n" + String(repeating: "x", count: 5000), rows: 2)
    let words = RetentionReason.onlyHere(OnlyHereNote(step: nil, entities: [long])).words
    #expect(words.count < 200 && words.unicodeScalars.allSatisfy { $0.value >= 0x20 })
  }

  @Test func whatIsDatedInTheFutureTakesNoPlace() {
    let history = (1...5).map { snapshot("future\($0)", daysAgo: Double(-$0 * 400)) } + [snapshot("now", daysAgo: 1)]
    let plan = RetentionPlan(history, policy: lastOne, now: now)
    #expect(plan.dropped.isEmpty)
    #expect(!plan.isClockTrusted)
  }

  @Test func aClockThatJumpedAheadDropsNothing() {
    let past = (0..<20).map { snapshot("\($0)", daysAgo: Double(3650 + $0)) }
    let policy = RetentionPolicy(last: .number(2), within: RetentionDuration("10d"))
    let before = RetentionPlan(
      past, policy: policy, now: Timestamp(secondsSince1970: now.secondsSince1970 - 3650 * day))
    let withJump = [snapshot("jumped", daysAgo: 1), snapshot("jumped2", daysAgo: 0.5)] + past
    let plan = RetentionPlan(withJump, policy: policy, now: now)
    #expect(!plan.isClockTrusted)
    #expect(
      Set(plan.kept.map(\.snapshot.identifier))
        == Set(before.kept.map(\.snapshot.identifier)).union(["jumped", "jumped2"]))
    // A week of backups shows that it was no jump.
    let confirmed = (0..<9).map { snapshot("new\($0)", daysAgo: Double($0)) } + past
    let later = RetentionPlan(confirmed, policy: policy, now: now)
    #expect(later.isClockTrusted)
    #expect(later.kept.allSatisfy { $0.snapshot.identifier.hasPrefix("new") })
  }

  @Test func aDeltaThatIsDatedBeforeItsParentIsKept() {
    let history = [
      snapshot("base", daysAgo: 10), snapshot("delta", daysAgo: 9000, parent: "base"), snapshot("new", daysAgo: 1),
    ]
    #expect(kept(history, lastOne) == ["base", "delta", "new"])
  }

  @Test func aPolicyWithoutRulesKeepsEverything() {
    let history = (0..<10).map { snapshot("\($0)", daysAgo: Double($0)) }
    #expect(kept(history, RetentionPolicy()).count == 10)
    #expect(RetentionPlan([], policy: .usual, now: now).decisions.isEmpty)
  }

  @Test(arguments: [
    ("2026-03-31T10:00:00Z", "1m", "2026-03-03T10:00:00Z"), ("2024-03-31T10:00:00Z", "1m", "2024-03-02T10:00:00Z"),
    ("2026-01-15T10:00:00Z", "1y2m", "2024-11-15T10:00:00Z"), ("2024-02-29T00:30:00Z", "1y", "2023-03-01T00:30:00Z"),
    ("2026-03-01T00:30:00Z", "1d1h", "2026-02-27T23:30:00Z"), ("2026-01-01T00:00:00Z", "12m", "2025-01-01T00:00:00Z"),
  ])
  func durationsGoBackByTheCalendar(start: String, duration: String, end: String) throws {
    let moment = try #require(Timestamp(start))
    #expect(try #require(RetentionDuration(duration)).before(moment).rfc3339 == end)
  }

  @Test func durationsAndCountsAreReadStrictly() {
    for text in ["", "5", "d", "1d1d", "-1d", "1w", "99999999999999999999d", "1 d", "0d", "١d"] {
      #expect(RetentionDuration(text) == nil, "\(text)")
    }
    for text in ["", "-2", "1.5", "all", "99999999999999999999"] { #expect(RetentionCount(text) == nil, "\(text)") }
    #expect(RetentionDuration("2h7d5m1y")?.description == "1y5m7d2h")
    #expect(RetentionCount("unlimited") == .unlimited)
    #expect(RetentionCount("-1") == .unlimited)
  }

  @Test func promisesHoldOnRandomHistories() {
    let note = OnlyHereNote(step: "V1 → V2", entities: [.init(name: "Person", rows: 12)])
    for seed: UInt64 in 1...300 {
      var random = RetentionHistory(seed: seed)
      let moments = random.pool(60)
      let members = random.members(of: moments.count)
      let proofs: [RetentionSnapshot.Proof] = [.proven, .proven, .unproven, .failed, .inconclusive]
      let history = members.enumerated().map { place, member -> RetentionSnapshot in
        var snapshot = RetentionSnapshot(
          identifier: "\(place)", date: moments[member], tags: random.tags(),
          proof: proofs.randomElement(using: &random.generator) ?? .proven,
          needs: place > 0 && Int.random(in: 0..<3, using: &random.generator) > 0 ? ["\(place - 1)"] : [],
          standing: Int.random(in: 0..<12, using: &random.generator) == 0 ? .apart : .ordinary)
        if Int.random(in: 0..<12, using: &random.generator) == 0 { snapshot.onlyHere = note }
        return snapshot
      }
      let policy = RetentionPolicy(arguments: random.arguments())
      let now = Timestamp(secondsSince1970: RetentionHistory.latest.secondsSince1970 - 3600 * 6)
      let plan = RetentionPlan(history, policy: policy, now: now)
      let kept = Set(plan.kept.map(\.snapshot.identifier))
      let told = Comment(rawValue: "seed \(seed)")
      #expect(plan.decisions.count == history.count, told)
      #expect(plan.decisions.allSatisfy { !$0.reasons.isEmpty }, told)
      for snapshot in history where kept.contains(snapshot.identifier) {
        #expect(snapshot.needs.allSatisfy { kept.contains($0) }, told)
      }
      let counted = history.filter { $0.standing == .ordinary && $0.date <= now }
      if let good = counted.filter({ $0.proof == .proven }).max(by: { $0.date < $1.date }) {
        #expect(kept.contains(good.identifier), told)
      }
      #expect(history.filter { $0.onlyHere != nil }.allSatisfy { kept.contains($0.identifier) }, told)
      #expect(
        history.filter { $0.standing != .ordinary || $0.date.secondsSince1970 > now.secondsSince1970 + 300 }
          .allSatisfy { kept.contains($0.identifier) }, told)
      // Every proven one that the rules keep among the proven ones alone is kept.
      let proven = counted.filter { $0.proof == .proven }
      let alone = RetentionPlan(proven, policy: policy, now: now)
      let byRule = alone.kept.filter { $0.reasons.contains(where: \.isRule) }
      #expect(byRule.allSatisfy { kept.contains($0.snapshot.identifier) }, told)
    }
  }

  @Test func noneIsDroppedForOthersThatWereVerifiedLessFar() {
    var history = (1...20).map { snapshot("files\($0)", daysAgo: Double($0)) }
    for index in history.indices { history[index].verification = index.isMultiple(of: 2) ? .files : .changed }
    var whole = snapshot("whole", daysAgo: 30)
    whole.verification = .whole
    history.append(whole)
    // Of each depth the last one, with those that were verified further.
    #expect(kept(history, lastOne) == ["files1", "files2", "whole"])
    #expect(reasons("whole", history, lastOne) == ["last-proven", "last"])
    var newer = snapshot("newer", daysAgo: 0)
    newer.verification = .whole
    #expect(kept(history + [newer], lastOne) == ["newer"])
  }

  @Test func theLastOneWithALargeValueIsKeptForOneThatLacksIt() {
    var history = (0..<6).map { snapshot("\($0)", daysAgo: Double($0)) }
    // A is in all but the two newest, B in the oldest alone, C in none.
    for place in 0...1 { history[place].lacks = ["A", "B", "C"] }
    for place in 2...5 { history[place].holds = place == 5 ? ["A", "B"] : ["A"] }
    history[2].proof = .failed
    #expect(kept(history, lastOne) == ["0", "3", "5"])
    #expect(reasons("3", history, lastOne) == ["holds-values"])
    #expect(reasons("5", history, lastOne) == ["holds-values"])
    // Records that no kept one refers to with have no part in it.
    history[0].lacks = []
    #expect(kept(history, lastOne) == ["0"])
  }

  @Test(arguments: [(29.9, false, true), (30.1, false, false), (29.9, true, false)])
  func theLastOneBeforeAFallIsKeptForAWhile(daysAgo: Double, isReleased: Bool, isKept: Bool) {
    var before = snapshot("before", daysAgo: daysAgo + 1)
    before.isReleased = isReleased
    var after = snapshot("after", daysAgo: daysAgo)
    after.falls = [
      .init(name: "Car", before: 100, after: 3, backup: BackupIdentifier(date: before.date))
    ]
    before.identifier = BackupIdentifier(date: before.date).description
    let history = [before, after, snapshot("newest", daysAgo: 0)]
    #expect(kept(history, lastOne).contains(before.identifier) == isKept)
    if isKept { #expect(reasons(before.identifier, history, lastOne) == ["before-fall"]) }
    #expect(reasons("after", history, lastOne) == [isKept ? "shows-fall" : "no-rule"])
  }
}
