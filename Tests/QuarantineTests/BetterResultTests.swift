import Quarantine
import StoreFiles
import SystemPackage
import Testing

@Suite("Which of two results is better")
struct BetterResultTests {
  private func result(_ recovered: Int64, isUsable: Bool) -> Receipt.Salvage.Result {
    Receipt.Salvage.Result(
      name: PathText(FilePath("A.salvaged.sqlite")), report: PathText(FilePath("A.salvage.json")), setAside: nil,
      date: Timestamp(secondsSince1970: 0, nanoseconds: 0), bytes: 1, sha256: "", version: nil, isUsable: isUsable,
      isComplete: false, score: 0,
      entities: [
        Receipt.Salvage.Entity(
          name: "Car", table: "ZCAR", recovered: recovered, doubtful: 0, lost: 0, lostIsExact: true)
      ], evidence: nil)
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
}
