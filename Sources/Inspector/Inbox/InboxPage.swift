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
    matching = filter.words.isEmpty && filter.sender == nil ? filter.state.map { counts[$0] ?? 0 } ?? total : nil
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
    <div class="head"><div><h1>\(title)</h1><p class="soft">What was sent here: \(counted(total, "bundle")), \
    \(readableSize(used)) of \(readableSize(limits.totalBytes)). \
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
    let sender: HTML = filter.sender.map { "<input type=\"hidden\" name=\"sender\" value=\"\($0)\">" } ?? .empty
    let state: HTML =
      "<label><span>State</span><select name=\"state\"><option value=\"\">Any</option>\(options)</select></label>"
    return .search(.to("inbox"), filter.words, behind: sender + state)
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
    let count: HTML = matching.map { "<span class=\"soft\"> \(grouped($0))</span>" } ?? .empty
    let sender: HTML =
      filter.sender.map { sender in
        "<p>From \(printable(sender)) alone. <a href=\"\(RequestTarget.to("inbox"))\">All bundles</a></p>"
      } ?? .empty
    return "<section><h2>Bundles\(count)</h2>\(sender)\(list)\(pager.html)</section>"
  }

  private var uploadsTable: HTML {
    guard !uploads.isEmpty else { return .empty }
    let rows = uploads.map { upload -> HTML in
      .row(
        "\(printable(upload.fileName ?? "A bundle"))", .cell("\(printable(upload.sender))"), .size(upload.offset),
        .size(upload.length))
    }
    return .panel(
      "On their way in", .table("On their way in", ["File", "Sender", .number("Here"), .number("In all")], rows))
  }

  private var sendersTable: HTML {
    guard !senders.isEmpty else { return .empty }
    let more = HTML.when(hasMoreSenders, "<p><a href=\"\(RequestTarget.to("inbox", "senders"))\">All senders</a></p>")
    return .panel("Senders", InboxSendersPage.table(senders) + more)
  }
}

/// A pager that keeps the list's filter in its links.
struct InboxPager: Sendable {
  static let parameter = "_next"

  static let field = DocumentedRoute.Field(parameter, "The token of the page, as the page before gave it.")

  let list: RequestTarget

  let token: String?

  let next: String?

  /// The first items of a list that was read one further, and the pager to the others.
  static func cut<Item>(
    _ found: [Item], at most: Int, of list: RequestTarget, token: String?, key: (Item) -> String
  ) -> ([Item], InboxPager) {
    let next = found.count > most ? key(found[most - 1]) : nil
    return (Array(found.prefix(most)), InboxPager(list: list, token: token, next: next))
  }

  var target: RequestTarget? { next.map { list.appending(query: list.query.items + [.init(Self.parameter, $0)]) } }

  var html: HTML {
    guard token != nil || next != nil else { return .empty }
    return .pager(first: token == nil ? nil : list, next: target, "Next page")
  }

  var members: JSON.Object { ["next": JSON.orNull(next), "nextPath": target?.twin] }

  /// - Throws: 400 for an invalid token.
  static func key(_ request: Request) throws(Refusal) -> InboxKey? { try token(request) { InboxKey($0) } }

  /// Parses the last name or identifier of the page before.
  ///
  /// - Throws: 400 for control characters, which names never contain.
  static func name(_ request: Request) throws(Refusal) -> String? {
    try token(request) { text in text.utf8.allSatisfy { $0 >= 32 && $0 != 127 } ? text : nil }
  }

  /// Parses the last number of the page before.
  ///
  /// - Throws: 400 for an invalid token.
  static func number(_ request: Request) throws(Refusal) -> Int64? { try token(request) { Int64($0) } }

  private static func token<Value>(_ request: Request, _ read: (String) -> Value?) throws(Refusal) -> Value? {
    guard let text = request.query[parameter] else { return nil }
    guard let value = read(text) else { throw Refusal(.badRequest, "that is no token of a page") }
    return value
  }
}

extension InboxFilter {
  /// - Throws: 400 for an unknown state.
  init(_ request: Request) throws(Refusal) {
    let text = request.query["state"] ?? ""
    let state = InboxBundle.State(rawValue: text)
    guard state != nil || text.isEmpty else { throw Refusal(.badRequest, "there is no such state") }
    let sender = request.query["sender"] ?? ""
    self.init(words: request.query["q"] ?? "", state: state, sender: sender.isEmpty ? nil : sender)
  }

  var items: [Query.Item] {
    [
      words.isEmpty ? nil : Query.Item("q", words), state.map { Query.Item("state", $0.rawValue) },
      sender.map { Query.Item("sender", $0) },
    ].compactMap(\.self)
  }
}

/// The list of damage seen, latest first.
struct InboxGroupsPage: InboxSubpage {
  let groups: [InboxGroupSummary]
  let pager: InboxPager

  private static let maximum = 50

  init(_ inbox: Inbox, after key: InboxKey?) throws {
    let list = try inbox.records.groups(after: key, limit: Self.maximum)
    groups = list.items.map { InboxGroupSummary(group: $0) }
    pager = InboxPager(list: .to("inbox", "groups"), token: key?.text, next: list.next?.text)
  }

