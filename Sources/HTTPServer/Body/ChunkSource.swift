internal import Platform

/// A body generated on the connection's thread while it is sent.
package final class ChunkSource: Sendable {
  package enum End: Sendable {
    case finished

    /// Generation failed: the client sees a broken connection.
    case failed

    /// The client left, or the server stops.
    case cancelled
  }

  private struct State {
    var isOver = false
    var onCancel: (@Sendable () -> Void)?
  }

  private let make: @Sendable () throws -> [UInt8]?
  private let ended: @Sendable (End) -> Void
  private let state = Mutex(State())

  /// Creates a body.
  ///
  /// - Parameters:
  ///   - onCancel: wakes a waiting `make` from another thread.
  ///   - ended: called once after the last chunk.
  ///   - make: returns the next non-empty chunk, nil at the end; may wait.
  package init(
    onCancel: (@Sendable () -> Void)? = nil, ended: @escaping @Sendable (End) -> Void = { _ in },
    _ make: @escaping @Sendable () throws -> [UInt8]?
  ) {
    self.make = make
    self.ended = ended
    state.withLock { $0.onCancel = onCancel }
  }

  /// Returns the next chunk; nil at the end, after an error or `cancel`.
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

  /// Ends generation early; `onCancel` wakes a waiting `make`.
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
