internal import Dispatch
internal import GRDBSQLite

/// A bound on the memory that SQLite may take for a short piece of work, such as compiling a statement that a person typed.
///
/// SQLite asks no handler for leave while it compiles, and a statement of some hundred characters can double itself with each
/// of its parts (common table expressions, nested selections) until it takes hours. All of that takes memory, and without it
/// ends at once with `SQLITE_NOMEM`. SQLite has no such limit for one connection: it holds for the process, and so it is set
/// for the compiling alone.
package enum HeapLimit {
  /// One piece of work at a time, so that each puts back the limit that it found.
  private static let turn = DispatchSemaphore(value: 1)

  /// Does the work; what takes more bytes than SQLite had in use before, and these, fails with `SQLITE_NOMEM`.
  package static func apply<Value>(bytes: Int64, _ work: () throws -> Value) rethrows -> Value {
    turn.wait()
    let before = sqlite3_hard_heap_limit64(-1)
    let limit = sqlite3_memory_used() + bytes
    _ = sqlite3_hard_heap_limit64(before > 0 ? min(before, limit) : limit)
    defer {
      _ = sqlite3_hard_heap_limit64(before)
      turn.signal()
    }
    return try work()
  }
}
