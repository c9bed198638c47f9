import Compatibility
import Foundation
import HTTPServer

/// How many queries run at a time: one of each session, and a few of all, so that no link and no script keeps the server busy.
final class QueryTurns: Sendable {
  private let most: Int
  private let patience: Duration
  private let running = Mutex<Set<String>>([])

  /// - Parameters:
  ///   - most: how many of all sessions run at a time.
  ///   - patience: how long one waits for its turn.
  init(most: Int, patience: Duration) {
    self.most = most
    self.patience = patience
  }

  /// Takes the turn of a session, which has to be given back.
  ///
  /// - Throws: ``Refusal`` 503 where it does not come in time.
  func take(_ session: Sessions.Session) throws {
    let name = session.cookie.text
    let end = ContinuousClock.now + patience
    while true {
      let isTaken = running.withLock { running in
        guard running.count < most, !running.contains(name) else { return false }
        running.insert(name)
        return true
      }
      if isTaken { return }
      guard ContinuousClock.now < end else {
        throw Refusal(.serviceUnavailable, "other queries are still running; try again in a moment")
      }
      Thread.sleep(forTimeInterval: 0.01)
    }
  }

  /// Gives the turn of a session back.
  func giveBack(_ session: Sessions.Session) { _ = running.withLock { $0.remove(session.cookie.text) } }
}
