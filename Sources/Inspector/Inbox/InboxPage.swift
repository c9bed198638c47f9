import HTTPServer
import Inbox
import Platform

/// The inbox: damage, the newest bundles, and permitted senders.
struct InboxPage: InspectorPage {
  let filter: InboxFilter
  let groups: [InboxGroupSummary]
  let hasMoreGroups: Bool
  let bundles: [InboxSummary]
  let pager: InboxPager

  let total: Int

  /// The number matching the filter; nil if not counted.
  let matching: Int?
  let senders: [InboxSenderUsage]
  let hasMoreSenders: Bool
  let used: Int64
  let uploads: [InboxUpload]
  let limits: InboxLimits

  /// The most items per kind; separate lists have the rest.
  private static let maximumBundles = 100
  private static let maximumGroups = 20
  private static let maximumSenders = 20
  private static let maximumUploads = 50

  init(_ inbox: Inbox, _ filter: InboxFilter, after key: InboxKey?) throws {
    let records = inbox.records
    self.filter = filter
    let groups = try records.groups(after: nil, limit: Self.maximumGroups)
    self.groups = groups.items.map { InboxGroupSummary(group: $0) }
    hasMoreGroups = groups.next != nil
    let list = try records.entries(filter, after: key, limit: Self.maximumBundles)
    bundles = list.items.map(InboxSummary.init)
    pager = InboxPager(list: .to("inbox", query: filter.items), token: key?.text, next: list.next?.text)
    let counts = try records.bundleCounts()
    total = counts.values.reduce(0, +)
    matching =
      filter.words.isEmpty && filter.sender == nil ? filter.state.map { counts[$0] ?? 0 } ?? total : nil
    let senders = try records.senders(after: nil, limit: Self.maximumSenders + 1)
    self.senders = Array(senders.prefix(Self.maximumSenders))
    hasMoreSenders = senders.count > Self.maximumSenders
    used = try records.usedBytes()
    uploads = try records.openUploads(limit: Self.maximumUploads)
    limits = inbox.limits
  }

  var title: String { "Inbox" }
  var section: PageSection { .inbox }

  func encode(to encoder: any Encoder) throws {
    let uploads = uploads.map { upload -> JSON.Object in
      ["sender": upload.sender, "bytes": upload.length, "offset": upload.offset, "begun": upload.created]
    }
    try encoder.encode([
      "groups": groups, "bundles": bundles, "total": total, "matching": JSON.orNull(matching), "used": used,
      "senders": senders.map { JSON.Object($0.sender, ["used": $0.used]) }, "uploads": uploads,
    ])
    try pager.members.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div data-events="\(frame.events)" data-inbox>
    <div class="head"><div><h1>\(title)</h1><p class="soft">What was sent here: \(Words.counted(total, "bundle")), \
    \(Words.size(used)) of \(Words.size(limits.totalBytes)). \
    <a href="\(RequestTarget.jobs(.failed))">Jobs</a> · <a href="\(RequestTarget.to("inbox", "removed"))">Removed</a></p></div>
    \(search)</div>
    \(total == 0 && uploads.isEmpty ? empty : lists(frame))
    </div>
    """
  }

  private var search: HTML {
    let options = InboxBundle.State.allCases.map {
      HTML.option($0.rawValue, InboxWords.choice($0), isChosen: $0 == filter.state)
    }
    let sender: HTML =
      filter.sender.map { "<input type=\"hidden\" name=\"sender\" value=\"\($0)\">" } ?? .empty
    return """
      <form class="row" role="search" method="get" action="\(RequestTarget.to("inbox"))"><label><span>Search</span>\
      <input type="search" name="q" value="\(filter.words)" autocomplete="off"></label>\(sender)\
      <label><span>State</span><select name="state"><option value="">Any</option>\(options)</select></label>\
      <button>Find</button></form>
      """
  }

  private var empty: HTML {
    """
    <div class="empty"><h2>The inbox is empty</h2>
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
    let more: HTML =
      hasMoreGroups ? "<p><a href=\"\(RequestTarget.to("inbox", "groups"))\">All damage that was seen</a></p>" : .empty
    return "<section><h2>Similar damage</h2>\(list)\(more)</section>"
  }

  private func bundleList(_ frame: PageFrame) -> HTML {
    let list: HTML
    if bundles.isEmpty {
      let found: HTML =
        if pager.next != nil {
          "No bundle fits of those that were looked at; there are earlier ones."
        } else {
          pager.token == nil ? "No bundle fits." : "No further bundle fits."
        }
      list = "<p class=\"soft\">\(found) <a href=\"\(RequestTarget.to("inbox"))\">All bundles</a></p>"
    } else {
      list = "<ul class=\"stores\">\(bundles.map { $0.item(frame) })</ul>"
    }
    let count: HTML = matching.map { "<span class=\"soft\"> \(Words.number($0))</span>" } ?? .empty
    let sender: HTML =
      filter.sender.map { sender in
        "<p>From \(printable(sender)) alone. <a href=\"\(RequestTarget.to("inbox"))\">All bundles</a></p>"
      } ?? .empty
    return "<section><h2>Bundles\(count)</h2>\(sender)\(list)\(pager.html)</section>"
  }

  private var uploadsTable: HTML {
    guard !uploads.isEmpty else { return .empty }
    let rows = uploads.map { upload -> HTML in
      """
      <tr><th scope="row">\(printable(upload.fileName ?? "A bundle"))</th><td>\(printable(upload.sender))</td>\
      <td class="number">\(Words.size(upload.offset))</td><td class="number">\(Words.size(upload.length))</td></tr>
      """
    }
    return .panel(
      "On their way in",
      .table("On their way in", ["File", "Sender", .number("Here"), .number("In all")], rows))
  }

  private var sendersTable: HTML {
    guard !senders.isEmpty else { return .empty }
    let more: HTML =
      hasMoreSenders ? "<p><a href=\"\(RequestTarget.to("inbox", "senders"))\">All senders</a></p>" : .empty
    return .panel("Senders", InboxSendersTable(senders: senders).html + more)
  }
}
