import ArgumentParser
import Foundation
import Inbox
import InboxPostgres
import StoreCoordination

/// Where the records of an inbox are, if not in a file of its home.
struct DatabaseOptions: ParsableArguments {
  /// The variable of the environment that has the address.
  static let variable = "LAZARET_DATABASE"

  @Option(
    help: ArgumentHelp(
      "The PostgreSQL database with the inbox's records: postgresql://HOST/DATABASE, without a password. If not given, what LAZARET_DATABASE says, else a file in the home.",
      valueName: "url"))
  var database: String?

  func validate() throws {
    do throws(InboxError) {
      if let database { _ = try PostgresAddress(database, from: .commandLine) }
    } catch {
      // The address itself is not repeated: what is wrong with it may be that it holds a password.
      throw ValidationError("--database: \(error.detail). \(error.hint)")
    }
  }

  /// The address; nil where the records are in a file.
  ///
  /// - Throws: `inbox-address` where that of the environment is none.
  func address() throws -> PostgresAddress? {
    if let database { return try PostgresAddress(database, from: .commandLine) }
    guard let text = ProcessInfo.processInfo.environment[Self.variable], !text.isEmpty else { return nil }
    return try PostgresAddress(text, from: .environment)
  }

  /// The records, in the database or else in a home.
  func records(in home: () throws -> FilePath) throws -> any InboxRecords {
    if let address = try address() { return PostgresInboxRecords(try PostgresDatabase(address, connections: 1)) }
    return try Inbox(home: home()).records
  }

  /// The inbox of a home, with its records in the database or in a file of the home.
  ///
  /// - Parameter operation: what it is for, as an infinitive phrase.
  func inbox(in home: HomeOptions, to operation: String) throws -> Inbox {
    let home = try FileSystem().realPath(home.current().existing(to: operation).path)
    guard let address = try address() else { return try Inbox(home: home) }
    return try Inbox(home: home, database: PostgresDatabase(address, connections: 1), makesFolders: false)
  }
}
