import GRDB
import Salvage
import TestSupport
import Testing

@Suite("Whose a page of an index is")
struct IndexOwnershipTests {
  /// The last leaf of an index becomes zeros.
  ///
  /// Another index holds values that look more like the first one's than like its own column's, which has no type.
  @Test("A damaged index takes no page of another, whose entries are what the rows have", arguments: [300, 2000])
  func likeness(count: Int) throws {
    var scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, h REAL, m); CREATE INDEX byH ON t (h); CREATE INDEX byM ON t (m)
        """
    ) { db in
      for index in 1...count {
        try db.execute(
          sql: "INSERT INTO t VALUES (?, ?, ?)",
          arguments: [index, Double(index) + 0.5, index % 2 == 0 ? Double(index) * 5 + 0.25 : index * 5])
      }
    }
    // The roots are made one after another: page 3 is that of byH, an inner page.
    let root = 2 * 1024
    #expect(scene.main[root] == 2)
    let leaf = (scene.main[(root + 8)..<(root + 12)].reduce(0) { $0 << 8 | Int($1) } - 1) * 1024
    for offset in leaf..<(leaf + 1024) { scene.main[offset] = 0 }
    let result = try scene.salvage(withModel: false)
    #expect(result.rows["t"] == scene.truth["t"])
    #expect(result.report.doubtful == 0 && result.report.lost == 0)
    let pages = result.report.causes.filter { $0.pageCount > 0 }
    #expect(pages.map(\.code) == [.zeroedPages], "\(result.report.causes.map(\.words))")
    #expect(pages.map(\.pageCount) == [1])
  }
}
