internal import GRDB

/// Counts that pages show and quotas need, kept by triggers in one row each, so that no page counts rows.
///
/// A part that is known begins with `=`; the empty one is none.
extension InboxDatabase {
  /// Makes the counts, their triggers, and what they are of the rows that are there.
  static func makeCounts(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE tallies (
          kind TEXT NOT NULL, name TEXT NOT NULL, part TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, name, part)
        ) STRICT, WITHOUT ROWID;
        """)
    for (table, columns, notes) in counted {
      try database.execute(
        sql: """
          CREATE TRIGGER count_\(table)_come AFTER INSERT ON \(table) BEGIN \(adding(notes("NEW"), 1)); END;
          CREATE TRIGGER count_\(table)_gone AFTER DELETE ON \(table) BEGIN \(adding(notes("OLD"), -1)); END;
          CREATE TRIGGER count_\(table)_changed AFTER UPDATE OF \(columns.joined(separator: ", ")) ON \(table)
            WHEN \(columns.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR "))
            BEGIN \(adding(notes("OLD"), -1)); \(adding(notes("NEW"), 1)); END;
          """)
      for note in notes(table) {
        try database.execute(
          sql: """
            INSERT INTO tallies SELECT \(note.kind), \(note.name), \(note.part), sum(\(note.n)) FROM \(table)
              WHERE \(note.name) IS NOT NULL GROUP BY 2, 3 ON CONFLICT (kind, name, part) DO UPDATE SET n = n + excluded.n
            """)
      }
    }
  }

  /// Which count a row of a table is in, each as an expression in SQL; none where the name is null.
  private struct Note {
    var kind: String
    var name: String
    var part = "''"
    var n = "1"
  }

  /// The tables whose rows count, the columns that say what they count as, and the counts of a row.
  private static let counted: [(table: String, columns: [String], notes: @Sendable (String) -> [Note])] = [
    ("jobs", ["state"], { row in [Note(kind: "'jobs'", name: "\(row).state")] }),
    (
      "bundles", ["sender", "bytes", "placed", "state", "damage", "salvaged_by"],
      { row in
        let used = "\(row).bytes + coalesce(\(row).placed, 0)"
        return [
          Note(kind: "'bundles'", name: "\(row).state"), Note(kind: "'kept'", name: "\(row).damage"),
          Note(
            kind: "'salvaged'", name: "CASE \(row).state WHEN 'quarantined' THEN \(row).damage END",
            part: "coalesce('=' || \(row).salvaged_by, '')"),
          Note(kind: "'used'", name: "\(row).sender", n: used), Note(kind: "'all'", name: "'used'", n: used),
        ]
      }
    ),
    (
      "uploads", ["sender", "length", "state"],
      { row in
        let isOpen = "\(row).state = 'open'"
        return [
          Note(kind: "'used'", name: "CASE WHEN \(isOpen) THEN \(row).sender END", n: "\(row).length"),
          Note(kind: "'all'", name: "CASE WHEN \(isOpen) THEN 'used' END", n: "\(row).length"),
        ]
      }
    ),
    (
      "sightings", ["damage", "version"],
      { row in
        [Note(kind: "'seen'", name: "\(row).damage", part: "coalesce('=' || \(row).version, '')")]
      }
    ),
  ]

  /// The statement of a trigger that adds a row to its counts, or takes it from them.
  private static func adding(_ notes: [Note], _ sign: Int) -> String {
    let rows = notes.map { note in
      "SELECT \(note.kind) AS kind, \(note.name) AS name, \(note.part) AS part, \(sign) * (\(note.n)) AS n"
    }
    return """
      INSERT INTO tallies SELECT kind, name, part, n FROM (\(rows.joined(separator: " UNION ALL "))) WHERE name IS NOT NULL
        ON CONFLICT (kind, name, part) DO UPDATE SET n = n + excluded.n
      """
  }

  /// The counts of a kind, by name.
  static func counts(_ kind: String, _ database: Database) throws -> [String: Int64] {
    try Row.fetchAll(database, sql: "SELECT name, n FROM tallies WHERE kind = ? AND n <> 0", arguments: [kind])
      .reduce(into: [:]) { counts, row in counts[row["name"], default: 0] += row["n"] }
  }

  static func count(_ kind: String, _ name: String, _ database: Database) throws -> Int64 {
    try Int64.fetchOne(
      database, sql: "SELECT n FROM tallies WHERE kind = ? AND name = ? AND part = ''", arguments: [kind, name]) ?? 0
  }

  /// The counts of the parts of a name that are not 0; nil for the part that is none.
  static func parts(
    _ kind: String, _ name: String, _ database: Database
  ) throws -> [(part: String?, count: Int64)] {
    try Row.fetchAll(
      database, sql: "SELECT part, n FROM tallies WHERE kind = ? AND name = ? AND n > 0", arguments: [kind, name]
    ).map { row in
      let part: String = row["part"]
      return (part: part.isEmpty ? nil : String(part.dropFirst()), count: row["n"])
    }
  }
}
