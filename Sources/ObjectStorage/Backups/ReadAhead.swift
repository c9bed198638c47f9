import Platform

/// The bytes behind what was read last of an object, fetched ahead where an object is read from one end to the other.
///
/// Blocks of a backup have half a mebibyte, and each request costs a way to the server and back. Who reads here and there, as for one
/// entity, gets what is asked for and no more.
package final class ReadAhead: Sendable {
  /// The most bytes that are fetched at once.
  static let most = 8 << 20

  /// How far ahead of what was read one of several threads may ask, which read the same object together: some blocks.
  private static let reach: Int64 = 4 << 20

  private struct State {
    var key = ""
    var last = Stretch()
    /// What was fetched before that, for a thread that is behind another.
    var before = Stretch()
    var window = 0
  }

  private struct Stretch {
    var start: Int64 = 0
    var bytes: [UInt8] = []
    var end: Int64 { start + Int64(bytes.count) }

    /// A part of it; nil where it does not have all of that.
    func part(at offset: Int64, _ length: Int) -> [UInt8]? {
      guard offset >= start, Int64(length) <= end - offset else { return nil }
      return prefix(at: offset, length)
    }

    /// As many bytes as it has of a part that begins in it.
    func prefix(at offset: Int64, _ length: Int) -> [UInt8] {
      let first = Int(offset - start)
      guard first < bytes.count else { return [] }
      if first == 0, length >= bytes.count { return bytes }
      return Array(bytes[first..<min(bytes.count, first + length)])
    }
  }

  private let state = Mutex(State())

  /// Nothing was read yet.
  package init() {}

  /// Reads a part of an object that does not change.
  ///
  /// - Parameter fetch: asks the server for so many bytes from an offset on; fewer come at the object's end.
  package func read(
    _ key: String, at offset: Int64, length: Int, fetch: (Int64, Int) throws(S3Error) -> [UInt8]
  ) throws(S3Error) -> [UInt8] {
    // A second thread that reads the same object waits for what is being fetched, which has its part.
    try state.withLock { state throws(S3Error) in
      if state.key != key { state = State(key: key) }
      if let known = state.last.part(at: offset, length) ?? state.before.part(at: offset, length) { return known }
      let end = state.last.end
      // What another thread will ask for in a moment comes along.
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

  /// Forgets what was fetched: an object was written or removed.
  package func forget() { state.withLock { $0 = State() } }
}
