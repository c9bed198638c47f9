import HTTPServer
import Inbox
import Platform
import Salvage

/// Similar damage: description, frequency, bundles.
struct InboxGroupPage: InspectorPage {
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
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

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
    let facts = HTML.facts([
      ("App", fingerprint.app.map { HTML(escaping: printable($0)) }),
      ("Found", HTML(escaping: printable(fingerprint.verdict))),
      ("Pages", states.isEmpty ? nil : "<ul class=\"legend\">\(states)</ul>"),
      (
        "Entities",
        fingerprint.entities.isEmpty
          ? nil : HTML(escaping: fingerprint.entities.map(printable).joined(separator: ", "))
      ),
      ("Model", fingerprint.model.map { HTML(escaping: printable($0)) }),
      ("Written by", fingerprint.sqlite.map { "SQLite \(printable($0))" }),
      ("First seen", Words.time(group.first, now: frame.now)), ("Last seen", Words.time(group.last, now: frame.now)),
    ])
    let further = group.furtherCount > 0 ? [("further ones", group.furtherCount)] : []
    let rows = (group.versions.map { ($0.version ?? "not known", $0.count) } + further).map { version, count -> HTML in
      "<tr><th scope=\"row\">\(printable(version))</th>\(HTML.number(count))</tr>"
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
      <div class="columns"><div><section><h2>Bundles<span class="soft"> \(Words.number(group.bundlesKept))</span></h2>\
      \(list)\(pager.html)</section></div>
      <div>\(HTML.panel("What it is", facts))\(HTML.panel("Versions", versions))\(batchList(frame))\(relatedList(frame))</div></div>
      </div>
      """
  }

  private func actions(_ frame: PageFrame) -> HTML {
    guard frame.allowsActions else { return .empty }
    let target = RequestTarget.damage(group.id).appending("salvage")
    return """
      <nav class="row no-print" aria-label="Actions"><a class="button" href="\(target)">Salvage again with this version \
      …</a></nav>
      """
  }

  private func batchList(_ frame: PageFrame) -> HTML {
    guard !batches.isEmpty else { return .empty }
    let items = batches.map { batch -> HTML in
      """
      <li><a href="\(RequestTarget.batch(batch.number))">\(Words.counted(batch.total, "bundle")) with version \
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
      <div><p class="share-number"><b>\(Words.number(group.count))</b><span class="soft">\(group.count == 1 ? "store" : "stores")</span></p></div></li>
      """
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": group.id, "words": group.words, "count": group.count, "first": group.first, "last": group.last,
      "bundles": group.bundlesKept,
      "versions": group.versions.map { version -> JSON.Object in
        ["version": version.version, "count": version.count]
      },
      "furtherVersions": group.furtherCount, "fingerprint": group.fingerprint,
      "location": RequestTarget.damage(group.id),
    ])
  }
}
