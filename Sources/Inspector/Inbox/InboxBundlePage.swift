import HTTPServer
import Inbox
import Lazaret
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage
import SupportBundle

/// One bundle: its damage, content, sender and history.
struct InboxBundlePage: InboxSubpage {
  let bundle: InboxBundle
  let summary: InboxSummary
  let group: InboxGroup?
  let store: PagePart<ListedStore?>

  init(_ entry: InboxEntry, _ inbox: Inbox, _ parts: InspectorParts) throws {
    let bundle = entry.bundle
    self.bundle = bundle
    summary = InboxSummary(entry: entry)
    group = try bundle.fingerprint.flatMap { try inbox.records.group($0.group) }
    store = PagePart {
      guard let name = bundle.quarantineID else { return nil }
      // Nil if released or discarded since.
      return try parts.catalogue.arrived(in: bundle.id).first { $0.quarantined?.id == name }
    }
  }

  var title: String { InboxWords.title(bundle) }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "bundle": summary, "facts": bundle.facts, "files": bundle.files, "fileCount": bundle.fileCount,
      "account": bundle.account, "group": group.map { InboxGroupSummary(group: $0) },
      "quarantined": listed.map { RequestTarget.store($0.id) }, "error": store.problem,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let state = InboxWords.state(bundle)
    let seen: HTML = group.map { "<a href=\"\(RequestTarget.damage($0.id))\">\(printable($0.words))</a>" } ?? .empty
    return """
      <div data-events="\(frame.events)" data-inbox>
      <div class="head"><div><h1>\(title)</h1><p>\(HTML.tag(state.words, state.tone)) \(seen)</p></div>\(actions(frame))</div>
      \(why)
      \(columns(frame))
      </div>
      """
  }

  /// The content, if opened, and the upload's data.
  private func columns(_ frame: PageFrame) -> HTML {
    let content = damage + entities + files
    if content == .empty { return "<div class=\"columns\"><div>\(arrival(frame))</div><div>\(work(frame))</div></div>" }
    return "<div class=\"columns\"><div>\(content)</div><div>\(work(frame))\(arrival(frame))\(facts)</div></div>"
  }

  private var listed: ListedStore? { store.value.flatMap { $0 } }

  private var why: HTML {
    let text = InboxWords.about(bundle)
    switch bundle.state {
    case .refused:
      return .note(
        .bad, "<p><strong>It was refused.</strong> \(text) <code>\(printable(bundle.failure?.code ?? ""))</code></p>")
    case .encrypted: return .note(.warn, "<p>\(text)</p>")
    case .received: return .note(.plain, "<p>\(text)</p>")
    case .unpacked, .quarantined: return .note(.bad, "<p><strong>What its sender's app found.</strong> \(text)</p>")
    }
  }

  private func actions(_ frame: PageFrame) -> HTML {
    let open = listed.map { HTML.button("Open the store", .store($0.id), isMain: true) } ?? .empty
    let download = HTML.button("Download", .bundle(bundle.id, "download"))
    guard frame.allowsActions else { return .actions(open, download) }
    let hasFailed = bundle.state == .refused || summary.jobs.contains { $0.state == .failed }
    return .actions(
      open, download, .when(hasFailed, .button("Try again …", .bundle(bundle.id, "retry"))),
      .button("Discard …", .bundle(bundle.id, "discard")))
  }

  private var damage: HTML {
    let counts = bundle.facts?.pageStates ?? [:]
    let causes = (bundle.account?.causes ?? []).map(printable)
    let likely: HTML = causes.isEmpty ? .empty : .panel("What most likely happened", .sentences(causes))
    guard !counts.isEmpty || bundle.account?.runs.isEmpty == false else { return likely }
    return HTML.panel("Pages", "\(map)\(InboxWords.bar(counts))\(InboxWords.legend(counts))") + likely
  }

  /// The map of the bundle's report, unless its store is here.
  private var map: HTML {
    guard listed == nil, let runs = bundle.account?.runs, !runs.isEmpty else { return .empty }
    return InboxPageMap(runs: runs).html
  }

  private var entities: HTML {
    guard listed == nil, let entities = bundle.account?.entities, !entities.isEmpty else { return .empty }
    let rows = entities.map { entity -> HTML in
      .row(
        "\(printable(entity.name))", .cell(.bar(entity.count)), .number(entity.recovered),
        .number(entity.doubtful, tone: .warn),
        .cell("\(entity.count.lostNumber)", entity.lost > 0 ? "number bad" : "number soft"))
    }
    let words: HTML = bundle.account?.words.map { words -> HTML in "<p>\(printable(words))</p>" } ?? .empty
    return .panel(
      "What the sender salvaged",
      words
        + .table(
          "Entities", ["Entity", .unnamed("Share"), .number("Recovered"), .number("Doubtful"), .number("Lost")], rows))
  }

  private var files: HTML {
    guard !bundle.files.isEmpty else { return .empty }
    let rows = bundle.files.map { HTML.row("\(printable($0.name))", wraps: true, .size($0.bytes)) }
    let more: HTML =
      bundle.fileCount > bundle.files.count
      ? "<p class=\"soft\">And \(grouped(bundle.fileCount - bundle.files.count)) more.</p>" : .empty
    return .panel("Files", HTML.table("Files", ["File", .number("Size")], rows) + more)
  }

  private func work(_ frame: PageFrame) -> HTML {
    guard !summary.jobs.isEmpty else { return .empty }
    let items = summary.jobs.map { job -> HTML in
      let state = InboxWords.state(job)
      let tries: HTML = job.attempts > 1 ? "<span class=\"soft\"> · \(job.attempts) tries</span>" : .empty
      let words: HTML =
        job.code.map { "<p class=\"soft\">\(printable(job.words ?? "")) <code>\(printable($0))</code></p>" } ?? .empty
      return """
        <li>\(InboxWords.job(job.kind)) \(HTML.tag(state.words, state.tone))\(tries)\
        <p class="soft">\(Words.time(job.date, now: frame.now))</p>\(words)</li>
        """
    }
    return .panel("Work", "<ul class=\"plain-words\">\(items)</ul>")
  }

  private func arrival(_ frame: PageFrame) -> HTML {
    .panel(
      "Arrival",
      HTML.facts([
        ("Received", Words.time(bundle.date, now: frame.now)),
        ("From", "<a href=\"\(RequestTarget.bundles(of: bundle.sender))\">\(printable(bundle.sender))</a>"),
        ("File", bundle.fileName.map { "\(printable($0))" }), ("Size", "\(readableSize(bundle.bytes))"),
        ("Encrypted", bundle.isEncrypted ? "yes" : "no"), ("Level", bundle.level.map { "\(printable($0))" }),
        ("Identifier", "<code>\(bundle.id)</code>"), ("SHA-256", "<code class=\"sum\">\(bundle.sha256)</code>"),
      ]))
  }

  private var facts: HTML {
    guard let facts = bundle.facts else { return .empty }
    let tables = facts.damagedTables.map(printable).joined(separator: ", ")
    let fingerprint: HTML? = bundle.fingerprint.map { mark in
      "<a href=\"\(RequestTarget.damage(mark.group))\"><code>\(mark.group)</code></a>"
    }
    return .panel(
      "What it says",
      HTML.facts([
        ("App", facts.app.map { "\(printable($0))" }), ("Version", facts.versions.app.map { "\(printable($0))" }),
        ("Store", "\(printable(facts.store))"), ("Size", "\(readableSize(max(0, facts.bytes)))"),
        ("Found", "\(printable(facts.verdict))"), ("Reason", "<code>\(printable(facts.reason))</code>"),
        ("Cause", facts.cause.map { "<code>\(printable($0))</code>" }),
        ("Model", (facts.modelVersion ?? facts.modelChecksum).map { HTML(escaping: printable($0)) }),
        ("Written by", facts.versions.storeWrittenBySQLite.map { "SQLite \(printable($0))" }),
        ("System", "\(printable(facts.versions.operatingSystem))"), ("Made", "\(printable(facts.date))"),
        ("Damaged", facts.damagedTables.isEmpty ? nil : "\(tables)"), ("Fingerprint", fingerprint),
      ]))
  }
}

