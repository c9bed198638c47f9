import Foundation
import Inbox
import Platform
import SystemPackage
import TestSupport

/// A PostgreSQL server for tests: one of its own in a scratch folder, or that of `LAZARET_POSTGRES`.
final class PostgresServer: Sendable {
  private let address: String
  private let programs: String
  private let supervisor: Supervisor?

  /// What holds a server as long as its input is open, so that it ends with the tests however these end.
  private final class Supervisor: Sendable {
    let input: FileHandle
    let output: FileHandle

    init(input: FileHandle, output: FileHandle) {
      self.input = input
      self.output = output
    }

    /// Waits for a line.
    func waitUntilReady() throws {
      var text = ""
      while !text.contains("ready\n") {
        let bytes = output.availableData
        guard !bytes.isEmpty else { throw Unavailable(words: "the server did not start: \(text)") }
        text += String(decoding: bytes, as: UTF8.self)
      }
    }
  }

  struct Unavailable: Error {
    var words: String
  }

  /// The server that tests share; nil where there is none, and none can be started.
  static let shared: PostgresServer? = {
    do {
      return try PostgresServer(isShared: true)
    } catch {
      print("PostgreSQL was not started, and what needs it is skipped: \(error)")
      return nil
    }
  }()

  private static let script = """
    export LC_ALL=C
    d="$1/data"; bin="$2"; place="$1"
    trap '"$bin/pg_ctl" -D "$d" -m immediate -w stop >/dev/null 2>&1; rm -rf "$place"' EXIT
    "$bin/initdb" -D "$d" -N -A trust -U lazaret -E UTF8 --locale=C.UTF-8 >"$1/initdb.log" 2>&1 || exit 1
    begin() {
      "$bin/pg_ctl" -D "$d" -w -l "$1/log" -o "-k $1 -c listen_addresses='' -c fsync=off -c max_connections=200" start \
        >/dev/null 2>&1 || exit 1
      echo ready
    }
    begin "$1"
    while read -r word; do
      case "$word" in
        restart) "$bin/pg_ctl" -D "$d" -m fast -w stop >/dev/null 2>&1; begin "$1" ;;
        crash) "$bin/pg_ctl" -D "$d" -m immediate -w stop >/dev/null 2>&1; begin "$1" ;;
      esac
    done
    """

  /// - Parameter isShared: whether the one of `LAZARET_POSTGRES` will do.
  init(isShared: Bool) throws {
    let environment = ProcessInfo.processInfo.environment
    let manager = FileManager.default
    let folders =
      (environment["PATH"] ?? "").split(separator: ":").map(String.init)
      + ((try? manager.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []).sorted().reversed()
      .map { "/usr/lib/postgresql/\($0)/bin" } + ["/opt/homebrew/opt/postgresql@15/bin"]
    let wanted = isShared && environment["LAZARET_POSTGRES"] != nil ? ["psql"] : ["initdb", "pg_ctl", "psql"]
    guard
      let programs = folders.first(where: { folder in
        wanted.allSatisfy { manager.isExecutableFile(atPath: folder + "/" + $0) }
      })
    else { throw Unavailable(words: "\(wanted.joined(separator: ", ")) are not on this machine") }
    self.programs = programs
    if isShared, let address = environment["LAZARET_POSTGRES"] {
      (self.address, supervisor) = (address, nil)
      return
    }
    let folder = TemporaryFolder.usualParent.appending("lazaret-pg-\(UniversalIdentifier.random())").string
    try manager.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let process = Process()
    let command = ["/bin/sh", "-c", Self.script, "sh", folder, programs]
    if geteuid() == 0 {
      // A server does not run as root.
      guard try ChildProcess.run("chown", ["postgres", folder]).status == 0, ChildProcess.exists("runuser") else {
        throw Unavailable(words: "there is no user postgres to run it as")
      }
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["runuser", "-u", "postgres", "--"] + command
    } else {
      process.executableURL = URL(fileURLWithPath: command[0])
      process.arguments = Array(command.dropFirst())
    }
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    try process.run()
    let supervisor = Supervisor(input: input.fileHandleForWriting, output: output.fileHandleForReading)
    try supervisor.waitUntilReady()
    self.supervisor = supervisor
    address = "postgresql:///postgres?host=\(folder)&user=lazaret"
  }

  deinit { try? supervisor?.input.close() }

  /// Ends it and starts it anew; with `crash` in the middle of what it does.
  func restart(_ word: String = "restart") throws {
    guard let supervisor else { throw Unavailable(words: "another's server is not restarted") }
    try supervisor.input.write(contentsOf: Data("\(word)\n".utf8))
    try supervisor.waitUntilReady()
  }

  /// Carries out SQL in a database, and gives what it prints.
  @discardableResult
  func run(_ sql: String, in address: String? = nil) throws -> String {
    let result = try ChildProcess.run(
      programs + "/psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", address ?? self.address, "-c", sql])
    guard result.status == 0 else { throw Unavailable(words: result.errors) }
    return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Makes an empty database, and gives its address.
  func makeDatabase(_ options: String = "") throws -> String {
    let name = "t" + "\(UniversalIdentifier.random())".lowercased().filter { $0 != "-" }
    try run("CREATE DATABASE \(name) \(options)")
    guard let start = address.range(of: "://"), let slash = address[start.upperBound...].firstIndex(of: "/") else {
      throw Unavailable(words: "LAZARET_POSTGRES names no database")
    }
    let rest = address[slash...].firstIndex(of: "?").map { address[$0...] } ?? ""
    return address[..<slash] + "/\(name)" + rest
  }

  private static let databases = Mutex<[String: String]>([:])

  /// The database of a name, which is made the first time.
  func database(named name: String) throws -> PostgresDatabase { try open(address(named: name)) }

  /// The address of the database of a name, which is made the first time.
  func address(named name: String) throws -> String {
    if let known = Self.databases.withLock({ $0[name] }) { return known }
    let address = try makeDatabase()
    Self.databases.withLock { $0[name] = address }
    return address
  }

  func open(_ address: String, connections: Int = 4) throws -> PostgresDatabase {
    try PostgresDatabase(PostgresAddress(address, from: .environment), connections: connections)
  }
}
