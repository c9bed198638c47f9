internal import Dispatch
package import GRDB
internal import Platform
package import SystemPackage

/// A connection of SQLite's to a file that is being made, or that no other process changes: what migration and salvage work with.
///
/// Memory is bounded: a cache of a few megabytes, temporary trees in files, nothing mapped. Nothing is durable until the file
/// is pushed to the disk as a whole, because an unfinished one is thrown away. Errors come as they are; see
/// ``DatabaseFailure``.
package struct WorkingConnection: Sendable {
  /// How a file is opened.
  package enum Mode: Sendable {
    /// Read and write, made where it is missing.
    case create

    /// Read and write a file that is there.
    case write

    /// Read a private copy of evidence, with what is in its log; see ``EvidenceConnection``.
    case copy

    /// Read a file that does not change meanwhile: no locks, no log, nothing written beside it; see ``EvidenceConnection``.
    case immutable

    /// Whether it is only read, and what its schema declares does not run.
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

  /// How often it is asked, while SQLite works, whether the work is to end.
  private static let interval = DispatchTimeInterval.milliseconds(400)

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - label: who works with it, for debugging.
  ///   - cacheKilobytes: the size of the cache of pages.
  ///   - others: the files that a connection to evidence attaches.
  ///   - takesOldQuotes: whether text in double quotes is taken for text, as schemas of older apps have it.
  ///   - isCancelled: asked twice a second while SQLite works, on another thread; where it says so, the statement ends
  ///     with SQLite's `SQLITE_INTERRUPT`.
  ///   - prepare: done with the connection before anything else, such as adding functions.
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
    // What fails leaves its transaction open, and the file is thrown away with it.
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

  /// The address of a file as SQLite's URI, whatever bytes its name holds.
  package static func address(_ path: FilePath, _ mode: Mode) -> String {
    PersistentStore.escaped(path) + "?" + mode.parameters
  }

  /// Attaches a file to a connection; one that is made is its owner's alone.
  package static func attach(_ path: FilePath, _ mode: Mode, as name: String, to database: Database) throws {
    try database.execute(
      sql: "ATTACH DATABASE ? AS \(SQLText.identifier(name))", arguments: [readyAddress(path, mode)])
  }

  /// The address of a file that is there, or that is made for its owner alone where the mode wants one.
  private static func readyAddress(_ path: FilePath, _ mode: Mode) throws -> String {
    // SQLite would make it readable by other users, and its log and journal like it.
    if mode == .create, try FileSystem().status(of: path) == nil { try FileSystem().create(path).commit() }
    return address(path, mode)
  }

  /// Runs statements outside any transaction.
  package func run<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try watched { try queue.writeWithoutTransaction(body) }
  }

  /// Reads.
  package func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try watched { try queue.unsafeRead(body) }
  }

  /// Closes the connection.
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
      // The next statement is not to be interrupted for this one.
      ended.wait()
    }
    return try body()
  }
}
