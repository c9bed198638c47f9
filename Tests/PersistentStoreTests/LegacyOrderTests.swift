import PersistentStore
import Testing

@Suite struct LegacyOrderTests {
  @Test func ordersMixedNamesAsCoreDataDoes() {
    let keys = ["_pk", "_ent", "_opt", "name", "owner", "_ZOWNER", "friends", "friendOf", "título"]
    #expect(
      LegacyOrder.ordered(keys)
        == ["friendOf", "_ent", "_pk", "_opt", "título", "owner", "name", "_ZOWNER", "friends"])
  }

  @Test func ordersManyNames() {
    let keys = ["_pk", "_ent", "_opt"] + (0..<40).map { "attribute\($0)" }
    #expect(
      LegacyOrder.ordered(keys).prefix(6)
        == ["attribute35", "attribute7", "attribute12", "attribute21", "attribute30", "attribute19"])
    let items = (0..<330).map { "item\($0)" }
    #expect(LegacyOrder.ordered(items).prefix(5) == ["item249", "item138", "item52", "item191", "item314"])
    #expect(Set(LegacyOrder.ordered(items)) == Set(items))
  }

  @Test func hashesLongNamesByTheirEnds() {
    let keys =
      ["_pk", "_ent", "_opt"] + stride(from: 1, to: 120, by: 7).map { String(repeating: "a", count: $0) }
      + (1..<12).map { "xx" + String(repeating: "0123456789", count: $0) + "end" }
    let order = LegacyOrder.ordered(keys)
    #expect(order.count == 31)
    #expect(order.prefix(3).map(\.count) == [115, 43, 35])
    #expect(order[6] == "aaaaaaaa")
  }

  @Test func staysDeterministicBeyondTheKnownSizes() {
    let keys = (0..<2000).map { "k\($0)" }
    #expect(LegacyOrder.ordered(keys) == LegacyOrder.ordered(keys.reversed()))
    #expect(LegacyOrder.ordered(keys).count == 2000)
    #expect(LegacyOrder.ordered([]).isEmpty)
  }
}
