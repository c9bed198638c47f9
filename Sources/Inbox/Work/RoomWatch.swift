internal import Platform

/// Watches a worker's use of disk space.
///
/// It temporarily needs more than stays: copies, sorted rows, an unverified store.
final class RoomWatch: Sendable {
  private struct State {
    var next = ContinuousClock.now
    var isOver = false
  }

  private let state = Mutex(State())
  private let inbox: Inbox
  private let bundle: String
  private let folders: InboxFolders
  private let limit: Int64

  /// - Parameters:
  ///   - room: the bytes that may stay.
  ///   - before: the bytes present.
  init(_ inbox: Inbox, _ bundle: String, in folders: InboxFolders, room: Int64, before: Int64) {
    self.inbox = inbox
    self.bundle = bundle
    self.folders = folders
    limit = before + Self.working(room)
  }

  /// The temporary limit, given the bytes that may stay.
  static func working(_ room: Int64) -> Int64 { (64 << 20) + 4 * min(max(0, room), 1 << 50) }

  /// Whether it uses too much; measured at most twice a second.
  var isOver: Bool {
    state.withLock { state in
      guard !state.isOver, state.next <= .now else { return state.isOver }
      let start = ContinuousClock.now
      defer {
        // Spend at most a tenth of the time on counting.
        let end = ContinuousClock.now
        state.next = end + max(.milliseconds(500), start.duration(to: end) * 10)
      }
      // A vanishing file must not end the worker; its end counts again.
      guard let bytes = try? inbox.workingBytes(of: bundle, in: folders) else { return false }
      state.isOver = bytes > limit
      return state.isOver
    }
  }
}
