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

  struct PageNote {
    var page: UInt32

    var source: String

    var foundBy: String

    var keys: ClosedRange<Int64>

    var rows: Int

    /// The certainty if no row is doubtful.
    var certainty: Certainty

    /// The reason if all rows are doubtful.
    var doubt: DoubtReason?

    var reason: String?
  }

  struct RowNote {
    /// The rowid in the result's table.
    var row: Int64

    /// The rowid in the store, if known.
    var key: Int64?

    var origin: Origin

    var certainty: Certainty

    var doubt: DoubtReason?

    var reason: String
  }

  struct Origin {
    var page: UInt32

    /// The cell pointer index, if any.
    var cell: Int?

    var source: String
  }

  func notePage(_ table: String, _ note: PageNote) throws {
    let certainty = note.doubt == nil ? note.certainty : .doubtful
    let why = note.reason.map { Self.quoted($0) } ?? "null"
    pages.begin()
    pages.append("[\(Self.quoted(table)),\(note.page),\"\(note.source)\",\"\(note.foundBy)\",")
    pages.append("\(note.keys.lowerBound),\(note.keys.upperBound),\(note.rows),")
    pages.append("\"\(certainty.rawValue)\",\(why)\(Self.code(note.doubt))]")
    if pages.count >= Self.notesPerRow { try write("pages", &pages) }
  }

  func noteRow(_ table: String, _ note: RowNote) throws {
    let key = note.key.map { "\($0)" } ?? "null"
    let cell = note.origin.cell.map { "\($0)" } ?? "null"
    rows.begin()
    rows.append("[\(Self.quoted(table)),\(note.row),\(key),\(note.origin.page),\(cell),")
    rows.append("\"\(note.origin.source)\",\"\(note.certainty.rawValue)\",")
    rows.append("\(Self.quoted(note.reason))\(Self.code(note.doubt))]")
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
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      default:
        if scalar.value < 0x20 {
          let digits = String(scalar.value, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        } else {
          result.unicodeScalars.append(scalar)
        }
      }
    }
    return result + "\""
  }
}
