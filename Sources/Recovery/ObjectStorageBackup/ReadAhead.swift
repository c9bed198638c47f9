import Compatibility
package import ObjectStorage

/// The bytes behind what was read last of an object, fetched ahead where an object is read from one end to the other.
///
/// Blocks of a backup have half a mebibyte, and each request costs a way to the server and back. Who reads here and there, as for one
/// entity, gets what is asked for and no more.
package final class ReadAhead: Sendable {
  /// The most bytes that are fetched at once.
  static let most = 8 << 20

  private struct State {
    var key = ""
    var start: Int64 = 0
    var bytes: [UInt8] = []
    var window = 0
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
      let end = state.start + Int64(state.bytes.count)
      let goesOn = state.key == key && offset >= state.start && offset <= end
      if goesOn, offset + Int64(length) <= end { return Self.part(of: state, at: offset, length) }
      state.window = goesOn ? min(2 * max(min(length, Self.most), state.window), Self.most) : 0
      let bytes = try fetch(offset, max(length, state.window))
      (state.key, state.start, state.bytes) = (key, offset, bytes)
      return Self.part(of: state, at: offset, length)
    }
  }

  /// Forgets what was fetched: an object was written or removed.
  package func forget() { state.withLock { $0 = State() } }

  private static func part(of state: State, at offset: Int64, _ length: Int) -> [UInt8] {
    let first = Int(offset - state.start)
    if first == 0, length >= state.bytes.count { return state.bytes }
    return Array(state.bytes[first..<min(state.bytes.count, first + length)])
  }
}
