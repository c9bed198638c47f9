internal import HTTPServer
import Lazaret
internal import Platform
internal import Salvage

/// The document around every page.
struct Layout {
  let page: any InspectorPage
  let frame: PageFrame

  /// The digest of the page's JSON; nil if it doesn't age.
  var digest: String?

  var document: HTML {
    """
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>\(page.title) · Lazaret</title>
    <link rel="icon" href="/public/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/public/lazaret.css">
    \(scripts)
    </head>
    <body\(live)>
    <a class="skip" href="#content">Skip to the content</a>
    <header class="top"><div class="top-inner">
    <a class="brand" href="\(RequestTarget.to("stores"))">\(Self.mark)<span>Lazaret</span></a>
    \(navigation)
    <div class="push">\(running)<button class="plain" data-theme-choice hidden></button></div>
    </div></header>
    <main id="content" tabindex="-1">
    \(breadcrumbs)
    \(page.content(frame))
    </main>
    <footer class="bottom"><div>\(footer)</div></footer>
    </body>
    </html>
    """
  }

  private var live: HTML {
    guard hasSession else { return .empty }
    var twin = frame.target.twin
    twin.query = frame.target.query
    let fresh: HTML = page.mayAge ? " data-fresh=\"\(twin)\"" : ""
    let made: HTML = digest.map { digest -> HTML in " data-digest=\"\(digest)\"" } ?? .empty
    return " data-live=\"\(frame.events)\" data-endings=\"\(String(frame.endings))\"\(fresh)\(made)"
  }

  private var hasSession: Bool { frame.formToken != nil }

  private var scripts: HTML {
    (["theme.js", "keys.js", "live.js", "page-map.js"] + page.scripts).reduce(into: HTML.empty) { html, name in
      html += "<script type=\"module\" src=\"\(RequestTarget.to("public", name))\"></script>\n"
    }
  }

  private var navigation: HTML {
    guard hasSession else { return .empty }
    let links = PageSection.allCases.filter { $0 != .inbox || frame.hasInbox }.map { section -> HTML in
      .link(HTML(escaping: section.title), section.target, isCurrent: section == page.section)
    }
    return "<nav aria-label=\"Main\">\(links)</nav>"
  }

  private var running: HTML {
    let count = frame.running.count { $0.isRunning }
    guard hasSession, count > 0 else { return .empty }
    return "<a class=\"tag accent\" href=\"\(RequestTarget.to("work"))\">\(count) running</a>"
  }

  private var breadcrumbs: HTML {
    guard !page.crumbs.isEmpty else { return .empty }
    let items = page.crumbs.map { crumb -> HTML in "<li><a href=\"\(crumb.target)\">\(crumb.title)</a></li>" }
    return "<nav class=\"crumbs\" aria-label=\"Breadcrumbs\"><ol>\(items)</ol></nav>"
  }

  private var footer: HTML {
    guard hasSession else { return "<span>Lazaret \(LibraryVersion.current)</span>" }
    let mode: HTML = frame.allowsActions ? .empty : "<span>Looking only: no actions are offered</span>"
    return """
      <span>Lazaret \(LibraryVersion.current)</span><span>Home: <code>\(frame.home)</code></span>\(mode)\
      <a href="\(frame.target.twin)">This page as JSON</a><button class="plain" data-keys hidden>Keys</button>\
      <a href="\(RequestTarget.to("session"))">Log out</a>
      """
  }

  private static let mark: HTML = """
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linejoin="round" \
    stroke-linecap="round" aria-hidden="true"><path d="M3 15h18l-2.5 5h-13z"/><path d="M12 15V3l6 8h-6"/>\
    <path d="M9 15V7l-4 8"/></svg>
    """
}

extension HTML {
  enum Tone: String, Sendable {
    case plain = ""
    case good, warn, bad, accent
  }

  /// The content where a condition holds.
  static func when(_ condition: Bool, _ content: @autoclosure () -> HTML) -> HTML { condition ? content() : .empty }

  /// A link that looks like a button.
  static func button(_ words: String, _ target: RequestTarget, isMain: Bool = false) -> HTML {
    "<a class=\"button\(isMain ? " main" : "")\" href=\"\(target)\">\(words)</a>"
  }

  static func actions(_ links: HTML...) -> HTML { "<nav class=\"row no-print\" aria-label=\"Actions\">\(links)</nav>" }

