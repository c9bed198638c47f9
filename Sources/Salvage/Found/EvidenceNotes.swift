/// Where each row of the result came from, kept in the result itself.
///
/// Whole pages are one note each; only rows that are not simply cells of a healthy page have a note of their own. Notes are
/// packed as JSON, up to twenty thousand to a row of the table `lazaret_evidence`, and the views `lazaret_pages` and
/// `lazaret_provenance` unpack them.
package final class EvidenceNotes {
  /// How far a row is to be believed.
  enum Certainty: String {
    case certain
    case probable
    case doubtful
  }

  /// How the reason begins why a row was set aside that no transaction committed.
  package static let uncommitted = "not committed; "

  private static let notesPerRow = 20_000

  /// The query of the view `lazaret_pages`, over the notes of an attached database, such as `raw.`.
  ///
  /// Where schemas are not trusted, the view itself cannot be read: SQLite before 3.41 takes the functions of JSON for unsafe.
  package static func pages(in schema: String) -> String {
    """
    SELECT value ->> 0 AS "table", value ->> 1 AS page, value ->> 2 AS source, value ->> 3 AS found_by,
      value ->> 4 AS first_key, value ->> 5 AS last_key, value ->> 6 AS "rows", value ->> 7 AS certainty,
      value ->> 8 AS reason, value ->> 9 AS doubt
    FROM \(schema)lazaret_evidence, json_each(notes) WHERE kind = 'pages'
    """
  }

  /// The query of the view `lazaret_provenance`, likewise.
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

  /// Notes that are not written yet, as the inside of a JSON array.
  private struct Notes {
    var bytes: [UInt8] = []
    var count = 0

    mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func begin() {
      bytes.append(UInt8(ascii: count == 0 ? "[" : ","))
      count += 1
    }
  }

  init(_ database: OutputDatabase) throws(SalvageError) {
    self.database = database
    try database.execute(
      """
      CREATE TABLE lazaret_evidence (kind TEXT, notes TEXT);
      CREATE VIEW lazaret_pages AS \(Self.pages(in: ""));
      CREATE VIEW lazaret_provenance AS \(Self.rows(in: ""))
      """)
    insertion = try database.prepare("INSERT INTO lazaret_evidence (kind, notes) VALUES (?1, ?2)")
  }

  /// What is noted of a page whose rows are in a live table.
  struct PageNote {
    var page: UInt32

    /// Which file or log its bytes are from.
    var source: String

    var foundBy: String

    /// The smallest and the largest rowid among its rows.
    var keys: ClosedRange<Int64>

    /// How many of its rows are live.
    var rows: Int

    /// How far they are to be believed, where none is doubtful.
    var certainty: Certainty

    /// Why all of them are doubtful; nil where they are not.
    var doubt: DoubtReason?

    /// The same, or what else is to be said of it, in words.
    var reason: String?
  }

  /// What is noted of a single row.
  struct RowNote {
    /// Its rowid in the table of the result.
    var row: Int64

    /// The rowid that it has, or had, in the store; nil where that is lost or there is none.
    var key: Int64?

    var origin: Origin

    /// How far it is to be believed.
    var certainty: Certainty

    /// Why a value of a live row may be wrong; nil where none may be.
    var doubt: DoubtReason?

    /// The same, or what else is to be said of it, in words.
    var reason: String
  }

  /// Where a row was found.
  struct Origin {
    var page: UInt32

    /// The place of its cell in the cell pointer array; nil where nothing points to it.
    var cell: Int?

    /// Which file, log or part of a page its bytes are from.
    var source: String
  }

  /// Notes a page whose rows are in a live table.
  func notePage(_ table: String, _ note: PageNote) throws(SalvageError) {
    let certainty = note.doubt == nil ? note.certainty : .doubtful
    let why = note.reason.map { Self.quoted($0) } ?? "null"
    pages.begin()
    pages.append("[\(Self.quoted(table)),\(note.page),\"\(note.source)\",\"\(note.foundBy)\",")
    pages.append("\(note.keys.lowerBound),\(note.keys.upperBound),\(note.rows),")
    pages.append("\"\(certainty.rawValue)\",\(why)\(Self.code(note.doubt))]")
    if pages.count >= Self.notesPerRow { try write("pages", &pages) }
  }

  func noteRow(_ table: String, _ note: RowNote) throws(SalvageError) {
    let key = note.key.map { "\($0)" } ?? "null"
    let cell = note.origin.cell.map { "\($0)" } ?? "null"
    rows.begin()
    rows.append("[\(Self.quoted(table)),\(note.row),\(key),\(note.origin.page),\(cell),")
    rows.append("\"\(note.origin.source)\",\"\(note.certainty.rawValue)\",")
    rows.append("\(Self.quoted(note.reason))\(Self.code(note.doubt))]")
    if rows.count >= Self.notesPerRow { try write("rows", &rows) }
  }

  /// The code of a reason, as the last element of a note; nothing for none.
  private static func code(_ doubt: DoubtReason?) -> String { doubt.map { ",\"\($0.rawValue)\"" } ?? "" }

  func finish() throws(SalvageError) {
    try write("pages", &pages)
    try write("rows", &rows)
  }

  private func write(_ kind: String, _ notes: inout Notes) throws(SalvageError) {
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
