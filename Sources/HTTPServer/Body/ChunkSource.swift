internal import Platform

/// A body that is made while it is sent: chunks, one after another, on the connection's own thread.
package final class ChunkSource: Sendable {
  /// Why there are no more chunks.
  package enum End: Sendable {
    case finished

    /// The making failed: the client sees a broken connection, and not a whole body.
    case failed

    /// The client went away, or the server stops.
    case cancelled
  }

  private struct State {
    var isOver = false
    var onCancel: (@Sendable () -> Void)?
  }

  private let make: @Sendable () throws -> [UInt8]?
  private let ended: @Sendable (End) -> Void
  private let state = Mutex(State())

  /// A body of chunks.
  ///
  /// - Parameters:
  ///   - onCancel: called from another thread when a chunk that is being waited for is not wanted any more.
  ///   - ended: called once, when no further chunk is asked for.
  ///   - make: the next chunk, of any size and not empty; nil behind the last one. It may wait.
  package init(
    onCancel: (@Sendable () -> Void)? = nil, ended: @escaping @Sendable (End) -> Void = { _ in },
    _ make: @escaping @Sendable () throws -> [UInt8]?
  ) {
    self.make = make
    self.ended = ended
    state.withLock { $0.onCancel = onCancel }
  }

  /// The next chunk, nil behind the last one; no chunk any more after an error, or after `cancel`.
  package func next() throws -> [UInt8]? {
    guard !state.withLock(\.isOver) else { return nil }
    do {
      while let chunk = try make() {
        if !chunk.isEmpty { return chunk }
      }
      end(.finished)
      return nil
    } catch {
      end(.failed)
      throw error
    }
  }

  /// Ends the making early; whatever waits for a chunk is woken by `onCancel`.
  package func cancel() {
    let wake = state.withLock { $0.isOver ? nil : $0.onCancel }
    end(.cancelled)
    wake?()
  }

  private func end(_ end: End) {
    let isFirst = state.withLock { state in
      defer { state.isOver = true }
      return !state.isOver
    }
    if isFirst { ended(end) }
  }
}
