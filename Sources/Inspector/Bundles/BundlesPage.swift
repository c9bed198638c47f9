import HTTPServer
import Platform
import SupportBundle

/// The bundles written here and the outbox.
struct BundlesPage: InspectorPage {
  let bundles: PagePart<[ListedBundle]>
  let outbox: PagePart<Outbox.Listing>

  init(_ catalogue: BundleCatalogue, _ outbox: Outbox) {
    bundles = PagePart { try catalogue.bundles() }
    self.outbox = PagePart { try outbox.listing() }
  }

  var title: String { "Bundles" }
  var mayAge: Bool { true }
  var section: PageSection { .bundles }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["bundles": bundles, "outbox": outbox.map(\.entries)])
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div data-events="\(frame.events)"><h1>\(title)</h1>
    <p class="soft">What was exported for support stays here until you remove it. Nothing leaves this machine by itself.</p>
    \(bundles.html { list(of: $0, frame) })
    \(outbox.html { sent($0, frame) })</div>
    """
  }

  private func list(of bundles: [ListedBundle], _ frame: PageFrame) -> HTML {
    guard !bundles.isEmpty else {
      return """
        <div class="empty"><p>No bundle was written yet. Open a store and choose “Export”: it shows you what a bundle for \
        support would hold, and writes it when you agree.</p></div>
        """
    }
    let rows = bundles.map { bundle -> HTML in
      """
      <tr><th scope="row" class="wrap"><a href="\(bundle.target)">\(printable(bundle.name))</a></th>\
      <td class="number">\(Words.size(bundle.bytes))</td><td>\(Words.time(bundle.date, now: frame.now))</td>\
      <td>\(bundle.isEncrypted ? HTML.tag("encrypted", .good) : HTML.tag("not encrypted", .warn))</td></tr>
      """
    }
    return .panel(
      "Written",
      .table(
        "Bundles that were written",
        head: """
          <th scope="col">Bundle</th><th scope="col" class="number">Size</th><th scope="col">When</th><th scope="col">Who can read it</th>
          """, rows))
  }

  private func sent(_ listing: Outbox.Listing, _ frame: PageFrame) -> HTML {
    guard !listing.entries.isEmpty || !listing.unreadable.isEmpty else { return .empty }
    let rows = listing.entries.map { entry -> HTML in
      """
      <tr><th scope="row" class="wrap">\(printable(entry.name))</th><td>\(OutboxWords.tag(entry))</td>\
      <td class="wrap">\(printable(entry.endpoint))</td><td>\(OutboxWords.outcome(entry, now: frame.now))</td>\
      <td>\(OutboxWords.actions(entry, frame))</td></tr>
      """
    }
    let broken: HTML =
      listing.unreadable.isEmpty
      ? .empty
      : .note(
        .warn, "<p>\(Words.counted(listing.unreadable.count, "entry", "entries")) of the outbox cannot be read.</p>")
    return .panel(
      "Outbox",
      .table(
        "The outbox",
        head: """
          <th scope="col">Bundle</th><th scope="col">State</th><th scope="col">To</th><th scope="col">What came of it</th>\
          <th scope="col"><span class="visually-hidden">Actions</span></th>
          """, rows) + broken)
  }
}

enum OutboxWords {
  static func tag(_ entry: OutboxEntry) -> HTML {
    switch entry.state {
    case .waiting: .tag("waiting", .warn)
    case .sending: .tag("being sent", .accent)
    case .sent: .tag("sent", .good)
    case .failed: .tag("failed", .bad)
    case .cancelled: .tag("taken back")
    }
  }

  /// The receipt, or the progress and any obstacle.
  static func outcome(_ entry: OutboxEntry, now: Timestamp) -> HTML {
    if let receipt = entry.receipt {
      return "<code>\(printable(receipt.id))</code>, \(Words.time(receipt.date, now: now))"
    }
    var words = entry.offset > 0 ? "\(Words.size(entry.offset)) of \(Words.size(entry.bytes)) are there" : ""
    if let error = entry.lastError { words += (words.isEmpty ? "" : "; ") + "last: \(printable(error))" }
    return HTML(escaping: words)
  }

  static func actions(_ entry: OutboxEntry, _ frame: PageFrame) -> HTML {
    guard frame.allowsActions, !entry.isOver, entry.state != .sending else { return .empty }
    let place = RequestTarget.to("outbox", entry.id)
    return """
      <div class="row no-print">\(frame.button("Try again", place.appending("retry")))\
      \(frame.button("Take back", place.appending("cancel")))</div>
      """
  }
}
