import HTTPServer
import Inbox
import Platform

/// A pager that keeps the list's filter in its links.
struct InboxPager: Sendable {
  static let parameter = "_next"

  static let field = DocumentedRoute.Field(parameter, "The token of the page, as the page before gave it.")

  let list: RequestTarget

  let token: String?

  let next: String?

  var target: RequestTarget? {
    next.map { list.appending(query: list.query.items + [.init(Self.parameter, $0)]) }
  }

  var html: HTML {
    guard token != nil || next != nil else { return .empty }
    return .pager(first: token == nil ? nil : list, next: target, "Next page")
  }

  var members: JSON.Object { ["next": JSON.orNull(next), "nextPath": target?.twin] }

  /// - Throws: 400 for an invalid token.
  static func key(_ request: Request) throws(Refusal) -> InboxKey? {
    guard let text = request.query[parameter] else { return nil }
    guard let key = InboxKey(text) else { throw Refusal(.badRequest, "that is no token of a page") }
    return key
  }

  /// Parses the last name or identifier of the page before.
  ///
  /// - Throws: 400 for control characters, which names never contain.
  static func name(_ request: Request) throws(Refusal) -> String? {
    guard let text = request.query[parameter] else { return nil }
    guard text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else {
      throw Refusal(.badRequest, "that is no token of a page")
    }
    return text
  }

  /// Parses the last number of the page before.
  ///
  /// - Throws: 400 for an invalid token.
  static func number(_ request: Request) throws(Refusal) -> Int64? {
    guard let text = request.query[parameter] else { return nil }
    guard let number = Int64(text) else { throw Refusal(.badRequest, "that is no token of a page") }
    return number
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
struct InboxGroupsPage: InspectorPage {
  let groups: [InboxGroupSummary]
  let pager: InboxPager

  private static let maximum = 50

  init(_ inbox: Inbox, after key: InboxKey?) throws {
    let list = try inbox.records.groups(after: key, limit: Self.maximum)
    groups = list.items.map { InboxGroupSummary(group: $0) }
    pager = InboxPager(list: .to("inbox", "groups"), token: key?.text, next: list.next?.text)
  }

  var title: String { "Similar damage" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

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
struct InboxSendersPage: InspectorPage {
  let senders: [InboxSenderUsage]
  let pager: InboxPager

  private static let maximum = 100

  init(_ inbox: Inbox, after name: String?) throws {
    let found = try inbox.records.senders(after: name, limit: Self.maximum + 1)
    senders = Array(found.prefix(Self.maximum))
    pager = InboxPager(
      list: .to("inbox", "senders"), token: name,
      next: found.count > senders.count ? senders.last?.sender.name : nil)
  }

  var title: String { "Senders" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode(["senders": senders.map { JSON.Object($0.sender, ["used": $0.used]) }])
  }

  func content(_ frame: PageFrame) -> HTML {
    let list: HTML =
      senders.isEmpty ? "<p class=\"soft\">There is none here.</p>" : InboxSendersTable(senders: senders).html
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">By name, with what is kept of each.</p></div></div>
      <section class="panel">\(list)\(pager.html)</section>
      """
  }
}

struct InboxSendersTable: Sendable {
  let senders: [InboxSenderUsage]

  var html: HTML {
    let rows = senders.map { item -> HTML in
      let sender = item.sender
      let state: HTML = sender.revoked == nil ? .tag("may send", .good) : .tag("revoked", .warn)
      return """
        <tr><th scope="row" class="wrap"><a href="\(RequestTarget.bundles(of: sender.name))">\(printable(sender.name))</a></th>\
        <td>\(state)</td><td class="number">\(Words.size(item.used))</td>\
        <td class="number">\(Words.size(sender.quota))</td><td>\(Words.date(sender.created))</td></tr>
        """
    }
    return .table("Senders", ["Name", "Token", .number("Used"), .number("Quota"), "Since"], rows)
  }
}

/// The list of worker jobs in one state, latest bundles first.
struct InboxJobsPage: InspectorPage {
  let state: InboxJob.State
  let jobs: [InboxJob]
  let counts: [InboxJob.State: Int]

  let hindrances: [BlockedJobs]
  let pager: InboxPager

  private static let maximum = 100

  init(_ inbox: Inbox, state: InboxJob.State, after id: Int64?) throws {
    self.state = state
    let found = try inbox.queue.jobs(in: state, after: id, limit: Self.maximum + 1)
    jobs = Array(found.prefix(Self.maximum))
    counts = try inbox.queue.counts()
    hindrances = try BlockedJobs.all(of: inbox)
    pager = InboxPager(
      list: .jobs(state), token: id.map { String($0) },
      next: found.count > jobs.count ? jobs.last.map { String($0.id) } : nil)
  }

  var title: String { "Jobs" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode([
      "state": state.rawValue,
      "counts": Dictionary(
        uniqueKeysWithValues: InboxJob.State.allCases.map { ($0.rawValue, counts[$0] ?? 0) }),
      "hindrances": Dictionary(uniqueKeysWithValues: hindrances.map { ($0.code, $0.count) }),
      "jobs": jobs.map {
        JSON.Object(InboxSummary.payload($0), ["bundle": $0.bundle, "location": RequestTarget.bundle($0.bundle)])
      },
    ])
  }

  private var hindered: HTML {
    guard !hindrances.isEmpty else { return .empty }
    let items = hindrances.map { item -> HTML in
      "<li>\(Words.counted(item.count, "job")) <code>\(item.code)</code></li>"
    }
    return .note(
      .warn,
      """
      <p>Some jobs wait for what is in their way. It is no fault of their bundles, and they go on by themselves once it is gone.</p>\
      <ul class="plain-words">\(items)</ul>
      """)
  }

  func content(_ frame: PageFrame) -> HTML {
    let tabs = InboxJob.State.allCases.map { choice -> HTML in
      let current: HTML = choice == state ? " aria-current=\"page\"" : ""
      return """
        <a href="\(RequestTarget.jobs(choice))"\(current)>\(InboxWords.choice(choice)) \
        <span class="soft">\(Words.number(counts[choice] ?? 0))</span></a>
        """
    }
    let rows = jobs.map { job -> HTML in
      let reason: HTML =
        job.code.map { "\(printable(job.words ?? "")) <code>\(printable($0))</code>" } ?? .empty
      return """
        <tr><th scope="row"><a href="\(RequestTarget.bundle(job.bundle))">\(job.bundle.prefix(8))</a></th>\
        <td>\(InboxWords.job(job.kind))</td>\(HTML.number(Int64(job.attempts)))\
        <td>\(Words.time(job.date, now: frame.now))</td><td class="wrap">\(reason)</td></tr>
        """
    }
    let list: HTML =
      rows.isEmpty
      ? "<p class=\"soft\">There is none here.</p>"
      : .table("Jobs", ["Bundle", "Work", .number("Tries"), "Since", "Reason"], rows)
    return """
      <div data-events="\(frame.events)" data-inbox>
      <div class="head"><div><h1>\(title)</h1><p class="soft">What workers do with bundles. “Try again” on the page of its \
      bundle begins a job again that has failed; a failed salvage is begun again, too, when its bundle was opened anew.</p></div></div>
      \(hindered)<nav class="tabs" aria-label="States">\(tabs)</nav>
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
    return told.map { BlockedJobs(code: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
  }

  private static func isWord(_ code: String) -> Bool {
    (1...60).contains(code.utf8.count)
      && code.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || byte == UInt8(ascii: "-")
      }
  }
}
