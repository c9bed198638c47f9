import Foundation
import Testing

@Suite("Where SQLite opens files")
struct OpeningPlacesTests {
  /// The only sources that open a file with SQLite, and why each may.
  private static let allowed: [String: String] = [
    "PersistentStore/Connection/EvidenceConnection.swift": "evidence, copies, backups, and what is browsed or checked",
    "PersistentStore/Connection/StatementLimit.swift": "no file: calls of printf",
    "PersistentStore/Connection/WorkingConnection.swift": "a file that migration or salvage makes",
    "PersistentStore/Store/PersistentStore.swift": "the store that the app opens",
    "PersistentStore/Creation/StoreCreation.swift": "a private database in memory",
    "Salvage/Found/OutputDatabase.swift": "the new file of rows as found",
    "Inspector/Browsing/Provenance/FoundRows.swift": "the same, by statements of this project alone",
    "Migration/Custom/Expressions/ExpressionCompilation.swift": "empty tables in memory",
    "Migration/Custom/Expressions/MappingFunctions.swift": "the names of SQLite's functions, in memory",
    "LazaretTesting/Generation/StoreWriting.swift": "a store that is generated",
    "Inbox/Records/InboxDatabase.swift": "the inbox's own records",
    "Commands/Demo/DemoCommand.swift": "example stores of the demonstration, before they are damaged",
  ]

  /// What opens a file: GRDB's connections, SQLite's own call, and a pool of either.
  private static let openings = ["DatabaseQueue(", "DatabasePool(", "sqlite3_open", "DatabaseSnapshot("]

  @Test("Stores that are evidence are opened in one place")
  func places() throws {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Sources")
    var found: Set<String> = []
    var files = 0
    let content = try #require(FileManager.default.enumerator(atPath: sources.path))
    for case let path as String in content where path.hasSuffix(".swift") {
      files += 1
      let text = try String(contentsOf: sources.appendingPathComponent(path), encoding: .utf8)
      let code = text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }
      if code.contains(where: { line in Self.openings.contains { line.contains($0) } }) { found.insert(path) }
    }
    #expect(files > 500)
    let unknown = found.subtracting(Self.allowed.keys)
    #expect(unknown.isEmpty, "Open evidence by EvidenceConnection, or say here why not: \(unknown.sorted())")
    let stale = Set(Self.allowed.keys).subtracting(found)
    #expect(stale.isEmpty, "These open nothing any more: \(stale.sorted())")
  }
}
