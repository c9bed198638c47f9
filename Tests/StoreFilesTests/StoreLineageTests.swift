import Platform
import Testing

/// Which evidence counts for a store, by generation and date.
struct StoreLineageTests {
  private func day(_ number: Int) -> Timestamp { Timestamp(secondsSince1970: 1_800_000_000 + Int64(number) * 86_400) }

  @Test("Without a generation the dates alone decide")
  func dates() {
    let scope = EvidenceScope(lineage: nil, event: day(5))
    #expect(scope.exclusion(generation: nil, date: day(4)) == nil)
    #expect(scope.exclusion(generation: "A", date: day(5)) == nil)
    #expect(scope.exclusion(generation: nil, date: day(6)) == .later)
    #expect(EvidenceScope(lineage: nil, event: nil).exclusion(generation: "B", date: day(9)) == nil)
  }

  @Test("A store that was there before has its own evidence, and what is older than any name")
  func first() {
    let scope = EvidenceScope(lineage: StoreLineage(generation: "A", since: day(5)), event: day(8))
    #expect(scope.exclusion(generation: "A", date: day(7)) == nil)
    #expect(scope.exclusion(generation: nil, date: day(5)) == nil)
    #expect(scope.exclusion(generation: nil, date: day(3)) == nil)
    #expect(scope.exclusion(generation: "B", date: day(6)) == .otherGeneration)
    #expect(scope.exclusion(generation: "B", date: day(5)) == .otherGeneration)
    #expect(scope.exclusion(generation: "A", date: day(9)) == .later)
  }

  @Test("A store that something made room for has nothing from before")
  func following() {
    let lineage = StoreLineage(generation: "B", since: day(5), parent: "2026-11-21-10-11-12")
    let scope = EvidenceScope(lineage: lineage, event: nil)
    #expect(scope.exclusion(generation: "B", date: day(6)) == nil)
    #expect(scope.exclusion(generation: nil, date: day(6)) == nil)
    #expect(scope.exclusion(generation: nil, date: day(5)) == .otherGeneration)
    #expect(scope.exclusion(generation: nil, date: day(4)) == .otherGeneration)
    #expect(scope.exclusion(generation: "A", date: day(4)) == .otherGeneration)
  }

  @Test("A restored store has the evidence of its backup's generation up to the backup")
  func restored() {
    let backup = StoreLineage.Restored(backup: "2026-11-20-08-00-00", date: day(3), generation: "A")
    let lineage = StoreLineage(generation: "C", since: day(7), parent: "2026-11-21-10-11-12", restored: backup)
    let scope = EvidenceScope(lineage: lineage, event: nil)
    #expect(scope.exclusion(generation: "A", date: day(3)) == nil)
    #expect(scope.exclusion(generation: "A", date: day(4)) == .otherGeneration)
    #expect(scope.exclusion(generation: "C", date: day(8)) == nil)
    #expect(scope.exclusion(generation: "B", date: day(2)) == .otherGeneration)
  }
}
