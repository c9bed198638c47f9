import Platform

/// A read-ahead buffer for sequential reads of one object.
///
/// Blocks of a backup have 512 KiB, and each request costs a round trip. Random access fetches only its range.
package final class ObjectReadAhead: Sendable {
  static let most = 8 << 20

  /// The gap that still counts as sequential, since several threads read an object in turns of some blocks.
  private static let reach: Int64 = 4 << 20

  private struct State {
    var key = ""
    var last = Stretch()
    /// The stretch before, for a thread that lags.
    var before = Stretch()
    var window = 0
  }

  private struct Stretch {
    var start: Int64 = 0
    var bytes: [UInt8] = []
    var end: Int64 { start + Int64(bytes.count) }

    /// The bytes if the stretch has them all.
    func part(at offset: Int64, _ length: Int) -> [UInt8]? {
      guard offset >= start, Int64(length) <= end - offset else { return nil }
      return prefix(at: offset, length)
    }

    /// The available bytes from `offset` on.
    func prefix(at offset: Int64, _ length: Int) -> [UInt8] {
      let first = Int(offset - start)
      guard first < bytes.count else { return [] }
      if first == 0, length >= bytes.count { return bytes }
      return Array(bytes[first..<min(bytes.count, first + length)])
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// Reads a range of an immutable object.
  ///
  /// - Parameter fetch: requests a range; returns fewer bytes at the object's end.
  package func read(
    _ key: String, at offset: Int64, length: Int, fetch: (Int64, Int) throws(S3Error) -> [UInt8]
  ) throws(S3Error) -> [UInt8] {
    // Fetch under the lock, so that another reader finds its range fetched.
    try state.withLock { state throws(S3Error) in
      if state.key != key { state = State(key: key) }
      if let known = state.last.part(at: offset, length) ?? state.before.part(at: offset, length) { return known }
      let end = state.last.end
      // Include the range that another thread needs next.
      let goesOn =
        !state.last.bytes.isEmpty && offset >= state.last.start
        && offset - end <= (state.window > 0 ? Self.reach : 0)
      state.window = goesOn ? min(2 * max(min(length, Self.most), state.window), Self.most) : 0
      let start = goesOn ? min(offset, end) : offset
      let bytes = try fetch(start, max(Int(offset - start) + length, state.window))
      (state.before, state.last) = (state.last, Stretch(start: start, bytes: bytes))
      return state.last.prefix(at: offset, length)
    }
  }

  /// Drops the buffer after a change.
  package func forget() { state.withLock { $0 = State() } }
}
