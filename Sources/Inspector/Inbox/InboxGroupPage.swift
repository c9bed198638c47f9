import HTTPServer
import Inbox
import Platform
import Salvage

/// Similar damage: description, frequency, bundles.
struct InboxGroupPage: InboxSubpage {
  let group: InboxGroup
  let bundles: [InboxSummary]
  let pager: InboxPager

  /// The latest batches that salvaged its bundles again.
  let batches: [SalvageBatch]

  /// Similar fingerprints, closest first.
  let related: [RelatedDamage]

  private static let maximumBundles = 100
  private static let maximumRelated = 10
  private static let maximumBatches = 5

  init(_ group: InboxGroup, _ inbox: Inbox, after key: InboxKey?) throws {
    self.group = group
    let list = try inbox.records.entries(InboxFilter(group: group.id), after: key, limit: Self.maximumBundles)
    bundles = list.items.map(InboxSummary.init)
    pager = InboxPager(list: .damage(group.id), token: key?.text, next: list.next?.text)
    batches = try inbox.records.batches(of: group.id, after: nil, limit: Self.maximumBatches)
    related = try inbox.records.related(to: group.fingerprint, limit: Self.maximumRelated)
  }

  var title: String { "Damage \(group.id)" }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "group": InboxGroupSummary(group: group), "bundles": bundles,
      "related": related.map { item -> JSON.Object in
        JSON.Object(
          InboxGroupSummary(group: item.group),
          ["likeness": (item.likeness * 100).rounded() / 100, "differences": item.differences])
      },
    ])
    try encoder.encode(["batches": batches.map { RequestTarget.batch($0.number) }])
    try pager.members.encode(to: encoder)
  }

  func content(_ frame: PageFrame) -> HTML {
    let fingerprint = group.fingerprint
    let states = fingerprint.states.sorted { $0.key < $1.key }.map { state, share -> HTML in
      "<li><span class=\"swatch \(swatch(state))\" aria-hidden=\"true\"></span>\(printable(state)) <span class=\"soft\">\(InboxWords.words(share, one: "a single page"))</span></li>"
    }
    let entities = fingerprint.entities.map(printable).joined(separator: ", ")
    let facts = HTML.facts([
      ("App", fingerprint.app.map { "\(printable($0))" }), ("Found", "\(printable(fingerprint.verdict))"),
      ("Pages", states.isEmpty ? nil : "<ul class=\"legend\">\(states)</ul>"),
      ("Entities", fingerprint.entities.isEmpty ? nil : "\(entities)"),
      ("Model", fingerprint.model.map { "\(printable($0))" }),
      ("Written by", fingerprint.sqlite.map { "SQLite \(printable($0))" }),
      ("First seen", Words.time(group.first, now: frame.now)), ("Last seen", Words.time(group.last, now: frame.now)),
    ])
    let further = group.furtherCount > 0 ? [("further ones", group.furtherCount)] : []
    let rows = (group.versions.map { ($0.version ?? "not known", $0.count) } + further).map { version, count in
      HTML.row("\(printable(version))", .number(count))
    }
    let versions = HTML.table("Versions of the app", ["Version", .number("Stores")], rows)
    let list: HTML =
      bundles.isEmpty && pager.token == nil
      ? "<p class=\"soft\">Its bundles were removed.</p>"
      : "<ul class=\"stores\">\(bundles.map { $0.item(frame) })</ul>"
    return """
      <div data-events="\(frame.events)" data-inbox>
      <div class="head"><div><h1>\(InboxWords.about(fingerprint))</h1><p>\(HTML.tag(group.words, .accent)) \
      <span class="soft">fingerprint</span> <code>\(group.id)</code></p></div>\(actions(frame))</div>
      <div class="columns"><div><section><h2>Bundles<span class="soft"> \(grouped(group.bundlesKept))</span></h2>\
      \(list)\(pager.html)</section></div>
      <div>\(HTML.panel("What it is", facts))\(HTML.panel("Versions", versions))\(batchList(frame))\(relatedList(frame))</div></div>
      </div>
      """
  }

  private func actions(_ frame: PageFrame) -> HTML {
    guard frame.allowsActions else { return .empty }
    let target = RequestTarget.damage(group.id).appending("salvage")
    return .actions(.button("Salvage again with this version …", target))
  }

  private func batchList(_ frame: PageFrame) -> HTML {
    guard !batches.isEmpty else { return .empty }
    let items = batches.map { batch -> HTML in
      """
      <li><a href="\(RequestTarget.batch(batch.number))">\(counted(batch.total, "bundle")) with version \
      \(batch.version)</a> <p class="soft">\(Words.time(batch.date, now: frame.now))</p></li>
      """
    }
    return .panel("Salvaged again", "<ul class=\"plain-words\">\(items)</ul>")
  }

  private func relatedList(_ frame: PageFrame) -> HTML {
    guard !related.isEmpty else { return .empty }
    let items = related.map { item -> HTML in
      """
      <li><a href="\(RequestTarget.damage(item.group.id))">\(InboxWords.about(item.group.fingerprint))</a> \
      <p class="soft">\(printable(item.group.words)); differs in \(item.differences.joined(separator: ", ")).</p></li>
      """
    }
    return .panel("Related damage", "<ul class=\"plain-words\">\(items)</ul>")
  }

  /// The colour of a state, which bundles may name freely.
  private func swatch(_ state: String) -> String { PageStates.State(rawValue: state)?.rawValue ?? "free" }
}

struct InboxGroupSummary: Sendable, Encodable {
  let group: InboxGroup

