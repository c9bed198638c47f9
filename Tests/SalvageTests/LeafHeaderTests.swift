import GRDB
import Salvage
import TestSupport
import Testing

@Suite("Pages of which a single bit of the header is wrong")
struct LeafHeaderTests {
  /// A table of whose rows some were deleted, here one, there several that lay beside each other.
  private func scene(isIndexed: Bool) throws -> PlainScene {
    let index = isIndexed ? "; CREATE INDEX by_text ON notes (text)" : ""
    return try PlainScene(schema: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)\(index)") { db in
      for index in 1...400 {
        let text = String(repeating: "note \(index) ", count: 3 + index * 7919 % 40)
        try db.execute(sql: "INSERT INTO notes VALUES (?, ?)", arguments: [index, text])
      }
      try db.execute(sql: "DELETE FROM notes WHERE id % 11 = 3 OR id BETWEEN 200 AND 204 OR id > 390")
    }
  }

  @Test(
    "Where every row was found none is called lost, whatever was deleted beside it, and a whole index counts",
    arguments: 0..<8, [false, true])
  func flipped(byte: Int, isIndexed: Bool) throws {
    let scene = try scene(isIndexed: isIndexed)
    let leaves = (1..<(scene.main.count / 4096)).filter { scene.main[$0 * 4096] == 13 }
    #expect(leaves.count > 6)
    var whole = 0
    for leaf in leaves {
      for bit in 0..<8 {
        let result = try scene.changing { $0.main[leaf * 4096 + byte] ^= 1 << UInt8(bit) }.salvage(withModel: false)
        let missing = (scene.truth["notes"] ?? []).subtracting(result.rows["notes"] ?? []).count
        let entity = try #require(result.report.entities.first { $0.table == "notes" })
        let place = "bit \(bit) of byte \(byte) of page \(leaf + 1)"
        if isIndexed {
          #expect(entity.isLostExact && Int(entity.lost) == missing, "\(place): \(entity.lost) of \(missing)")
        }
        if missing == 0 {
          whole += 1
          #expect(entity.lost == 0 && entity.lostBasis == .none, "\(place): \(entity.lost) of 0")
        } else {
          #expect(entity.hasLosses || entity.doubtful > 0 || entity.keptApart > 0, "\(place): \(missing) are lost")
        }
      }
    }
    #expect(whole >= 4 * leaves.count)
  }
}
