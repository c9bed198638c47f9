import HTTPServer
import Lazaret
import Platform

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
      let current: HTML = section == page.section ? " aria-current=\"page\"" : ""
      return "<a href=\"\(section.target)\"\(current)>\(section.title)</a>\n"
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