  /// A table's row, with its heading.
  static func row(_ heading: HTML, wraps: Bool = false, _ cells: HTML...) -> HTML {
    "<tr><th scope=\"row\"\(when(wraps, " class=\"wrap\""))>\(heading)</th>\(cells)</tr>"
  }

  static func cell(_ content: HTML, _ style: HTML? = nil) -> HTML {
    style.map { "<td class=\"\($0)\">\(content)</td>" } ?? "<td>\(content)</td>"
  }

  static func tag(_ words: String, _ tone: Tone = .plain) -> HTML {
    "<span class=\"tag \(tone.rawValue)\">\(words)</span>"
  }

  static func note(_ tone: Tone = .plain, _ content: HTML) -> HTML {
    "<div class=\"note \(tone.rawValue)\">\(content)</div>"
  }

  /// Links to pages of one subject; the current one is marked.
  static func tabs(
    _ label: String, style: HTML = "tabs", _ links: [(words: HTML, target: RequestTarget, isCurrent: Bool)]
  ) -> HTML {
    "<nav class=\"\(style)\" aria-label=\"\(label)\">\(links.map { link($0, $1, isCurrent: $2) })</nav>"
  }

  /// The words of a tab with a number.
  static func numbered(_ words: String, _ number: Int) -> HTML {
    "\(words) <span class=\"soft\">\(grouped(number))</span>"
  }

  /// One of the choices in a list of chips.
  static func choice(_ words: HTML, _ target: RequestTarget, isCurrent: Bool) -> HTML {
    let (style, mark): (HTML, HTML) = isCurrent ? ("tag accent", " aria-current=\"true\"") : ("tag", "")
    return "<li><a class=\"\(style)\" href=\"\(target)\"\(mark)>\(words)</a></li>"
  }

  static func link(_ words: HTML, _ target: RequestTarget, isCurrent: Bool) -> HTML {
    let mark: HTML = isCurrent ? " aria-current=\"page\"" : ""
    return "<a href=\"\(target)\"\(mark)>\(words)</a>\n"
  }

  /// The links to a list's first and next page.
  ///
  /// - Parameters:
  ///   - first: nil on the first page.
  ///   - next: nil on the last page.
  ///   - end: what stands in place of the next page.
  static func pager(
    first: RequestTarget?, next: RequestTarget?, _ words: String, end: String = "That was the last page."
  ) -> HTML {
    let first: HTML = first.map { "<a class=\"button\" href=\"\($0)\">First page</a>" } ?? "<span></span>"
    let next: HTML =
      next.map { "<a class=\"button main\" rel=\"next\" href=\"\($0)\">\(words)</a>" }
      ?? "<span class=\"soft\">\(end)</span>"
    return "<nav class=\"pager\" aria-label=\"Pages\">\(first)\(next)</nav>"
  }

  /// A form that looks for words.
  ///
  /// - Parameters:
  ///   - before: fields before the words.
  ///   - behind: fields behind them.
  static func search(
    _ target: RequestTarget, _ words: String, label: String = "Search", before: [HTML] = [], behind: HTML = .empty
  ) -> HTML {
    """
    <form class="row" role="search" method="get" action="\(target)">\(before)<label><span>\(label)</span>\
    <input type="search" name="q" value="\(words)" autocomplete="off"></label>\(behind)<button>Find</button></form>
    """
  }

  static func option(_ value: String, _ label: String, isChosen: Bool = false) -> HTML {
    let chosen: HTML = isChosen ? " selected" : ""
    return "<option value=\"\(value)\"\(chosen)>\(label)</option>"
  }

  static func sentences(_ sentences: [String]) -> HTML {
    "<ul class=\"plain-words\">\(sentences.map { words -> HTML in "<li>\(words)</li>" })</ul>"
  }

  /// A list under a heading, unless it is empty.
  static func list(_ heading: String, _ items: [HTML]) -> HTML {
    when(!items.isEmpty, "<h3>\(heading)</h3><ul>\(items.map { item -> HTML in "<li>\(item)</li>" })</ul>")
  }

  static func panel(_ heading: String, _ content: HTML) -> HTML {
    "<section class=\"panel\"><h2>\(heading)</h2>\(content)</section>"
  }

  /// Named facts; unknown ones are omitted.
  static func facts(_ facts: [(String, HTML?)]) -> HTML {
    let rows = facts.compactMap { name, value in value.map { value -> HTML in "<dt>\(name)</dt><dd>\(value)</dd>" } }
    return "<dl class=\"facts\">\(rows)</dl>"
  }

  /// A table that scrolls sideways, also by keyboard.
  static func table(_ caption: String, _ columns: [TableColumn], _ rows: some Sequence<HTML>) -> HTML {
    grid(caption, columns, rows, table: "<table><caption class=\"visually-hidden\">\(caption)</caption>")
  }

  /// Such a table without a caption.
  static func grid(
    _ label: String, _ columns: [TableColumn], _ rows: some Sequence<HTML>, table: HTML = "<table>"
  ) -> HTML {
    """
    <div class="scroll" tabindex="0" role="region" aria-label="\(label)">\(table)<thead><tr>\(columns.map(\.head))</tr>\
    </thead><tbody>\(rows)</tbody></table></div>
    """
  }

  /// A table of records.
  static func records(_ label: String, _ columns: [TableColumn], _ rows: some Sequence<HTML>) -> HTML {
    grid(label, columns, rows, table: "<table class=\"records\">")
  }

  static func size(_ bytes: Int64) -> HTML { cell("\(readableSize(bytes))", "number") }

  /// A number in a table: a dash if unknown, faint if zero.
  static func number(_ number: Int64?, tone: Tone = .plain) -> HTML {
    guard let number else { return "<td class=\"number soft\">–</td>" }
    guard number != 0 else { return "<td class=\"number soft\">0</td>" }
    return "<td class=\"number \(tone.rawValue)\">\(grouped(number))</td>"
  }

  /// A number with a link; a dash for none.
  static func number(_ number: Int64, at target: RequestTarget) -> HTML {
    number > 0 ? cell("<a href=\"\(target)\">\(grouped(number))</a>", "number") : "<td class=\"number soft\">–</td>"
  }

  /// A bar of recovered, doubtful, set-aside and lost records.
  static func bar(_ count: RecoveryCount, setAside: Int64 = 0) -> HTML {
    let doubtful = min(max(0, count.doubtful), count.recovered)
    let parts: [(style: HTML, count: Int64)] = [
      ("good", count.recovered - doubtful), ("warn", doubtful), ("aside", max(0, setAside)), ("bad", count.lost),
    ]
    let all = max(1, parts.reduce(0.0) { $0 + Double($1.count) })
    var start = 0
    var shapes = HTML.empty
    for (place, part) in parts.enumerated() where part.count > 0 {
      let others = parts[(place + 1)...].count { $0.count > 0 }
      let most = 1000 - start - 8 * others
      let width = others == 0 ? most : min(max(8, Int(Double(part.count) / all * 1000)), max(8, most))
      guard width > 0 else { continue }
      shapes += "<rect class=\"\(part.style)\" x=\"\(start)\" width=\"\(width)\" height=\"8\"/>"
      start += width
    }
    var words =
      "\(grouped(count.recovered)) recovered, \(grouped(count.doubtful)) of them doubtful, \(count.lostNumber) lost"
    if setAside > 0 { words += ", \(grouped(setAside)) set aside" }
    return """
      <svg class="share" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label="\(words)">\
      <rect class="rest" width="1000" height="8"/>\(shapes)</svg>
      """
  }

  /// The bar's parts; zero ones are omitted, except recovered.
  static func barKey(_ count: RecoveryCount, recovered word: String, setAside: Int64 = 0) -> HTML {
    let doubtful = min(max(0, count.doubtful), count.recovered)
    var items: [HTML] = []
    func add(_ style: HTML, _ number: String, _ word: String) {
      items.append("<li><span class=\"swatch part-\(style)\" aria-hidden=\"true\"></span>\(word) <b>\(number)</b></li>")
    }
    add("good", grouped(count.recovered - doubtful), word)
    if doubtful > 0 { add("warn", grouped(doubtful), "doubtful") }
    if setAside > 0 { add("aside", grouped(setAside), "set aside") }
    if count.lost > 0 || count.hasUnknown { add("bad", count.lostNumber, "lost") }
    return "<ul class=\"legend\">\(items)</ul>"
  }
}

/// A table's column, by default of text.
struct TableColumn: ExpressibleByStringLiteral {
  let head: HTML

  init(head: HTML) { self.head = head }

  init(_ name: String) { head = "<th scope=\"col\">\(name)</th>" }

  init(stringLiteral name: String) { self.init(name) }

  static func number(_ name: String) -> TableColumn {
    TableColumn(head: "<th scope=\"col\" class=\"number\">\(name)</th>")
  }

  /// A column whose name is only read aloud.
  static func unnamed(_ name: String) -> TableColumn {
    TableColumn(head: "<th scope=\"col\"><span class=\"visually-hidden\">\(name)</span></th>")
  }
}
