/// A range of bytes of a file that locks are taken on; the bytes need not exist.
struct LockRange: Sendable, Hashable {
  var start: Int64
  var length: Int64

  // The places of SQLite's locks in the main file: https://sqlite.org/fileformat2.html#the_lock_byte_page and os_unix.c.
  static let pending = LockRange(start: 0x4000_0000, length: 1)
  static let reserved = LockRange(start: 0x4000_0001, length: 1)
  static let shared = LockRange(start: 0x4000_0002, length: 510)

  /// Pending, reserved and shared together.
  static let all = LockRange(start: 0x4000_0000, length: 512)

  /// The locks of write-ahead logging in the `-shm` file (https://sqlite.org/walformat.html, "WAL Locks"): eight locks
  /// from byte 120, then the dead-man switch that every connection holds a share of.
  static let walIndex = LockRange(start: 120, length: 9)

  static let connections = LockRange(start: 128, length: 1)

  /// The lock of one of the marks up to which readers need the log, 0 to 4.
  static func readMark(_ mark: Int) -> LockRange { LockRange(start: 123 + Int64(mark), length: 1) }
}

struct LockOwner: Sendable, Hashable {
  /// The process, where the system tells.
  var processID: Int32?
  var isExclusive: Bool
}
