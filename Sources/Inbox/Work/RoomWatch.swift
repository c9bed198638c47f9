internal import Platform

/// Looks, while a worker works at a bundle, whether it takes more room than it may.
///
/// What a worker needs for a while only is more than what stays: copies, sorted rows, a store before it is verified.
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
  ///   - folders: where it is worked at.
  ///   - room: what may stay of it.
  ///   - before: what is there already.
  init(_ inbox: Inbox, _ bundle: String, in folders: InboxFolders, room: Int64, before: Int64) {
    self.inbox = inbox
    self.bundle = bundle
    self.folders = folders
    limit = before + Self.working(room)
  }

  /// How many bytes a worker may use for a while where so many may stay.
  static func working(_ room: Int64) -> Int64 { (64 << 20) + 4 * min(max(0, room), 1 << 50) }

  /// Whether it took too much; it is measured at most twice a second.
  var isOver: Bool {
    state.withLock { state in
      guard !state.isOver, state.next <= .now else { return state.isOver }
      let start = ContinuousClock.now
      defer {
        // Of very many files no more than a tenth of the time is spent on counting.
        let end = ContinuousClock.now
        state.next = end + max(.milliseconds(500), start.duration(to: end) * 10)
      }
      // A file that goes while it is looked at is no reason to end the worker; what stays is counted at its end.
      guard let bytes = try? inbox.workingBytes(of: bundle, in: folders) else { return false }
      state.isOver = bytes > limit
      return state.isOver
    }
  }
}
