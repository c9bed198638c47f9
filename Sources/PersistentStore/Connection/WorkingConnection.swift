internal import Dispatch
package import GRDB
internal import StoreFiles
package import SystemPackage

/// A connection of SQLite's to a file that is being made, or that no other process changes: what migration and salvage work with.
///
/// Memory is bounded: a cache of a few megabytes, temporary trees in files, nothing mapped. Nothing is durable until the file
/// is pushed to the disk as a whole, because an unfinished one is thrown away. Errors come as they are; see
/// ``DatabaseFailure``.
package struct WorkingConnection: Sendable {
  /// How a file is opened.
  package enum Mode: String, Sendable {
    /// Read and write, made where it is missing.
    case create = "mode=rwc"

    /// Read and write a file that is there.
    case write = "mode=rw"

    /// Read a file that does not change meanwhile: no locks, no log, nothing written beside it.
    case immutable = "mode=ro&immutable=1"
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
  ///   - isCancelled: asked twice a second while SQLite works, on another thread; where it says so, the statement ends
  ///     with SQLite's `SQLITE_INTERRUPT`.
  ///   - prepare: done with the connection before anything else, such as adding functions.
  package init(
    _ path: FilePath, _ mode: Mode, label: String, cacheKilobytes: Int,
    isCancelled: (@Sendable () -> Bool)? = nil, prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws {
    self.isCancelled = isCancelled
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.readonly = mode == .immutable
    // What fails leaves its transaction open, and the file is thrown away with it.
    configuration.allowsUnsafeTransactions = true
    configuration.label = label
    configuration.prepareDatabase { database in
      try prepare(database)
      try database.execute(
        sql:
          "PRAGMA cache_size = -\(cacheKilobytes); PRAGMA temp_store = 1; PRAGMA mmap_size = 0; PRAGMA trusted_schema = 0"
      )
    }
    queue = try DatabaseQueue(path: Self.address(path, mode), configuration: configuration)
  }

  /// The address of a file as SQLite's URI, whatever bytes its name holds.
  package static func address(_ path: FilePath, _ mode: Mode) -> String {
    var address = path.isAbsolute ? "file://" : "file:"
    for (index, component) in path.components.enumerated() {
      if index > 0 || path.isAbsolute { address += "/" }
      for byte in component.platformBytes { address += escaped(byte) }
    }
    return address + "?" + mode.rawValue
  }

  private static func escaped(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      return String(Unicode.Scalar(byte))
    default:
      let digits = String(byte, radix: 16, uppercase: true)
      return digits.utf8.count == 1 ? "%0" + digits : "%" + digits
    }
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