  var title: String { "Similar damage" }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode(["groups": groups])
  }

  func content(_ frame: PageFrame) -> HTML {
    let list: HTML =
      groups.isEmpty
      ? "<p class=\"soft\">There is none here.</p>" : "<ul class=\"stores\">\(groups.map { $0.item(frame) })</ul>"
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">What was seen, the latest first.</p></div></div>
      \(list)\(pager.html)
      """
  }
}

/// The list of permitted senders by name.
struct InboxSendersPage: InboxSubpage {
  let senders: [InboxSenderUsage]
  let pager: InboxPager

  private static let maximum = 100

  init(_ inbox: Inbox, after name: String?) throws {
    let found = try inbox.records.senders(after: name, limit: Self.maximum + 1)
    (senders, pager) = InboxPager.cut(
      found, at: Self.maximum, of: .to("inbox", "senders"), token: name, key: \.sender.name)
  }

  var title: String { "Senders" }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode(["senders": senders.map { JSON.Object($0.sender, ["used": $0.used]) }])
  }

  func content(_ frame: PageFrame) -> HTML {
    let list: HTML = senders.isEmpty ? "<p class=\"soft\">There is none here.</p>" : InboxSendersPage.table(senders)
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">By name, with what is kept of each.</p></div></div>
      <section class="panel">\(list)\(pager.html)</section>
      """
  }

  static func table(_ senders: [InboxSenderUsage]) -> HTML {
    let rows = senders.map { item -> HTML in
      let sender = item.sender
      let state: HTML = sender.revoked == nil ? .tag("may send", .good) : .tag("revoked", .warn)
      return .row(
        "<a href=\"\(RequestTarget.bundles(of: sender.name))\">\(printable(sender.name))</a>", wraps: true,
        .cell(state), .size(item.used), .size(sender.quota), .cell("\(Words.date(sender.created))"))
    }
    return .table("Senders", ["Name", "Token", .number("Used"), .number("Quota"), "Since"], rows)
  }
}

/// The list of worker jobs in one state, latest bundles first.
struct InboxJobsPage: InboxSubpage {
  let state: InboxJob.State
  let jobs: [InboxJob]
  let counts: [InboxJob.State: Int]

  let hindrances: [BlockedJobs]
  let pager: InboxPager

  private static let maximum = 100

  init(_ inbox: Inbox, state: InboxJob.State, after id: Int64?) throws {
    self.state = state
    let found = try inbox.queue.jobs(in: state, after: id, limit: Self.maximum + 1)
    (jobs, pager) = InboxPager.cut(found, at: Self.maximum, of: .jobs(state), token: id.map(String.init)) {
      String($0.id)
    }
    counts = try inbox.queue.counts()
    hindrances = try BlockedJobs.all(of: inbox)
  }

  var title: String { "Jobs" }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode([
      "state": state.rawValue,
      "counts": Dictionary(uniqueKeysWithValues: InboxJob.State.allCases.map { ($0.rawValue, counts[$0] ?? 0) }),
      "hindrances": Dictionary(uniqueKeysWithValues: hindrances.map { ($0.code, $0.count) }),
      "jobs": jobs.map {
        JSON.Object(InboxSummary.payload($0), ["bundle": $0.bundle, "location": RequestTarget.bundle($0.bundle)])
      },
    ])
  }

  private var hindered: HTML {
    guard !hindrances.isEmpty else { return .empty }
    let items = hindrances.map { item -> HTML in "<li>\(counted(item.count, "job")) <code>\(item.code)</code></li>" }
    return .note(
      .warn,
      """
      <p>Some jobs wait for what is in their way. It is no fault of their bundles, and they go on by themselves once it is gone.</p>\
      <ul class="plain-words">\(items)</ul>
      """)
  }

  func content(_ frame: PageFrame) -> HTML {
    let tabs = HTML.tabs(
      "States",
      InboxJob.State.allCases.map { (.numbered(InboxWords.choice($0), counts[$0] ?? 0), .jobs($0), $0 == state) })
    let rows = jobs.map { job -> HTML in
      let reason: HTML = job.code.map { "\(printable(job.words ?? "")) <code>\(printable($0))</code>" } ?? .empty
      return .row(
        "<a href=\"\(RequestTarget.bundle(job.bundle))\">\(job.bundle.prefix(8))</a>",
        .cell("\(InboxWords.job(job.kind))"), .number(Int64(job.attempts)),
        .cell(Words.time(job.date, now: frame.now)), .cell(reason, "wrap"))
    }
    let list: HTML =
      rows.isEmpty
      ? "<p class=\"soft\">There is none here.</p>"
      : .table("Jobs", ["Bundle", "Work", .number("Tries"), "Since", "Reason"], rows)
    return """
      <div data-events="\(frame.events)" data-inbox>
      <div class="head"><div><h1>\(title)</h1><p class="soft">What workers do with bundles. “Try again” on the page of its \
      bundle begins a job again that has failed; a failed salvage is begun again, too, when its bundle was opened anew.</p></div></div>
      \(hindered)\(tabs)
      <section class="panel">\(list)\(pager.html)</section>
      </div>
      """
  }
}

extension RequestTarget {
  static func bundles(of sender: String) -> RequestTarget { .to("inbox", query: [.init("sender", sender)]) }

  static func jobs(_ state: InboxJob.State) -> RequestTarget {
    .to("inbox", "jobs", query: [.init("state", state.rawValue)])
  }
}

/// An environmental reason why jobs wait.
struct BlockedJobs: Sendable, Hashable {
  let code: String

  let count: Int

  private static let maximum = 20

  /// Replaces invalid codes, since a worker has read hostile bytes.
  private static let other = "other"

  static func all(of inbox: Inbox) throws(InboxError) -> [BlockedJobs] {
    let found = try inbox.queue.hindrances(limit: maximum)
    let told = Dictionary(found.map { (isWord($0.key) ? $0.key : other, $0.value) }) { $0 + $1 }
    return told.map { BlockedJobs(code: $0.key, count: $0.value) }.sorted { ($1.count, $0.code) < ($0.count, $1.code) }
  }

  private static func isWord(_ code: String) -> Bool {
    (1...60).contains(code.utf8.count)
      && code.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || byte == UInt8(ascii: "-")
      }
  }
}