  func item(_ frame: PageFrame) -> HTML {
    let app: HTML = group.fingerprint.app.map { "<span>\(printable($0))</span>" } ?? .empty
    let words = InboxWords.states(group.fingerprint)
    let states: HTML = words.isEmpty ? .empty : "<p class=\"why\">\(words)</p>"
    return """
      <li><div><h3><a href="\(RequestTarget.damage(group.id))">\(InboxWords.about(group.fingerprint))</a></h3>\(states)\
      <p class="meta">\(app)<span>\(printable(group.words))</span><span>last \(Words.time(group.last, now: frame.now))</span></p></div>\
      <div><p class="share-number"><b>\(grouped(group.count))</b><span class="soft">\(group.count == 1 ? "store" : "stores")</span></p></div></li>
      """
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": group.id, "words": group.words, "count": group.count, "first": group.first, "last": group.last,
      "bundles": group.bundlesKept,
      "versions": group.versions.map { version -> JSON.Object in ["version": version.version, "count": version.count] },
      "furtherVersions": group.furtherCount, "fingerprint": group.fingerprint,
      "location": RequestTarget.damage(group.id),
    ])
  }
}

/// Confirms salvaging bundles of similar damage again.
///
/// Viewing it starts no salvage.
struct InboxBatchFormPage: InboxSubpage {
  let group: InboxGroup

  /// The bundles last salvaged by an earlier version.
  let count: Int

  init(_ group: InboxGroup, _ inbox: Inbox) throws {
    self.group = group
    count = try inbox.records.salvagedEarlier(of: group.id, than: LibraryVersion.current)
  }

  var title: String { "Salvage again" }
  var crumbs: [Crumb] { [.inbox, Crumb("Damage \(group.id)", .damage(group.id))] }

  private var target: RequestTarget { .damage(group.id).appending("salvage") }
  private var does: [String] {
    [
      "Salvages the stores of \(counted(count, "bundle")) of this damage again, with version \(LibraryVersion.current).",
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
    let back = RequestTarget.damage(group.id)
    let ask =
      frame.allowsActions && count == 0
      ? .note(.plain, "<p>No store here has a last result of an earlier version.</p>") + .button("Cancel", back)
      : frame.ask(target, "Salvage again", back: back)
    return frame.asking(title, "\(InboxWords.about(group.fingerprint))", does: does, ask)
  }
}

/// A batch of salvages: progress, improvements, and regressions.
struct InboxBatchPage: InboxSubpage {
  let batch: SalvageBatch
  let change: SalvageChange?
  let items: [SalvageBatchItem]
  let pager: InboxPager

  private static let maximum = 100

  init(_ batch: SalvageBatch, _ inbox: Inbox, change: SalvageChange?, after bundle: String?) throws {
    self.batch = batch
    self.change = change
    let found = try inbox.records.items(of: batch.number, change: change, after: bundle, limit: Self.maximum + 1)
    (items, pager) = InboxPager.cut(
      found, at: Self.maximum, of: .batch(batch.number, change), token: bundle, key: \.bundle)
  }

  var title: String { "Batch \(batch.number)" }
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
    \(tabs)
    <section class="panel">\(list)\(pager.html)</section>
    </div>
    """
  }

  private var state: HTML {
    let ended = batch.total - batch.remaining
    let tag: HTML = batch.isOver ? .tag("over", .good) : .tag("\(grouped(ended)) of \(grouped(batch.total))", .accent)
    let failed: HTML = batch.failed > 0 ? .tag("\(counted(batch.failed, "salvage")) failed", .bad) : .empty
    let unknown = HTML.when(batch.unknown > 0, .tag("nothing is known of \(grouped(batch.unknown))", .warn))
    return "\(tag) \(failed) \(unknown)"
  }

  /// Records before and after; more lost or fewer recovered is bad.
  private var sums: HTML {
    func row(_ name: String, _ before: Int64, _ after: Int64, isGood: Bool) -> HTML {
      let difference = after - before
      let tone = difference == 0 ? "soft" : (difference > 0) == isGood ? "good" : "bad"
      let sign = difference > 0 ? "+" : difference < 0 ? "−" : ""
      let change = HTML.cell("\(sign)\(grouped(difference.magnitude))", "number \(tone)")
      return .row("\(name)", .number(before), .number(after), change)
    }
    let compared = batch.done - (batch.changes[.first] ?? 0)
    let rows = [
      row("Recovered", batch.before.recovered, batch.after.recovered, isGood: true),
      row("Of these doubtful", batch.before.doubtful, batch.after.doubtful, isGood: false),
      row("Lost", batch.before.lost, batch.after.lost, isGood: false),
    ]
    return .panel(
      "Records",
      "<p class=\"soft\">Of \(counted(compared, "store")) with an earlier result to compare with.</p>"
        + .table("Records", [.unnamed("What"), .number("Before"), .number("Now"), .number("Change")], rows))
  }

  private var tabs: HTML {
    .tabs(
      "What changed",
      ([nil] + SalvageChange.allCases.map(Optional.some)).map { choice in
        let count = choice.map { batch.changes[$0] ?? 0 } ?? batch.total
        return (.numbered(choice?.title ?? "All", count), .batch(batch.number, choice), choice == change)
      })
  }

  private var list: HTML {
    let rows = items.map { item -> HTML in
      let tag: HTML = item.change.map { .tag($0.title, $0.tone) } ?? .tag("not done", .plain)
      func cells(_ count: SalvageCount?) -> HTML {
        "\(HTML.number(count?.recovered))\(HTML.number(count?.doubtful, tone: .warn))\(HTML.number(count?.lost, tone: .bad))"
      }
      return .row(
        "<a href=\"\(RequestTarget.bundle(item.bundle))\">\(item.bundle.prefix(8))</a>", .cell(tag), cells(item.before),
        cells(item.after))
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
