internal import Dispatch
internal import Platform

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

    /// A reconnecting client's `Last-Event-ID`.
    var id: String?

    package init(_ data: String, name: String? = nil, id: String? = nil) {
      self.data = data
      self.name = name
      self.id = id
    }

    var bytes: [UInt8] {
      var text = ""
      if let name { text += "event: \(Self.line(name))\n" }
      if let id { text += "id: \(Self.line(id))\n" }
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
      onCancel: { self.close() }, ended: { _ in self.close() },
      { () -> [UInt8]? in self.nextBytes() })
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
