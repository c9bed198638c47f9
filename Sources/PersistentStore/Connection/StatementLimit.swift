package import GRDB
internal import GRDBSQLite

/// Limits on statements: steps, memory and value length for a store's own expressions, time where a user waits.
///
/// SQLite counts virtual machine steps, so a statement ends at the same point on every machine. It polls the clock
/// itself, so a deadline needs no free thread. Ending a writing statement rolls back its transaction.
@safe package final class StatementLimit {
  private let steps: Int64
  private let valueLength: Int32
  private let end: ContinuousClock.Instant?
  private let isCancelled: (() -> Bool)?
  private let waited: (() -> Duration)?
  private var taken: Int64 = 0

  package enum Excess: Sendable {
    case steps, time
    /// SQLite counts all connections of the process together, so another may be the cause and a retry may succeed.
    case memory
  }

  package private(set) var excess: Excess?

  package var isExceeded: Bool { excess != nil }

  private static let longestPattern: Int32 = 200

  /// SQLite can make a hundred such values harmlessly.
  private static let shortValue: Int64 = 64 << 10

  /// The memory growth allowed with a value length: an expression can hold thousands of values at a time.
  static let mostMemory: Int64 = 128 << 20
  private let memoryLimit: Int64
  private var memory: Int64 = 0

  private let interval: Int32

  package init(steps: Int64, valueLength: Int64) {
    self.steps = steps
    self.valueLength = Int32(clamping: valueLength)
    end = nil
    isCancelled = nil
    waited = nil
    memoryLimit = Self.mostMemory
    interval = 1_000_000
  }

  /// Creates a time limit that starts now.
  ///
  /// - Parameters:
  ///   - memory: the allowed memory growth in bytes while value length is limited.
  ///   - isCancelled: polled between steps.
  ///   - waited: the time spent waiting for others, such as a server, which does not count.
  package init(
    time: Duration, steps: Int64 = .max, valueLength: Int64 = .max, memory: Int64 = mostMemory,
    isCancelled: (() -> Bool)? = nil, waited: (() -> Duration)? = nil
  ) {
    memoryLimit = memory
    self.steps = steps
    self.valueLength = Int32(clamping: valueLength)
    self.isCancelled = isCancelled
    self.waited = waited
    end = .now + time
    // Microseconds of work, so that polling is cheap; fewer steps where one may call a function on a long value.
    interval = valueLength == .max ? 1_000 : valueLength > Self.shortValue ? 10 : 100
  }

  /// Runs the work and restores the connection.
  ///
  /// - Throws: the work's errors; `SQLITE_INTERRUPT` with ``excess`` beyond a limit; `SQLITE_TOOBIG` for a long value.
  package func apply<Value>(to database: Database, _ work: () throws -> Value) throws -> Value {
    guard let connection = unsafe database.sqliteConnection else { return try work() }
    let before = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, -1)
    memory = sqlite3_memory_used()
    let pattern = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1)
    _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, min(before, valueLength))
    if valueLength < .max {
      // Matching takes value length times pattern length steps.
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, min(pattern, Self.longestPattern))
    }
    unsafe sqlite3_progress_handler(
      connection, interval,
      { context in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<StatementLimit>.fromOpaque(context).takeUnretainedValue().count() ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
    defer {
      unsafe sqlite3_progress_handler(connection, 0, nil, nil)
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, before)
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)
    }
    return try work()
  }

  private func count() -> Bool {
    taken += Int64(interval)
    if valueLength < .max, sqlite3_memory_used() - memory > memoryLimit { excess = .memory }
    if taken > steps { excess = .steps }
    if let end, .now >= end + (waited?() ?? .zero) { excess = .time }
    return isExceeded || isCancelled?() == true
  }
}