struct InboxSummary: Sendable, Encodable {
  let entry: InboxEntry

  var bundle: InboxBundle { entry.bundle }
  var jobs: [InboxJob] { entry.jobs }

  func item(_ frame: PageFrame) -> HTML {
    let state = InboxWords.state(bundle)
    let version: HTML = bundle.facts?.versions.app.map { "<span>Version \(printable($0))</span>" } ?? .empty
    let level: HTML = bundle.level.map { "<span>level \(printable($0))</span>" } ?? .empty
    let running = jobs.first { $0.state == .running || $0.state == .waiting }
    let work: HTML =
      running.map { job in
        let told = InboxWords.state(job)
        let reason: HTML = job.isHindered ? job.code.map { " <code>\(printable($0))</code>" } ?? .empty : .empty
        return "<p>\(HTML.tag("\(InboxWords.job(job.kind)): \(told.words)", told.tone))\(reason)</p>"
      } ?? .empty
    let failed = HTML.when(
      jobs.contains { $0.state == .failed && $0.kind == .salvage }, "<p>\(HTML.tag("salvage failed", .bad))</p>")
    return """
      <li><div><h3><a href="\(RequestTarget.bundle(bundle.id))">\(InboxWords.title(bundle))</a></h3>\
      <p class="why">\(InboxWords.about(bundle))</p>\
      <p class="meta"><span>\(Words.time(bundle.date, now: frame.now))</span><span>from \(printable(bundle.sender))</span>\
      <span>\(readableSize(bundle.bytes))</span>\(level)\(version)</p></div>\
      <div>\(InboxWords.bar(bundle.facts?.pageStates ?? [:]))<p>\(HTML.tag(state.words, state.tone))</p>\(work)\(failed)</div></li>
      """
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "id": bundle.id, "sender": bundle.sender, "date": bundle.date, "sha256": bundle.sha256, "bytes": bundle.bytes,
      "fileName": bundle.fileName, "encrypted": bundle.isEncrypted, "state": bundle.state, "failure": bundle.failure,
      "level": bundle.level, "app": bundle.app, "store": bundle.store, "appVersion": bundle.facts?.versions.app,
      "group": bundle.fingerprint?.group, "exact": bundle.fingerprint?.exact, "jobs": jobs.map(Self.payload),
      "location": RequestTarget.bundle(bundle.id),
    ])
  }

  static func payload(_ job: InboxJob) -> JSON.Object {
    [
      "kind": job.kind.rawValue, "state": job.state.rawValue, "attempts": job.attempts, "date": job.date,
      "code": job.code, "words": job.words, "hindered": job.isHindered,
    ]
  }
}

struct InboxPageMap: Sendable {
  let runs: [BundleAccount.Run]

  var html: HTML {
    let all = runs.reduce(0.0) { $0 + Double(max(0, $1.count)) }
    guard all > 0 else { return .empty }
    let share = max(1, all / Double(PageMapDrawing.maximumCells))
    var cells: [PageStates.State] = []
    for run in runs {
      let state = PageStates.State(rawValue: run.state) ?? .unplaced
      // Keeps a single damaged page visible.
      let count = max(1, Int((Double(max(0, run.count)) / share).rounded()))
      cells += Array(repeating: state, count: min(count, PageMapDrawing.maximumCells))
      if cells.count > 2 * PageMapDrawing.maximumCells { break }
    }
    let drawing = PageStates.drawing(of: cells.map { PageStates.Cell(state: $0) }, label: "Map of the pages")
    return "<div class=\"map\"><div class=\"map-still\">\(drawing)</div></div>"
  }
}
