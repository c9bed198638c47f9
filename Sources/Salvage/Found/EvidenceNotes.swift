internal import Platform

/// The origin of each row, stored within the result.
///
/// Pages take one note each; only rows that aren't plain cells of a healthy page have their own. Notes are JSON, up to
/// 20,000 per row of the table `lazaret_evidence`; the views `lazaret_pages` and `lazaret_provenance` unpack them.
package final class EvidenceNotes {
  enum Certainty: String {
    case certain
    case probable
    case doubtful
  }

  /// The prefix of reasons for uncommitted rows.
  package static let uncommitted = "not committed; "

  private static let notesPerRow = 20_000

  /// The query of `lazaret_pages`, over an attached database, such as `raw.`.
  ///
  /// With untrusted schemas the view itself fails: SQLite before 3.41 considers JSON functions unsafe.
  package static func pages(in schema: String) -> String {
    """
    SELECT value ->> 0 AS "table", value ->> 1 AS page, value ->> 2 AS source, value ->> 3 AS found_by,
      value ->> 4 AS first_key, value ->> 5 AS last_key, value ->> 6 AS "rows", value ->> 7 AS certainty,
      value ->> 8 AS reason, value ->> 9 AS doubt
    FROM \(schema)lazaret_evidence, json_each(notes) WHERE kind = 'pages'
    """
  }

  /// The query of `lazaret_provenance`, likewise.
  package static func rows(in schema: String) -> String {
    """
    SELECT value ->> 0 AS "table", value ->> 1 AS "row", value ->> 2 AS "key", value ->> 3 AS page,
      value ->> 4 AS cell, value ->> 5 AS source, value ->> 6 AS certainty, value ->> 7 AS reason, value ->> 8 AS doubt
    FROM \(schema)lazaret_evidence, json_each(notes) WHERE kind = 'rows'
    """
  }

  private let database: OutputDatabase
  private let insertion: OutputStatement
  private var pages = Notes()
  private var rows = Notes()

  private struct Notes {
    var bytes: [UInt8] = []
    var count = 0

    mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func begin() {
      bytes.append(UInt8(ascii: count == 0 ? "[" : ","))
      count += 1
    }
  }

  init(_ database: OutputDatabase) throws {
    self.database = database
    try database.execute(
      """
      CREATE TABLE lazaret_evidence (kind TEXT, notes TEXT);
      CREATE VIEW lazaret_pages AS \(Self.pages(in: ""));
      CREATE VIEW lazaret_provenance AS \(Self.rows(in: ""))
      """)
    insertion = try database.prepare("INSERT INTO lazaret_evidence (kind, notes) VALUES (?1, ?2)")
  }

  struct Origin {
    var page: UInt32

    /// The cell pointer index, if any.
    var cell: Int?

    var source: String
  }

  /// - Parameters:
  ///   - certainty: applies if no row is doubtful.
  ///   - doubt: the reason if all rows are doubtful.
  func notePage(
    _ page: UInt32, of table: String, source: String, foundBy: String, keys: ClosedRange<Int64>, rows: Int,
    certainty: Certainty, doubt: DoubtReason?, reason: String?
  ) throws {
    let certainty = doubt == nil ? certainty : .doubtful
    let why = reason.map { Self.quoted($0) } ?? "null"
    pages.begin()
    pages.append("[\(Self.quoted(table)),\(page),\"\(source)\",\"\(foundBy)\",")
    pages.append("\(keys.lowerBound),\(keys.upperBound),\(rows),")
    pages.append("\"\(certainty.rawValue)\",\(why)\(Self.code(doubt))]")
    if pages.count >= Self.notesPerRow { try write("pages", &pages) }
  }

  /// - Parameters:
  ///   - row: the rowid in the result's table.
  ///   - key: the rowid in the store, if known.
  func noteRow(
    _ row: Int64, of table: String, key: Int64?, _ origin: Origin, _ certainty: Certainty, doubt: DoubtReason? = nil,
    reason: String
  ) throws {
    let key = key.map { "\($0)" } ?? "null"
    let cell = origin.cell.map { "\($0)" } ?? "null"
    rows.begin()
    rows.append("[\(Self.quoted(table)),\(row),\(key),\(origin.page),\(cell),")
    rows.append("\"\(origin.source)\",\"\(certainty.rawValue)\",")
    rows.append("\(Self.quoted(reason))\(Self.code(doubt))]")
    if rows.count >= Self.notesPerRow { try write("rows", &rows) }
  }

  private static func code(_ doubt: DoubtReason?) -> String { doubt.map { ",\"\($0.rawValue)\"" } ?? "" }

  func writeRest() throws {
    try write("pages", &pages)
    try write("rows", &rows)
  }

  private func write(_ kind: String, _ notes: inout Notes) throws {
    guard notes.count > 0 else { return }
    notes.bytes.append(UInt8(ascii: "]"))
    insertion.bind(kind, at: 1)
    try insertion.run(withText: notes.bytes, at: 2)
    notes.bytes.removeAll(keepingCapacity: true)
    notes.count = 0
  }

  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\0"..<" ": result += "\\u" + zeroPadded(String(scalar.value, radix: 16), to: 4)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
