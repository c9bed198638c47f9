import Foundation
import GRDB
import Platform
import Salvage
import SystemPackage
import TestSupport
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// The SQLite Forensic Corpus: every file's live rows, and its deleted ones beside the answer key.
@Suite("Forensic corpus", .enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct ForensicCorpusTests {
  /// Rows as texts, and how many there are of each.
  typealias Rows = [[String]: Int]

  private static var files: [FilePath] { RealMaterial.files(below: "damaged/forensic-corpus", ending: ".db") }

  @Test("Live rows are those that SQLite reads")
  func live() throws {
    let files = Self.files
    #expect(files.count >= 40)
    for file in files {
      let (expected, found, _) = try Self.read(file)
      #expect(expected == found, "\(file)")
    }
  }

  @Test("Deleted rows within pages are found, and hardly any that were none")
  func deleted() throws {
    var totals: [String: (key: Int, found: Int, hits: Int)] = [:]
    for file in Self.files {
      guard let category = file.lastComponent?.string.prefix(2), let key = try Self.key(file), !key.isEmpty else {
        continue
      }
      let (_, _, deleted) = try Self.read(file)
      var total = totals[String(category), default: (0, 0, 0)]
      total.key += key.values.reduce(0, +)
      total.found += deleted.values.reduce(0, +)
      total.hits += key.reduce(0) { $0 + min($1.value, deleted[$1.key] ?? 0) }
      totals[String(category)] = total
    }
    // 0C: records deleted within pages; 0A: tables dropped.
    for (category, recall) in [("0C", 0.9), ("0A", 0.85)] {
      let total = try #require(totals[category])
      #expect(Double(total.hits) >= recall * Double(total.key), "\(category): \(total)")
      #expect(Double(total.hits) >= 0.97 * Double(total.found), "\(category): \(total)")
    }
  }

  /// What SQLite reads, what the salvage has in the same tables, and what it has as deleted.
  private static func read(_ file: FilePath) throws -> (expected: Rows, found: Rows, deleted: Rows) {
    let folder = try TemporaryFolder()
    let output = folder.appending("Out.sqlite")
    _ = try Salvager().salvageRaw(file, to: output, options: .init(findsDeleted: true))
    let copy = try folder.write(try FileSystem().contents(of: file, limit: 1 << 28), to: "Copy.sqlite")
    let original = try DatabaseQueue(path: copy.string)
    let (names, expected) = try original.read { db in
      let names = try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'")
      return (names, try rows(of: names, db))
    }
    try original.close()
    let result = try DatabaseQueue(path: output.string)
    let (found, deleted) = try result.read { db in
      let all = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      return (
        try rows(of: names.filter { all.contains($0) }, db),
        try rows(of: all.filter { $0.hasPrefix("lazaret_deleted_") }, db)
      )
    }
    try result.close()
    return (expected, found, deleted)
  }

  private static func rows(of tables: [String], _ db: Database) throws -> Rows {
    var result: Rows = [:]
    for table in tables {
      let cursor = try Row.fetchCursor(db, sql: "SELECT * FROM \(quoted(table))")
      while let row = try cursor.next() { result[row.map { text($0.1) }, default: 0] += 1 }
    }
    return result
  }

  /// A name as SQL has it; the corpus has tables whose names are quotation marks.
  private static func quoted(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }

  private static func text(_ value: DatabaseValue) -> String {
    switch value.storage {
    case .null: ""
    case .int64(let number): normal(String(number))
    case .double(let number): normal(String(number))
    case .string(let text): normal(text)
    case .blob(let data): data.map { String(format: "%02x", $0) }.joined()
    }
  }

  /// Numbers are compared as numbers: the key has them with other digits.
  private static func normal(_ text: String) -> String {
    let plain = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard let number = Double(plain), number.isFinite else { return plain }
    return String(format: "%.4f", number)
  }

  /// The deleted rows of the answer key; nil where the key is not well-formed.
  private static func key(_ file: FilePath) throws -> Rows? {
    let path = String(file.string.dropLast(3)) + ".xml"
    let reader = KeyReader()
    let parser = XMLParser(data: Data(try FileSystem().contents(of: FilePath(path), limit: 1 << 26)))
    parser.delegate = reader
    return parser.parse() ? reader.deleted : nil
  }

  /// Reads an answer key: `element` with `meta/deleted`, and `row` with the attribute `deleted`.
  private final class KeyReader: NSObject, XMLParserDelegate {
    var deleted: Rows = [:]
    private var path: [String] = []
    private var isElementDeleted = false
    private var isRowDeleted = false
    private var row: [String] = []
    private var text = ""

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String] = [:]
    ) {
      path.append(name)
      text = ""
      switch name {
      case "element": isElementDeleted = false
      case "row":
        isRowDeleted = attributes["deleted"] == "1"
        row = []
      default: break
      }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(
      _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
    ) {
      switch name {
      case "deleted" where path.contains("meta"):
        isElementDeleted = text.trimmingCharacters(in: .whitespacesAndNewlines) == "True"
      case "content" where path.contains("row"): row.append(ForensicCorpusTests.normal(text))
      case "row": if isElementDeleted || isRowDeleted { deleted[row, default: 0] += 1 }
      default: break
      }
      path.removeLast()
      text = ""
    }
  }
}
