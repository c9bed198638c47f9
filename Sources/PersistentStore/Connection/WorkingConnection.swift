internal import Dispatch
package import GRDB
internal import Platform
package import SystemPackage

/// An SQLite connection for migration and salvage, to a file under construction or unchanged by other processes.
///
/// Memory is bounded: a few megabytes of cache, temporary trees in files, no mapping. Only syncing the finished file
/// makes it durable, since an unfinished one is discarded. Errors come unchanged; see ``DatabaseFailure``.
package struct WorkingConnection: Sendable {
  package enum Mode: Sendable {
    /// Read and write, created if missing.
    case create

    case write

    /// Read a private evidence copy with its log; see ``EvidenceConnection``.
    case copy

    /// Read without locks, log or files beside it; see ``EvidenceConnection``.
    case immutable

    fileprivate var isEvidence: Bool { self == .immutable || self == .copy }

    fileprivate var parameters: String {
      switch self {
      case .create: "mode=rwc"
      case .write: "mode=rw"
      case .copy: EvidenceConnection.Access.copy.parameters
      case .immutable: EvidenceConnection.Access.unchanging.parameters
      }
    }
  }

  private let queue: DatabaseQueue
  private let isCancelled: (@Sendable () -> Bool)?

  private static let interval = DispatchTimeInterval.milliseconds(400)

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - others: files to attach, for evidence connections.
  ///   - takesOldQuotes: whether double quotes may delimit text, as in older schemas.
  ///   - isCancelled: polled twice a second on another thread; once true, the statement ends with `SQLITE_INTERRUPT`.
  ///   - prepare: called with the new connection.
  package init(
    _ path: FilePath, _ mode: Mode, label: String, cacheKilobytes: Int, attaching others: [FilePath] = [],
    takesOldQuotes: Bool = false, isCancelled: (@Sendable () -> Bool)? = nil,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws {
    self.isCancelled = isCancelled
    if mode.isEvidence {
      queue = try EvidenceConnection.open(
        path, mode == .copy ? .copy : .unchanging, label: label, cacheKilobytes: cacheKilobytes,
        attaching: others, prepare: prepare)
      return
    }
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // A failure leaves its transaction open; the file is discarded with it.
    configuration.allowsUnsafeTransactions = true
    configuration.label = label
    configuration.acceptsDoubleQuotedStringLiterals = takesOldQuotes
    configuration.prepareDatabase { database in
      try BoundedFormat.add(to: database)
      try prepare(database)
      try database.execute(
        sql:
          "PRAGMA cache_size = -\(cacheKilobytes); PRAGMA temp_store = 1; PRAGMA mmap_size = 0; PRAGMA trusted_schema = 0"
      )
    }
    queue = try DatabaseQueue(path: Self.readyAddress(path, mode), configuration: configuration)
  }

  /// Returns an SQLite URI for any path bytes.
  package static func address(_ path: FilePath, _ mode: Mode) -> String {
    PersistentStore.escaped(path) + "?" + mode.parameters
  }

  /// Attaches a file, created for its owner only.
  package static func attach(_ path: FilePath, _ mode: Mode, as name: String, to database: Database) throws {
    try database.execute(sql: "ATTACH DATABASE ? AS \(SQLText.identifier(name))", arguments: [readyAddress(path, mode)])
  }

  private static func readyAddress(_ path: FilePath, _ mode: Mode) throws -> String {
    // SQLite would make it, its log and its journal readable by others.
    if mode == .create, try FileSystem().status(of: path) == nil { try FileSystem().create(path).commit() }
    return address(path, mode)
  }

  /// Runs statements outside a transaction.
  package func run<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try watched { try queue.writeWithoutTransaction(body) }
  }

  package func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try watched { try queue.unsafeRead(body) }
  }

  package func close() throws { try queue.close() }

  private func watched<Value>(_ body: () throws -> Value) throws -> Value {
    guard let isCancelled else { return try body() }
    let (end, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    WorkThread.start { [queue] in
      while end.wait(timeout: .now() + Self.interval) == .timedOut {
        if isCancelled() { queue.interrupt() }
      }
      ended.signal()
    }
    defer {
      end.signal()
      // The interrupt must not hit the next statement.
      ended.wait()
    }
    return try body()
  }
}
