import HTTPServer
import Inbox
import StoreCoordination

/// The bundles that were removed: when, and by which rule, the latest first, page by page.
struct InboxRemovedPage: InspectorPage {
  let removals: [InboxRemoval]
  let pager: InboxPager

  /// That what was removed is not gone, as a sentence; nil where it is.
  let keeping: String?

  private static let maximum = 100

  init(_ inbox: Inbox, after number: Int64?) throws {
    let found = try inbox.records.removals(after: number, limit: Self.maximum + 1)
    removals = Array(found.prefix(Self.maximum))
    keeping = inbox.keepingWords()
    pager = InboxPager(
      list: .to("inbox", "removed"), token: number.map { String($0) },
      next: found.count > removals.count ? removals.last.map { String($0.number) } : nil)
  }

  var title: String { "Removed bundles" }
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode(["removed": removals, "keeping": JSON.orNull(keeping)])
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = removals.map { removal -> HTML in
      let damage: HTML =
        removal.group.map { "<a href=\"\(RequestTarget.damage($0))\"><code>\(printable($0))</code></a>" } ?? .empty
      return """
        <tr><th scope="row"><code>\(removal.bundle)</code></th><td>\(Words.time(removal.date, now: frame.now))</td>\
        <td>\(words(removal.rule))</td><td class="wrap">\(printable(removal.sender))</td>\
        <td>\(Words.time(removal.arrived, now: frame.now))</td><td>\(damage)</td>\
        <td class="number">\(Words.size(removal.bytes))</td></tr>
        """
    }
    let list: HTML =
      rows.isEmpty
      ? "<p class=\"soft\">No bundle was removed.</p>"
      : .table(
        "Removed bundles",
        head: """
          <th scope="col">Bundle</th><th scope="col">Removed</th><th scope="col">Rule</th><th scope="col">Sender</th>\
          <th scope="col">Arrived</th><th scope="col">Damage</th><th scope="col" class="number">Size</th>
          """, rows)
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">The rules are those of lazaret serve --inbox and \
      lazaret inbox prune.</p></div></div>
      \(keeping.map { words in HTML.note(.warn, "<p>\(words)</p>") } ?? .empty)\
      <section class="panel">\(list)\(pager.html)</section>
      """
  }

  private func words(_ rule: InboxRemoval.Rule) -> String {
    switch rule {
    case .days: "too old"
    case .last: "enough newer ones of its damage"
    case .bytes: "too many bytes in all"
    case .discarded: "discarded"
    }
  }
}
