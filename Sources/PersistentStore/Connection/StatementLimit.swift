package import GRDB
internal import GRDBSQLite

/// A bound on what statements may take: steps, memory and the length of values where a store's own declarations give their
/// expressions, time where a person waits for the answer.
///
/// SQLite counts the steps of its virtual machine, so that the same statement ends at the same place on every machine.
/// It looks at the clock itself, so that the time is also up where no other thread is free to tell it.
/// Where the limit ends a statement that writes, SQLite takes back the whole transaction.
@safe package final class StatementLimit {
  private let steps: Int64
  private let valueLength: Int32
  private let end: ContinuousClock.Instant?
  private let isCancelled: (() -> Bool)?
  private let waited: (() -> Duration)?
  private var taken: Int64 = 0

  /// What a statement may have taken too much of.
  package enum Excess: Sendable {
    case steps, time
    /// SQLite counts the memory of all its connections in the process together. So another one may have taken it, and the
    /// statement may be well within its limit when it is tried again.
    case memory
  }

  /// What it has ended a statement for; nil where it ended none.
  package private(set) var excess: Excess?

  /// Whether it has ended a statement.
  package var isExceeded: Bool { excess != nil }

  /// The longest pattern, in bytes, where the length of values is limited.
  private static let longestPattern: Int32 = 200

  /// The bytes of a value of which SQLite makes a hundred without harm.
  private static let shortValue: Int64 = 64 << 10

  /// How much SQLite may hold more than at the beginning where the length of values is limited: an expression can have
  /// thousands of values at a time.
  package static let mostMemory: Int64 = 128 << 20
  private let memoryLimit: Int64
  private var memory: Int64 = 0

  /// How many steps SQLite takes between two looks at the limit.
  private let interval: Int32

  /// A limit for one piece of work.
  ///
  /// - Parameters:
  ///   - steps: the most steps of SQLite's virtual machine.
  ///   - valueLength: the most bytes of a value that is made on the way.
  package init(steps: Int64, valueLength: Int64) {
    self.steps = steps
    self.valueLength = Int32(clamping: valueLength)
    end = nil
    isCancelled = nil
    waited = nil
    memoryLimit = Self.mostMemory
    interval = 1_000_000
  }

  /// A limit of time for one piece of work, from now on.
  ///
  /// - Parameters:
  ///   - steps: the most steps besides.
  ///   - valueLength: the most bytes of a value besides.
  ///   - memory: how many bytes more than at the beginning SQLite may hold, where the length of values is limited.
  ///   - isCancelled: asked now and then, between steps, whether the work is to end.
  ///   - waited: how long the work has waited for others so far, such as a server, which does not count.
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
    // Some microseconds of work, against which a look at the clock does not count; fewer steps where one may call a
    // function of a long value.
    interval = valueLength == .max ? 1_000 : valueLength > Self.shortValue ? 10 : 100
  }

  /// Does the work under the limit; afterwards the connection is as it was.
  ///
  /// - Throws: what the work throws; `SQLITE_INTERRUPT` and ``excess`` where it took more than it may, `SQLITE_TOOBIG` where a
  ///   value is longer.
  package func apply<Value>(to database: Database, _ work: () throws -> Value) throws -> Value {
    guard let connection = unsafe database.sqliteConnection else { return try work() }
    let before = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, -1)
    memory = sqlite3_memory_used()
    let pattern = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1)
    _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, min(before, valueLength))
    if valueLength < .max {
      // A value is matched in as many steps as it and the pattern have bytes, multiplied.
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

  /// Counts on, and returns whether that is too much.
  private func count() -> Bool {
    taken += Int64(interval)
    if valueLength < .max, sqlite3_memory_used() - memory > memoryLimit { excess = .memory }
    if taken > steps { excess = .steps }
    if let end, .now >= end + (waited?() ?? .zero) { excess = .time }
    return isExceeded || isCancelled?() == true
  }
}
