import Foundation
import GRDB
import Inbox
import SystemPackage
import TestSupport
import Testing

/// What records are kept in: each has to do what the protocols say.
enum RecordsKind: String, CaseIterable, CustomTestStringConvertible {
  case sqlite
  case postgres

  /// Those that this machine has.
  static let available: [RecordsKind] = PostgresServer.shared == nil ? [.sqlite] : allCases

  /// That of the tests that are not run for each: `LAZARET_INBOX_RECORDS=postgres` runs all of them in PostgreSQL.
  static let usual = ProcessInfo.processInfo.environment["LAZARET_INBOX_RECORDS"].flatMap(Self.init) ?? .sqlite

  var testDescription: String { rawValue }

  /// Records and queue of a name; again those that are there.
  func open(
    _ folder: TemporaryFolder, rules: JobRules = JobRules()
  ) throws -> (records: any InboxRecords, queue: any JobQueue) {
    switch self {
    case .sqlite:
      // The folder has to be there until the file is open.
      let database = try withExtendedLifetime(folder) { try InboxDatabase(folder.appending("records.sqlite")) }
      return (database.records, database.queue(rules))
    case .postgres:
      let server = try #require(PostgresServer.shared)
      let database = try server.database(named: folder.path.string)
      return (database.records, database.queue(rules))
    }
  }
}

extension RecordsKind {
  /// Carries out SQL of both databases on the records of a folder, past what keeps them.
  ///
  /// - Returns: the rows, their values with `|` in between; null is empty.
  @discardableResult
  func run(_ sql: String, _ folder: TemporaryFolder) throws -> [String] {
    switch self {
    case .sqlite:
      let path = folder.appending("records.sqlite").string
      return try DatabaseQueue(path: path).write { database in
        try Row.fetchAll(database, sql: sql).map { row in
          row.databaseValues.map { $0.isNull ? "" : String.fromDatabaseValue($0) ?? "\($0.storage.value ?? "")" }
            .joined(separator: "|")
        }
      }
    case .postgres:
      let server = try #require(PostgresServer.shared)
      let address = try server.address(named: folder.path.string)
      return try server.run("SET search_path = lazaret; \(sql)", in: address).split(separator: "\n").map(String.init)
    }
  }
}

/// Says in a list of tests that the half of PostgreSQL was left out.
@Suite("PostgreSQL", .enabled(if: PostgresServer.shared != nil, "no PostgreSQL server can be started here"))
struct PostgresIsThereTests {
  @Test func theContractsRunOverIt() { #expect(RecordsKind.available == RecordsKind.allCases) }
}
