import Lazaret
import Platform
import SystemPackage
import Testing

@Suite("Which of two results is better")
struct BetterResultTests {
  private func result(_ recovered: Int64, isUsable: Bool) -> Receipt.Salvage.Result {
    result(
      [
        Receipt.Salvage.Entity(
          name: "Car", table: "ZCAR", recovered: recovered, doubtful: 0, lost: 0, lostIsExact: true)
      ], isUsable: isUsable)
  }

  private func result(_ entities: [Receipt.Salvage.Entity], isUsable: Bool = true) -> Receipt.Salvage.Result {
    Receipt.Salvage.Result(
      name: PathText(FilePath("A.salvaged.sqlite")), report: PathText(FilePath("A.salvage.json")), setAside: nil,
      date: Timestamp(secondsSince1970: 0, nanoseconds: 0), bytes: 1, sha256: "", version: nil, isUsable: isUsable,
      isComplete: false, score: 0, entities: entities, evidence: nil)
  }

  @Test("One without a record never takes the place of one with records, whichever the app can open")
  func nothing() {
    for (isUsable, wasUsable) in [(true, true), (true, false), (false, true), (false, false)] {
      #expect(!result(0, isUsable: isUsable).isBetter(than: result(598, isUsable: wasUsable), whichIsUsable: wasUsable))
    }
  }

  @Test("Of two with records the one that the app can open is better, else the one with more")
  func usable() {
    #expect(result(5, isUsable: true).isBetter(than: result(9, isUsable: false), whichIsUsable: false))
    #expect(!result(9, isUsable: false).isBetter(than: result(5, isUsable: true), whichIsUsable: true))
    #expect(result(9, isUsable: true).isBetter(than: result(5, isUsable: true), whichIsUsable: true))
    #expect(!result(5, isUsable: true).isBetter(than: result(9, isUsable: true), whichIsUsable: true))
    #expect(result(3, isUsable: true).isBetter(than: result(0, isUsable: true), whichIsUsable: true))
  }

  private func message(
    _ name: String, _ recovered: Int64, lost: Int64 = 0, doubtful: Int64 = 0
  ) -> Receipt.Salvage.Entity {
    Receipt.Salvage.Entity(
      name: name, table: "ZMESSAGE", recovered: recovered, doubtful: doubtful, lost: lost, lostIsExact: true)
  }

  @Test("Entities that share a table are compared each by itself")
  func sharedTable() throws {
    let before = result([message("Message", 0), message("Picture", 2, lost: 4), message("Text", 5, lost: 20)])
    let after = result([message("Message", 0), message("Picture", 2, lost: 4), message("Text", 25)])
    #expect(after.isBetter(than: before, whichIsUsable: true) && !before.isBetter(than: after, whichIsUsable: true))
    let comparison = SalvageComparison(before, after)
    #expect(comparison.entities.map(\.name) == ["Text"])
    #expect(comparison.entities.map(\.earlier?.recovered) == [5] && comparison.entities.map(\.later?.recovered) == [25])
    #expect(!comparison.words.contains("the same"), "\(comparison.words)")
    #expect(comparison.words.contains("7 recovered") && comparison.words.contains("27 recovered"))
    // What is better in one entity and worse in another is not better.
    let other = result([message("Message", 0), message("Picture", 1), message("Text", 25)])
    #expect(!other.isBetter(than: before, whichIsUsable: true))
    #expect(SalvageComparison(before, before).words.contains("recovered the same"))
  }

  @Test("A result that names other entities in a table is compared by the sums of the table")
  func otherNames() throws {
    let named = result([message("Picture", 2, lost: 4), message("Text", 5)])
    let whole = result([message("ZMESSAGE", 7, lost: 4)])
    #expect(SalvageComparison(named, whole).entities.isEmpty)
    let more = result([message("ZMESSAGE", 9, lost: 2)])
    #expect(more.isBetter(than: named, whichIsUsable: true) && !named.isBetter(than: more, whichIsUsable: true))
    #expect(SalvageComparison(named, more).entities.map(\.earlier?.recovered) == [7])
  }
}
