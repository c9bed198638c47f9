import HTTPServer
import Inbox
import StoreCoordination

/// Equal damage: what it is, how often it was seen and since when, and the bundles that have it.
struct InboxGroupPage: InspectorPage {
  let group: InboxGroup
  let bundles: [InboxSummary]

  init(_ group: InboxGroup, _ inbox: Inbox) throws {
    self.group = group
    bundles = try inbox.records.entries(words: "", group: group.id, state: nil, limit: 200).map(InboxSummary.init)
  }

  var title: String { "Damage \(group.id)" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["group": InboxGroupSummary(group: group), "bundles": bundles])
  }

  func content(_ frame: PageFrame) -> HTML {
    let fingerprint = group.fingerprint
    let states = fingerprint.states.sorted { $0.key < $1.key }.map { state, share -> HTML in
      "<li><span class=\"swatch \(swatch(state))\" aria-hidden=\"true\"></span>\(printable(state)) <span class=\"soft\">\(words(share))</span></li>"
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
    let rows = group.versions.map { version -> HTML in
      "<tr><th scope=\"row\">\(printable(version.version ?? "not known"))</th>\(HTML.number(version.count))</tr>"
    }
    let versions = HTML.table(
      "Versions of the app",
      head: "<th scope=\"col\">Version</th><th scope=\"col\" class=\"number\">Stores</th>", rows)
    let list: HTML =
      bundles.isEmpty
      ? "<p class=\"soft\">Its bundles were discarded.</p>"
      : "<ul class=\"stores\">\(bundles.map { $0.item(frame) })</ul>"
    return """
      <div data-events="\(frame.events)" data-inbox>
      <div class="head"><div><h1>\(InboxWords.about(fingerprint))</h1><p>\(HTML.tag(group.words, .accent)) \
      <span class="soft">fingerprint</span> <code>\(group.id)</code></p></div></div>
      <div class="columns"><div><section><h2>Bundles<span class="soft"> \(bundles.count)</span></h2>\(list)</section></div>
      <div>\(HTML.panel("What it is", facts))\(HTML.panel("Versions", versions))</div></div>
      </div>
      """
  }

  /// The colour of a state; a bundle may name any.
  private func swatch(_ state: String) -> String { PageStates.State(rawValue: state)?.rawValue ?? "free" }

  private func words(_ share: DamageFingerprint.Share) -> String {
    switch share {
    case .one: "a single page"
    case .few: "few pages"
    case .some: "some pages"
    case .many: "many pages"
    case .most: "most pages"
    }
  }
}
