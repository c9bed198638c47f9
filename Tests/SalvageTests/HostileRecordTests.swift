import SQLiteFormat
import Salvage
import TestSupport
import Testing

@Suite("Records that say what cannot be")
struct HostileRecordTests {
  @Test("A row whose long value leads to no page is never a live one")
  func restOnPageZero() throws {
    let scene = try SalvageScene(seed: 11)
    var damaged = scene
    var count = 0
    for number in scene.pages(ofKind: [13]) {
      let start = (Int(number) - 1) * SalvageScene.pageSize
      let bytes = Array(scene.main[start..<(start + SalvageScene.pageSize)])
      let page = try #require(BTreePage(bytes, number: number, geometry: PayloadGeometry(usableSize: bytes.count)))
      for index in 0..<page.cellCount {
        guard let cell = page.cell(at: index), cell.overflowPage != nil else { continue }
        let place = start + cell.localPayload.upperBound
        damaged.main.replaceSubrange(place..<(place + 4), with: [0, 0, 0, 0])
        count += 1
      }
    }
    #expect(count >= 30)
    for deleted in [false, true] {
      let result = try damaged.salvage(deleted: deleted)
      #expect(scene.falseRows(result) == 0)
      #expect(!result.report.isComplete)
    }
  }

  @Test("A field longer than any number can count ends the reading of its record")
  func widthBeyondNumbers() throws {
    let scene = try SalvageScene(seed: 12, books: 200)
    // 0xff, nine times: the largest serial type, of a text of 2⁶² bytes and more.
    let type: [UInt8] = [UInt8](repeating: 0xFF, count: 9)
    for number in scene.pages(ofKind: [13]) {
      let start = (Int(number) - 1) * SalvageScene.pageSize
      let bytes = Array(scene.main[start..<(start + SalvageScene.pageSize)])
      let page = try #require(BTreePage(bytes, number: number, geometry: PayloadGeometry(usableSize: bytes.count)))
      guard page.cellCount > 2, let cell = page.cell(at: 1), cell.localPayload.count > 20 else { continue }
      var damaged = scene
      let place = start + cell.localPayload.lowerBound + 1
      damaged.main.replaceSubrange(place..<(place + 9), with: type)
      let result = try damaged.salvage(deleted: true)
      // What the damaged record itself says can be read as one of fewer fields; no other row may suffer.
      #expect(scene.missingRows(result) <= 2, "page \(number)")
    }
  }
}
