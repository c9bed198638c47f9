import HTTPServer
import Sending
import StoreCoordination

/// How the pages speak of an entry of the outbox.
enum OutboxWords {
  /// Its state, as a mark.
  static func tag(_ entry: OutboxEntry) -> HTML {
    switch entry.state {
    case .waiting: .tag("waiting", .warn)
    case .sending: .tag("being sent", .accent)
    case .sent: .tag("sent", .good)
    case .failed: .tag("failed", .bad)
    case .cancelled: .tag("taken back")
    }
  }

  /// The receipt, or how far it is and why not further.
  static func outcome(_ entry: OutboxEntry, now: Timestamp) -> HTML {
    if let receipt = entry.receipt {
      return "<code>\(printable(receipt.id))</code>, \(Words.time(receipt.date, now: now))"
    }
    var words = entry.offset > 0 ? "\(Words.size(entry.offset)) of \(Words.size(entry.bytes)) are there" : ""
    if let error = entry.lastError { words += (words.isEmpty ? "" : "; ") + "last: \(printable(error))" }
    return HTML(escaping: words)
  }

  /// What can be done with it.
  static func actions(_ entry: OutboxEntry, _ frame: PageFrame) -> HTML {
    guard frame.allowsActions, !entry.isOver, entry.state != .sending else { return .empty }
    let place = RequestTarget.to("outbox", entry.id)
    return """
      <div class="row no-print">\(frame.button("Try again", place.appending("retry")))\
      \(frame.button("Take back", place.appending("cancel")))</div>
      """
  }
}
