import GRDB
import PersistentStore
import Testing

@Suite("Limits of statements")
struct StatementLimitTests {
  private static let endless =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000000) SELECT count(*) FROM n"

  @Test("A statement that takes more steps ends, and the connection works on")
  func steps() throws {
    try DatabaseQueue().write { database throws in
      let limit = StatementLimit(time: .seconds(600), steps: 5_000_000, valueLength: 1 << 20)
      let error = #expect(throws: DatabaseError.self) {
        try limit.apply(to: database) { _ = try Int.fetchOne(database, sql: Self.endless) }
      }
      #expect(error?.resultCode == .SQLITE_INTERRUPT)
      #expect(limit.isExceeded)
    }
    try DatabaseQueue().write { database throws in
      let limit = StatementLimit(time: .seconds(600), steps: 5_000_000, valueLength: 1 << 20)
      let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT count(*) FROM n"
      try limit.apply(to: database) {}
      // Afterwards there is none.
      let count = try Int.fetchOne(database, sql: sql)
      #expect(count == 1_000_000)
      #expect(!limit.isExceeded)
    }
  }

  @Test("A value that is too long ends its statement, and may be as long as ever afterwards")
  func lengths() throws {
    try DatabaseQueue().write { database throws in
      let limit = StatementLimit(time: .seconds(600), steps: 5_000_000, valueLength: 1 << 20)
      let sql = "SELECT length(hex(zeroblob(1000000)))"
      let error = #expect(throws: DatabaseError.self) {
        try limit.apply(to: database) { _ = try Int.fetchOne(database, sql: sql) }
      }
      #expect(error?.resultCode == .SQLITE_TOOBIG)
      #expect(!limit.isExceeded)
      let length = try Int.fetchOne(database, sql: sql)
      #expect(length == 2_000_000)
    }
  }
}
