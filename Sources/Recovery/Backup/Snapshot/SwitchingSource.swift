import Compatibility
import StoreFiles

/// A source that can be exchanged for a copy of itself while it is being read.
final class SwitchingSource: ByteSource {
  let count: Int64
  private let state: Mutex<State>

  private struct State {
    var source: any ByteSource
    var generation = 0
    /// The reads under way, of this generation and the one before.
    var readers = [0, 0]
  }

  init(_ source: any ByteSource) {
    count = source.count
    state = Mutex(State(source: source))
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    let (source, place) = state.withLock { state in
      let place = state.generation & 1
      state.readers[place] += 1
      return (state.source, place)
    }
    defer { state.withLock { $0.readers[place] -= 1 } }
    return try source.read(at: offset, length: length, into: &buffer)
  }

  /// Exchanges the source, once, and returns when the old one is not read any more.
  func exchange(for copy: any ByteSource) {
    let old = state.withLock { state in
      defer {
        state.source = copy
        state.generation += 1
      }
      return state.generation & 1
    }
    while state.withLock({ $0.readers[old] > 0 }) { LogReadLock.rest() }
  }
}
