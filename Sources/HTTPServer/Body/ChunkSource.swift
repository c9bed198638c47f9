internal import Dispatch
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

/// Server-sent events for one client (WHATWG HTML, section 9.2).
///
/// A slow client delays no other: beyond ``capacity`` the oldest event is dropped.
package final class EventChannel: Sendable {
  static let capacity = 256

  package struct Event: Sendable, Hashable {
    /// The event type; nil for a plain message.
    var name: String?

    /// The content, of any number of lines.
    var data: String

    package init(_ data: String, name: String? = nil) {
      self.data = data
      self.name = name
    }

    var bytes: [UInt8] {
      var text = ""
      if let name { text += "event: \(Self.line(name))\n" }

      let lines = data.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }
      for line in lines { text += "data: \(line)\n" }
      return Array((text + "\n").utf8)
    }

    private static func line(_ text: String) -> String {
      String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 != "\n" && $0 != "\r" && $0 != "\u{0}" }))
    }
  }

  private struct State {
    var waiting: [Event] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let signal = DispatchSemaphore(value: 0)
  private let heartbeat: DispatchTimeInterval

  /// Creates a channel; the heartbeat detects clients that left.
  package init(heartbeatMilliseconds: Int = 10_000) { heartbeat = .milliseconds(heartbeatMilliseconds) }

  package var isClosed: Bool { state.withLock(\.isClosed) }

  /// Queues an event; false if the channel is closed.
  @discardableResult
  package func send(_ event: Event) -> Bool {
    let isOpen = state.withLock { state in
      guard !state.isClosed else { return false }
      if state.waiting.count >= Self.capacity { state.waiting.removeFirst() }
      state.waiting.append(event)
      return true
    }
    if isOpen { signal.signal() }
    return isOpen
  }

  package func close() {
    state.withLock { $0.isClosed = true }
    signal.signal()
  }

  package var response: Response {
    let source = ChunkSource(
      onCancel: { self.close() }, ended: { _ in self.close() }, { () -> [UInt8]? in self.nextBytes() })
    return Response(
      headers: ["Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"], body: .chunks(source))
  }

  /// Returns events, a heartbeat comment, or nil at the end.
  private func nextBytes() -> [UInt8]? {
    while true {
      let (bytes, isClosed) = state.withLock { state in
        let bytes = state.waiting.flatMap(\.bytes)
        state.waiting.removeAll(keepingCapacity: true)
        return (bytes, state.isClosed)
      }
      if !bytes.isEmpty { return bytes }
      if isClosed { return nil }
      if signal.wait(timeout: .now() + heartbeat) == .timedOut { return Array(": \n\n".utf8) }
    }
  }
}
