import HTTPServer
import Inbox
import Sending
import StoreCoordination

/// The inbox: the damage that was seen, the newest bundles, and who may send.
struct InboxPage: InspectorPage {
  let filter: String
  let state: InboxBundle.State?
  let groups: [InboxGroupSummary]
  let bundles: [InboxSummary]
  let total: Int
  let senders: [InboxSender]
  let usage: [String: Int64]
  let uploads: [InboxUpload]
  let limits: InboxLimits

  /// The most bundles, and the most groups, that are shown; the search finds the others.
  private static let maximumBundles = 100
  private static let maximumGroups = 20

  init(_ inbox: Inbox, filter: String, state: InboxBundle.State?) throws {
    let records = inbox.records
    self.filter = filter
    self.state = state
    groups = try records.groups(limit: Self.maximumGroups).map { InboxGroupSummary(group: $0) }
    bundles = try records.entries(words: filter, group: nil, state: state, limit: Self.maximumBundles)
      .map(InboxSummary.init)
    total = try records.bundleCount()
    senders = try records.senders()
    usage = try records.usage()
    uploads = try records.openUploads()
    limits = inbox.limits
  }

  var title: String { "Inbox" }
  var section: PageSection { .inbox }

  func encode(to encoder: any Encoder) throws {
    let uploads = uploads.map { upload -> JSON.Object in
      ["sender": upload.sender, "bytes": upload.length, "offset": upload.offset, "begun": upload.created]
    }
    try encoder.encode([
      "groups": groups, "bundles": bundles, "total": total,
      "senders": senders.map { JSON.Object($0, ["used": usage[$0.name] ?? 0]) }, "uploads": uploads,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div data-events="\(frame.events)" data-inbox>
    <div class="head"><div><h1>\(title)</h1><p class="soft">What was sent here: \(Words.counted(total, "bundle")), \
    \(Words.size(usage.values.reduce(0, +))) of \(Words.size(limits.totalBytes)).</p></div>
    \(search)</div>
    \(total == 0 && uploads.isEmpty ? empty : lists(frame))
    </div>
    """
  }

  private var search: HTML {
    let options = InboxBundle.State.allCases.map { choice -> HTML in
      let mark: HTML = choice == state ? " selected" : ""
      return "<option value=\"\(choice.rawValue)\"\(mark)>\(InboxWords.choice(choice))</option>"
    }
    return """
      <form class="row" role="search" method="get" action="\(RequestTarget.to("inbox"))"><label><span>Search</span>\
      <input type="search" name="q" value="\(filter)" autocomplete="off"></label>\
      <label><span>State</span><select name="state"><option value="">Any</option>\(options)</select></label>\
      <button>Find</button></form>
      """
  }

  private var empty: HTML {
    """
    <div class="empty"><h2>Nothing was sent yet</h2>
    <p>Each sender has a token of its own, which is shown once:</p>
    <pre tabindex="0">lazaret inbox token new NAME</pre>
    <p>Who has it sends a bundle to this server with <code>lazaret send</code>, or with any client of tus 1.0, to the address \
    <code>\(TusServer.path)</code>.</p></div>
    \(sendersTable)
    """
  }

  private func lists(_ frame: PageFrame) -> HTML {
    """
    <div class="columns"><div>\(bundleList(frame))</div><div>\(groupList(frame))</div></div>
    \(uploadsTable)\(sendersTable)
    """
  }

  private func groupList(_ frame: PageFrame) -> HTML {
    let list: HTML =
      groups.isEmpty
      ? "<p class=\"soft\">No bundle that was opened tells of damage yet.</p>"
      : "<ul class=\"stores narrow\">\(groups.map { $0.item(frame) })</ul>"
    return "<section><h2>Equal damage</h2>\(list)</section>"
  }

  private func bundleList(_ frame: PageFrame) -> HTML {
    let list: HTML
    if bundles.isEmpty {
      list = """
        <p class="soft">No bundle fits. <a href="\(RequestTarget.to("inbox"))">All bundles</a></p>
        """
    } else {
      let more: HTML =
        bundles.count == Self.maximumBundles
        ? "<p class=\"soft\">Only the newest \(Self.maximumBundles) are shown; search to find others.</p>" : .empty
      list = "<ul class=\"stores\">\(bundles.map { $0.item(frame) })</ul>\(more)"
    }
    return "<section><h2>Bundles<span class=\"soft\"> \(bundles.count)</span></h2>\(list)</section>"
  }

  private var uploadsTable: HTML {
    guard !uploads.isEmpty else { return .empty }
    let rows = uploads.prefix(50).map { upload -> HTML in
      """
      <tr><th scope="row">\(printable(upload.fileName ?? "A bundle"))</th><td>\(printable(upload.sender))</td>\
      <td class="number">\(Words.size(upload.offset))</td><td class="number">\(Words.size(upload.length))</td></tr>
      """
    }
    return .panel(
      "On their way in",
      .table(
        "On their way in",
        head: """
          <th scope="col">File</th><th scope="col">Sender</th><th scope="col" class="number">Here</th>\
          <th scope="col" class="number">In all</th>
          """, rows))
  }

  private var sendersTable: HTML {
    guard !senders.isEmpty else { return .empty }
    let rows = senders.map { sender -> HTML in
      let state: HTML = sender.revoked == nil ? .tag("may send", .good) : .tag("revoked", .warn)
      return """
        <tr><th scope="row" class="wrap">\(printable(sender.name))</th><td>\(state)</td>\
        <td class="number">\(Words.size(usage[sender.name] ?? 0))</td><td class="number">\(Words.size(sender.quota))</td>\
        <td>\(Words.date(sender.created))</td></tr>
        """
    }
    return .panel(
      "Senders",
      .table(
        "Senders",
        head: """
          <th scope="col">Name</th><th scope="col">Token</th><th scope="col" class="number">Used</th>\
          <th scope="col" class="number">Quota</th><th scope="col">Since</th>
          """, rows))
  }
}
