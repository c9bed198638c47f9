import HTTPServer
import Lazaret
import Platform

struct StoresPage: InspectorPage {
  let filter: String
  let quarantined: PagePart<[StoreSummary]>
  let live: PagePart<[StoreSummary]>
  let backups: PagePart<[StoreSummary]>

  /// The most stores per kind; the search finds the others.
  private static let maximumShown = 100

  static let patience = Duration.milliseconds(120)

  /// - Parameter patience: the time for examinations; nil, or any filter, waits for all.
  init(_ parts: InspectorParts, filter: String, patience: Duration? = nil) {
    self.filter = filter
    let end = filter.isEmpty ? patience.map { ContinuousClock.now + $0 } : nil
    func summaries(_ list: () throws -> [ListedStore]) throws -> [StoreSummary] {
      try list().map { StoreSummary($0, parts, by: end) }.filter { $0.matches(filter) }
    }
    quarantined = PagePart { try summaries(parts.catalogue.quarantined) }
    live = PagePart { try summaries(parts.catalogue.live) }
    backups = PagePart { try summaries(parts.catalogue.backups) }
  }

  var title: String { "Stores" }
  var mayAge: Bool { true }
  var scripts: [String] { isChecking ? ["records.js"] : [] }

  private var isChecking: Bool { live.value?.contains(where: \.isChecking) == true }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["quarantined": quarantined, "live": live, "backups": backups])
  }

  func content(_ frame: PageFrame) -> HTML {
    let isEmpty = [quarantined, live, backups].allSatisfy { $0.value?.isEmpty == true }
    // It reloads until all examinations end.
    let reload: HTML = isChecking ? " data-reload=\"1000\"" : .empty
    return """
      <div data-events="\(frame.events)"\(reload)>
      <div class="head"><div><h1>\(title)</h1><p class="soft">What lies in quarantine, what is live, and what was \
      backed up.</p></div>
      <form class="row" role="search" method="get" action="\(RequestTarget.to("stores"))"><label><span>Search</span>\
      <input type="search" name="q" value="\(filter)" autocomplete="off"></label><button>Find</button></form></div>
      \(isEmpty ? empty : sections(frame))
      </div>
      """
  }

  private func sections(_ frame: PageFrame) -> HTML {
    """
    \(section("In quarantine", quarantined, frame, nothing: """
      Nothing is in quarantine here\(filter.isEmpty ? "" : " that has these words in it"). A store that an app cannot open \
      is moved there, with all its files and unchanged, before anything else is done.
      """))
    \(section("Live stores", live, frame, style: "compact", nothing: "No store was found in the home, or beside a quarantine."))
    \(section("Backups", backups, frame, style: "compact", nothing: "No backups are kept in this home."))
    """
  }

  private func section(
    _ heading: String, _ part: PagePart<[StoreSummary]>, _ frame: PageFrame, style: String = "", nothing: String
  ) -> HTML {
    let list = part.html { stores in
      guard !stores.isEmpty else { return "<p class=\"soft\">\(nothing)</p>" }
      let more: HTML =
        stores.count > Self.maximumShown
        ? "<p class=\"soft\">\(Words.counted(stores.count - Self.maximumShown, "more")); search to find them.</p>"
        : .empty
      return "<ul class=\"stores \(style)\">\(stores.prefix(Self.maximumShown).map { $0.item(frame) })</ul>\(more)"
    }
    let count: HTML = part.value.map { "<span class=\"soft\"> \($0.count)</span>" } ?? .empty
    return "<section><h2>\(heading)\(count)</h2>\(list)</section>"
  }

  private var empty: HTML {
    if !filter.isEmpty {
      return """
        <div class="empty"><h2>No store has these words in it</h2>\
        <p><a class="button" href="\(RequestTarget.to("stores"))">All stores</a></p></div>
        """
    }
    return """
      <div class="empty"><h2>No store is here yet</h2>
      <p>When an app cannot open its store, Lazaret moves the store into quarantine, whole, and gets the records out of \
      it. Each such store is then listed here, with what happened to it and what could be saved.</p>
      <p>To look at one that is somewhere else:</p>
      <pre>lazaret quarantine add Broken.sqlite --home HOME\nlazaret serve --home HOME</pre>
      <p>Or see it with examples: <code>lazaret demo</code></p></div>
      """
  }
}
