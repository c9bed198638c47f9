import GRDB
import Salvage
import TestSupport
import Testing

@Suite("Rows of pages of another time or place are doubtful where something in the store tells")
struct ElsewhereTests {
  private static let rows = 400

  /// A table of rows of one size, with an index on a number, or with none.
  ///
  /// - Parameter change: what is done to the rows when they are there; it must not move any.
  private func scene(isIndexed: Bool, change: String = "SELECT 1") throws -> PlainScene {
    try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, body TEXT)"
        + (isIndexed ? "; CREATE INDEX byNumber ON t (k)" : "")
    ) { db in
      for id in 1...Self.rows {
        try db.execute(
          sql: "INSERT INTO t VALUES (?, ?, printf('row %06d %s', ?, hex(zeroblob(20))))",
          arguments: [id, 1000 + id * 3, id])
      }
      try db.execute(sql: change)
    }
  }

  /// The leaves of tables, but for the first page.
  private func leaves(_ scene: PlainScene) -> [UInt32] {
    (2...UInt32(scene.main.count / scene.pageSize)).filter { scene.main[scene.range(of: $0).lowerBound] == 13 }
  }

  private func account(_ result: PlainScene.Result) throws -> SalvageReport.Entity {
    try #require(result.report.entities.first { $0.table == "t" })
  }

  @Test("A page of before is told by an index that has one of its rows as it is now, and that row is doubtful")
  func before() throws {
    let earlier = try scene(isIndexed: true)
    let now = try scene(isIndexed: true, change: "UPDATE t SET k = k + 5000, body = upper(body) WHERE id = 100")
    let changed = leaves(now).filter { now.main[now.range(of: $0)] != earlier.main[now.range(of: $0)] }
    try #require(changed.count == 1)
    let page = now.range(of: changed[0])
    let mixed = now.changing { $0.main.replaceSubrange(page, with: earlier.main[page]) }
    let result = try mixed.salvage(withModel: false)
    let account = try self.account(result)
    #expect(now.falseRows(result) == 1, "the row of before is the only one there is")
    #expect(account.recovered == Int64(Self.rows))
    // The index may be of before as well: a single row that it has otherwise says nothing of the others.
    #expect(account.doubtful == 1)
    #expect(account.doubts == [.contradicted: account.doubtful])
    #expect(!result.report.isComplete)
  }

  @Test("A page of before that has a deleted row is told by the number of an index's entries")
  func deletedRow() throws {
    let earlier = try scene(isIndexed: true)
    let now = try scene(isIndexed: true, change: "DELETE FROM t WHERE id = 100")
    let changed = leaves(now).filter { now.main[now.range(of: $0)] != earlier.main[now.range(of: $0)] }
    try #require(changed.count == 1)
    let page = now.range(of: changed[0])
    let mixed = now.changing { $0.main.replaceSubrange(page, with: earlier.main[page]) }
    let result = try mixed.salvage(withModel: false)
    #expect(try account(result).doubts[.contradicted] ?? 0 > 0)
    #expect(!result.report.isComplete)
  }

  @Test("Rows that an index has and the table lacks are lost, though no page is missing")
  func lackingRows() throws {
    let earlier = try scene(isIndexed: true, change: "DELETE FROM t WHERE id = 100")
    let now = try scene(isIndexed: true)
    let changed = leaves(now).filter { now.main[now.range(of: $0)] != earlier.main[now.range(of: $0)] }
    try #require(changed.count == 1)
    let page = now.range(of: changed[0])
    let mixed = now.changing { $0.main.replaceSubrange(page, with: earlier.main[page]) }
    let result = try mixed.salvage(withModel: false)
    let account = try self.account(result)
    // What is left of the row in free space may be what the index lists.
    #expect(account.lost == 1 || account.doubts[.freeSpace] == 1)
    #expect(!result.report.isComplete)
  }

  /// A table whose only page is its root, with an index on a number and one that holds whole rows.
  private func smallScene(rows: Int) throws -> PlainScene {
    try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, body TEXT); CREATE INDEX byNumber ON t (k);
        CREATE INDEX whole ON t (k, body)
        """
    ) { db in
      for id in 0..<rows {
        try db.execute(sql: "INSERT INTO t VALUES (?, ?, ?)", arguments: [id + 1, 1000 + id * 3, "row \(id)"])
      }
    }
  }

  @Test("A root of before that has no row at all costs its rows: an index alone counts them")
  func emptyRoot() throws {
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, body TEXT); CREATE INDEX byNumber ON t (k)"
    let earlier = try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: schema) { _ in }
    let now = try PlainScene(pragmas: "PRAGMA page_size = 1024", schema: schema) { db in
      for id in 1...5 { try db.execute(sql: "INSERT INTO t VALUES (?, ?, 'row')", arguments: [id, 1000 + id]) }
    }
    // The roots are made one after another: page 2 is that of the table.
    let root = now.range(of: 2)
    let result = try now.changing { $0.main.replaceSubrange(root, with: earlier.main[root]) }.salvage(withModel: false)
    let account = try self.account(result)
    #expect(account.recovered == 0 && account.lost == 5 && account.isLostExact)
    #expect(account.lostKeysKnown == 5 && account.areLostKeysComplete)
    #expect(result.report.count.percent == 0 && !result.report.isComplete)
  }

  @Test("Rows of an empty root come back from an index that holds whole ones, where another index has as many")
  func emptyRootWithWholeIndex() throws {
    let earlier = try smallScene(rows: 0)
    let now = try smallScene(rows: 5)
    let root = now.range(of: 2)
    let result = try now.changing { $0.main.replaceSubrange(root, with: earlier.main[root]) }.salvage(withModel: false)
    let account = try self.account(result)
    #expect(result.rows["t"] == now.truth["t"])
    #expect(account.lost == 0 && account.rebuilt == 5)
  }

  @Test("An index of before brings no row back into a table that another index has empty, and no number is exact")
  func indexOfBefore() throws {
    let earlier = try smallScene(rows: 5)
    let now = try smallScene(rows: 0)
    let root = now.range(of: 4)
    let result = try now.changing { $0.main.replaceSubrange(root, with: earlier.main[root]) }.salvage(withModel: false)
    #expect(result.rows["t"] == [])
    #expect(try !account(result).isLostExact)
    #expect(!result.report.isComplete)
  }

  @Test("Pages that changed places are doubtful, unless an index has their rows", arguments: [false, true])
  func misplaced(isIndexed: Bool) throws {
    let scene = try self.scene(isIndexed: isIndexed)
    let leaves = self.leaves(scene)
    try #require(leaves.count > 12)
    let result = try scene.swapping(leaves[3], leaves[10]).salvage(withModel: false)
    let account = try self.account(result)
    #expect(scene.missingRows(result) == 0)
    #expect(scene.falseRows(result) == 0)
    #expect(result.report.causes.contains { $0.code == .misplacedPages })
    if isIndexed {
      #expect(account.doubtful == 0)
    } else {
      #expect(account.doubtful > 1 && account.doubts == [.misplacedPage: account.doubtful])
    }
  }

  @Test("No index of a sound store contradicts its rows, whatever it is on")
  func sound() throws {
    let scene = try PlainScene(
      pragmas: "PRAGMA page_size = 1024",
      schema: """
        CREATE TABLE t (id INTEGER PRIMARY KEY, r REAL, name TEXT COLLATE NOCASE UNIQUE, long BLOB, after INTEGER);
        CREATE INDEX byNumber ON t (r DESC, id); CREATE INDEX byLong ON t (long); CREATE INDEX byTwo ON t (after, name);
        CREATE INDEX some ON t (after) WHERE after > 50; CREATE INDEX byWord ON t (lower(name))
        """
    ) { db in
      for id in 1...300 {
        try db.execute(
          sql: "INSERT INTO t VALUES (?, ?, ?, CASE WHEN ? % 10 = 0 THEN randomblob(3000) ELSE randomblob(9) END, ?)",
          arguments: [id, id % 2 == 0 ? Double(id) : Double(id) + 0.5, "Name \(id)", id, id % 3 == 0 ? nil : id])
      }
      try db.execute(sql: "ALTER TABLE t ADD COLUMN later TEXT DEFAULT 'as before'")
      try db.execute(sql: "ALTER TABLE t ADD COLUMN share REAL DEFAULT 2")
      try db.execute(sql: "CREATE INDEX byLater ON t (later, share, name)")
      try db.execute(sql: "INSERT INTO t (r, name, later) VALUES (7, 'other', 'x'), (8, NULL, NULL)")
    }
    let result = try scene.salvage(withModel: false)
    #expect(scene.missingRows(result) == 0)
    #expect(try account(result).doubtful == 0)
    #expect(try account(result).lost == 0)
    #expect(result.report.causes.isEmpty)
  }

  @Test("Entries of indexes that no root leads to are no rows")
  func entries() throws {
    let scene = try self.scene(isIndexed: true)
    let blank = scene.changing { scene in
      for index in 0..<scene.pageSize { scene.main[index] = 0 }
    }
    let report = try blank.salvage(withModel: false).report
    #expect(report.unplacedEntries >= Int64(Self.rows) * 9 / 10)
    #expect(report.unplacedRows + report.recovered <= Int64(Self.rows))
    #expect(!report.isComplete)
  }
}
