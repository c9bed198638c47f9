import HTTPServer
import Inbox
import Platform

/// Confirms salvaging bundles of similar damage again.
///
/// Viewing it starts no salvage.
struct InboxBatchFormPage: InspectorPage {
  let group: InboxGroup

  /// The bundles last salvaged by an earlier version.
  let count: Int

  init(_ group: InboxGroup, _ inbox: Inbox) throws {
    self.group = group
    count = try inbox.records.salvagedEarlier(of: group.id, than: LibraryVersion.current)
  }

  var title: String { "Salvage again" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox, Crumb("Damage \(group.id)", .damage(group.id))] }

  private var target: RequestTarget { .damage(group.id).appending("salvage") }
  private var does: [String] {
    [
      "Salvages the stores of \(Words.counted(count, "bundle")) of this damage again, with version \(LibraryVersion.current).",
      "These are the bundles whose last result is of an earlier version, or of one that is not known.",
      "Not a byte of the stores changes, and earlier results stay. The best is the one to install.",
    ]
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "title": title, "group": group.id, "count": count, "version": LibraryVersion.current, "does": does,
      "action": target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let back: HTML = "<a class=\"button\" href=\"\(RequestTarget.damage(group.id))\">Cancel</a>"
    let ask =
      frame.allowsActions && count == 0
      ? .note(.plain, "<p>No store here has a last result of an earlier version.</p>") + back
      : frame.confirmation(target, "<p class=\"row\"><button class=\"main\">Salvage again</button>\(back)</p>")
    return """
      <h1>\(title)</h1><p class="soft">\(InboxWords.about(group.fingerprint))</p>
      \(HTML.panel("What this does", .sentences(does) + ask))
      """
  }
}

/// A batch of salvages: progress, improvements, and regressions.
struct InboxBatchPage: InspectorPage {
  let batch: SalvageBatch
  let change: SalvageChange?
  let items: [SalvageBatchItem]
  let pager: InboxPager

  private static let maximum = 100

  init(_ batch: SalvageBatch, _ inbox: Inbox, change: SalvageChange?, after bundle: String?) throws {
    self.batch = batch
    self.change = change
    let found = try inbox.records.items(of: batch.number, change: change, after: bundle, limit: Self.maximum + 1)
    items = Array(found.prefix(Self.maximum))
    pager = InboxPager(
      list: .batch(batch.number, change), token: bundle,
      next: found.count > items.count ? items.last?.bundle : nil)
  }

  var title: String { "Batch \(batch.number)" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox, Crumb("Damage \(batch.group)", .damage(batch.group))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["batch": batch, "items": items])
    try pager.members.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div data-events="\(frame.events)" data-inbox>
    <div class="head"><div><h1>Salvaged again with version \(batch.version)</h1>
    <p>\(state) <span class="soft">\(Words.time(batch.date, now: frame.now))</span></p></div></div>
    \(sums)
    <nav class="tabs" aria-label="What changed">\(tabs)</nav>
    <section class="panel">\(list)\(pager.html)</section>
    </div>
    """
  }

  private var state: HTML {
    let ended = batch.total - batch.remaining
    let tag: HTML =
      batch.isOver
      ? .tag("over", .good) : .tag("\(Words.number(ended)) of \(Words.number(batch.total))", .accent)
    let failed: HTML = batch.failed > 0 ? .tag("\(Words.counted(batch.failed, "salvage")) failed", .bad) : .empty
    let unknown: HTML =
      batch.unknown > 0 ? .tag("nothing is known of \(Words.number(batch.unknown))", .warn) : .empty
    return "\(tag) \(failed) \(unknown)"
  }

  /// Records before and after; more lost or fewer recovered is bad.
  private var sums: HTML {
    func row(_ name: String, _ before: Int64, _ after: Int64, isGood: Bool) -> HTML {
      let difference = after - before
      let tone = difference == 0 ? "soft" : (difference > 0) == isGood ? "good" : "bad"
      let sign = difference > 0 ? "+" : difference < 0 ? "−" : ""
      return """
        <tr><th scope="row">\(name)</th>\(HTML.number(before))\(HTML.number(after))\
        <td class="number \(tone)">\(sign)\(Words.number(difference.magnitude))</td></tr>
        """
    }
    let compared = batch.done - (batch.changes[.first] ?? 0)
    let rows = [
      row("Recovered", batch.before.recovered, batch.after.recovered, isGood: true),
      row("Of these doubtful", batch.before.doubtful, batch.after.doubtful, isGood: false),
      row("Lost", batch.before.lost, batch.after.lost, isGood: false),
    ]
    return .panel(
      "Records",
      """
      <p class="soft">Of \(Words.counted(compared, "store")) with an earlier result to compare with.</p>
      """
        + .table("Records", [.unnamed("What"), .number("Before"), .number("Now"), .number("Change")], rows))
  }

  private var tabs: [HTML] {
    ([nil] + SalvageChange.allCases.map(Optional.some)).map { choice -> HTML in
      let current: HTML = choice == change ? " aria-current=\"page\"" : ""
      let count = choice.map { batch.changes[$0] ?? 0 } ?? batch.total
      return """
        <a href="\(RequestTarget.batch(batch.number, choice))"\(current)>\(choice?.title ?? "All") \
        <span class="soft">\(Words.number(count))</span></a>
        """
    }
  }

  private var list: HTML {
    let rows = items.map { item -> HTML in
      let tag: HTML = item.change.map { .tag($0.title, $0.tone) } ?? .tag("not done", .plain)
      func cells(_ count: SalvageCount?) -> HTML {
        "\(HTML.number(count?.recovered))\(HTML.number(count?.doubtful, tone: .warn))\(HTML.number(count?.lost, tone: .bad))"
      }
      return """
        <tr><th scope="row"><a href="\(RequestTarget.bundle(item.bundle))">\(item.bundle.prefix(8))</a></th><td>\(tag)</td>\
        \(cells(item.before))\(cells(item.after))</tr>
        """
    }
    guard !rows.isEmpty else { return "<p class=\"soft\">There is none here.</p>" }
    let names = ["Recovered before", "doubtful", "lost", "Recovered now", "doubtful", "lost"]
    return .table("Bundles", ["Bundle", "Change"] + names.map { .number($0) }, rows)
  }
}

extension SalvageChange {
  fileprivate var title: String {
    switch self {
    case .worse: "worse"
    case .mixed: "mixed"
    case .better: "better"
    case .same: "the same"
    case .first: "no earlier result"
    }
  }

  fileprivate var tone: HTML.Tone {
    switch self {
    case .worse: .bad
    case .mixed: .warn
    case .better: .good
    case .same, .first: .plain
    }
  }
}

extension RequestTarget {
  static func batch(_ number: Int64, _ change: SalvageChange? = nil) -> RequestTarget {
    .to("inbox", "batches", String(number), query: change.map { [.init("change", $0.rawValue)] } ?? [])
  }
}
