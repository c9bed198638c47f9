import Foundation
import Inbox
import InboxPostgres
import StoreFiles
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
      return (SQLiteInboxRecords(database), SQLiteJobQueue(database, rules: rules))
    case .postgres:
      let server = try #require(PostgresServer.shared)
      let database = try server.database(named: folder.path.string)
      return (PostgresInboxRecords(database), PostgresJobQueue(database, rules: rules))
    }
  }
}

/// Says in a list of tests that the half of PostgreSQL was left out.
@Suite("PostgreSQL", .enabled(if: PostgresServer.shared != nil, "no PostgreSQL server can be started here"))
struct PostgresIsThereTests {
  @Test func theContractsRunOverIt() { #expect(RecordsKind.available == RecordsKind.allCases) }
}
