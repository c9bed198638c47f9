internal import Foundation
internal import Platform

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Notifies the inbox's listeners of other processes' changes, on its own connection and thread.
///
/// It also notifies after reconnecting, since it may have missed one.
package final class PostgresListener: Sendable {
  private let isStopping = Mutex(false)
  private let database: PostgresDatabase
  private let changes: InboxChanges

  package init(_ database: PostgresDatabase, to changes: InboxChanges) {
    self.database = database
    self.changes = changes
    WorkThread.start(named: "lazaret.inbox.listen") { [self] in listen() }
  }

  /// Stops within a second.
  package func stop() { isStopping.withLock { $0 = true } }

  private func listen() {
    var connection: PostgresConnection?
    var pause = 0.1
    while !isStopping.withLock({ $0 }) {
      do {
        let current: PostgresConnection
        if let connection {
          current = connection
        } else {
          current = try database.listen()
          connection = current
          pause = 0.1
          changes.tell()
        }
        var descriptor = pollfd(fd: current.socket, events: Int16(POLLIN), revents: 0)
        // On timeout, or a signal.
        guard unsafe poll(&descriptor, 1, 1000) > 0 else { continue }
        // This process has announced its own changes already.
        if try current.notifications().contains(where: { $0 != database.mark }) { changes.tell() }
      } catch {
        connection = nil
        Thread.sleep(forTimeInterval: pause)
        pause = min(5, pause * 2)
      }
    }
  }
}
