import PersistentStore
import Platform
import TestSupport
import Testing

/// Expectations are first put to SQLite's own check of an FTS5 index.
@Suite("Full-text indexes")
struct FullTextTests {
  static let options = [
    "t", "t, content='note', content_rowid='id'", "t, content=''", "t, detail=none", "t, detail=column, prefix='2 3'",
    "t, u UNINDEXED, columnsize=0", "t, tokenize='trigram'",
  ]

  /// Leaves a segment without pages in the list: a merge under way has taken them all.
  static let begunMerge = [
    "INSERT INTO doc(doc, rank) VALUES ('pgsz', 64)", "INSERT INTO doc(doc, rank) VALUES ('automerge', 0)",
    rows(5000, 5300), "INSERT INTO doc(rowid, t) VALUES (6000, '0')", "INSERT INTO doc(rowid, t) VALUES (6001, '00')",
    "INSERT INTO doc(doc, rank) VALUES ('merge', -1)", "INSERT INTO doc(doc, rank) VALUES ('merge', 1)",
  ]

  /// Writes of every kind: many segments, long lists of documents, rows that go, merges.
  static let work = [
    rows(1, 1500), "DELETE FROM doc WHERE rowid % 7 = 0", rows(2000, 2400),
    "INSERT INTO doc(doc, rank) VALUES ('merge', 8)", "UPDATE doc SET t = 'other ' || rowid WHERE rowid % 11 = 0",
    "INSERT INTO doc(doc, rank) VALUES ('crisismerge', 2)", rows(3000, 3050), rows(4000, 4050),
    "INSERT INTO doc(doc) VALUES ('optimize')",
  ]

  private static func rows(_ first: Int, _ last: Int) -> String {
    """
    WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(last)) INSERT INTO doc(rowid, t)
    SELECT i, hex(i * 7919 % 100003) || ' ' || hex(i % 97) || ' common ' || i FROM n
    """
  }

  private func made(_ options: String) throws -> Specimen {
    try .plain("CREATE TABLE note (id INTEGER PRIMARY KEY, t)", "CREATE VIRTUAL TABLE doc USING fts5(\(options))")
  }

  private func isSoundToSQLite(_ specimen: Specimen) -> Bool {
    (try? specimen.running("INSERT INTO doc(doc) VALUES ('integrity-check')")) != nil
  }

  private func look(at specimen: Specimen) throws -> Examination {
    let folder = try TemporaryFolder()
    return try examiner().look(try specimen.place(in: folder), nil, .full)
  }

  private func note(on specimen: Specimen) throws -> HealthNote? {
    try look(at: specimen).health.notes.first { $0.code == "full-text-damaged" }
  }

  @Test("A sound one is never called damaged", arguments: options)
  func sound(options: String) throws {
    var specimen = try made(options)
    #expect(try note(on: specimen) == nil)
    for statement in Self.begunMerge + Self.work {
      // An index without content, or with another table's, cannot look up the rows that go.
      if options.contains("content="), statement.hasPrefix("DELETE") || statement.hasPrefix("UPDATE") { continue }
      specimen = try specimen.running(statement)
      // The other table stays empty, which SQLite's check would report.
      if !options.contains("content='note'") { #expect(isSoundToSQLite(specimen), "\(statement)") }
      #expect(try note(on: specimen) == nil, "\(statement)")
    }
  }

  static let firstBlock = "(SELECT min(id) FROM doc_data WHERE id > 10)"

  @Test(
    "One whose blocks are lost or overwritten is damaged, and a salvage is offered",
    arguments: [
      "UPDATE doc_data SET block = zeroblob(length(block)) WHERE id > 10",
      "UPDATE doc_data SET block = zeroblob(length(block)) WHERE id = \(firstBlock)",
      "UPDATE doc_data SET block = substr(block, 1, 40) WHERE id = \(firstBlock)",
      "UPDATE doc_data SET block = NULL WHERE id = \(firstBlock)",
      "DELETE FROM doc_data WHERE id = \(firstBlock)", "DELETE FROM doc_data WHERE id = 10",
      "UPDATE doc_data SET block = zeroblob(length(block)) WHERE id = 10",
      "UPDATE doc_data SET block = substr(block, 1, 6) WHERE id = 10",
    ])
  func damaged(damage: String) throws {
    var specimen = try made("t")
    for statement in Self.work.dropLast(5) { specimen = try specimen.running(statement) }
    specimen = try specimen.running(damage)
    #expect(!isSoundToSQLite(specimen))
    let examination = try look(at: specimen)
    #expect(examination.verdict == .damaged)
    #expect(examination.reason.code == "full-text-damaged" && examination.reason.words.contains("index doc"))
  }
}
