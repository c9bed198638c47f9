import Backup
import HTTPServer
import Lazaret
import PersistentStore
import Platform
import Salvage

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
      \(HTML.search(.to("stores"), filter))</div>
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
      let more = HTML.when(
        stores.count > Self.maximumShown,
        "<p class=\"soft\">\(counted(stores.count - Self.maximumShown, "more")); search to find them.</p>")
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

/// A store's summary, for lists and its page.
struct StoreSummary: Sendable, Encodable {
  let store: ListedStore

  /// A live store's examination, if complete.
  let examination: PagePart<Examination>?

  /// The comparison of file sizes with the receipt.
  let evidence: PagePart<EvidenceCheck?>?

  /// Examines a live store; others are described by receipt or manifest.
  ///
  /// - Parameter end: the examination's deadline.
  init(_ store: ListedStore, _ parts: InspectorParts, by end: ContinuousClock.Instant? = nil) {
    self.store = store
    if case .live(let files) = store.kind {
      examination = if let end { parts.examined(files, by: end) } else { parts.examined(files).examination }
    } else {
      examination = nil
    }
    evidence = Self.evidence(of: store)
  }

  /// Compares file sizes with the receipt without reading contents.
  private static func evidence(of store: ListedStore) -> PagePart<EvidenceCheck?>? {
    guard case .quarantined(let stored, let folder) = store.kind, stored.receipt != nil else { return nil }
    return PagePart { try folder.check(evidenceOf: stored, .size) }
  }

  /// The comparison's result.
  var check: EvidenceCheck? { evidence?.value ?? nil }

  var isChecking: Bool {
    guard case .live = store.kind else { return false }
    return examination == nil
  }

  /// The reason it is here, in plain words.
  var why: String {
    switch store.kind {
    case .quarantined(let stored, _):
      printable(stored.receipt?.reason.words ?? "Its receipt is missing or cannot be read; the store itself is here.")
    case .live:
      isChecking
        ? "Every page of it is being checked." : examination?.value?.reason.words ?? examination?.problem?.detail ?? ""
    case .backup(let backup, _):
      if let problem = backup.problems.first { sentence(printable(problem.words)) } else { backup.reasonWords }
    }
  }

  /// The version of its model, or the identifiers in its metadata.
  var model: String? {
    switch store.kind {
    case .quarantined(let stored, _):
      stored.receipt?.model.flatMap { $0.version ?? $0.identifiers.first }.map(printable)
    case .live: examination?.value?.modelVersion.map(printable)
    case .backup(let backup, _): backup.manifest?.model.flatMap { $0.version ?? $0.identifiers.first }.map(printable)
    }
  }

  var state: (words: String, tone: HTML.Tone) {
    switch store.kind {
    case .quarantined where store.isMissing: ("its files are missing", .bad)
    case .quarantined(let stored, _): Self.state(of: stored.receipt?.salvage)
    case .live where isChecking: ("being checked", .accent)
    case .live:
      switch examination?.value?.verdict {
      case .compatible: ("sound", .good)
      case .repairable: ("repairable", .warn)
      case .outdated: ("older version", .warn)
      case .incompatible: ("incompatible", .warn)
      case .damaged: ("damaged", .bad)
      case .unavailable: ("unavailable", .warn)
      case .missing, nil: ("unknown", .warn)
      }
    case .backup(let backup, _): backup.stateWords
    }
  }

  static func state(of salvage: Receipt.Salvage?) -> (words: String, tone: HTML.Tone) {
    switch salvage?.state {
    case nil: ("not salvaged", .plain)
    case .pending: ("waits for its salvage", .accent)
    case .failed where salvage?.result != nil: ("salvaged, but the app cannot open it", .bad)
    case .failed: ("nothing could be salvaged", .bad)
    case .salvaged where salvage?.result?.isUsable == false: ("salvaged, but the app cannot open it", .warn)
    case .salvaged: (salvage?.result?.isComplete == true ? "salvaged whole" : "salvaged", .good)
    case .installed: ("installed", .good)
    }
  }

  /// A note on changed files, unless the state says so.
  private var change: String? {
    if store.isMissing { return nil }
    if evidence?.problem != nil { return "its files could not be compared" }
    return check?.differences.isEmpty == false ? "its files have changed" : nil
  }

  /// Whether its names or words contain a text, ignoring case.
  func matches(_ text: String) -> Bool {
    let text = text.lowercased()
    let words = [store.name, store.id.text, why, model ?? "", state.words, change ?? ""]
    return text.isEmpty || words.contains { $0.lowercased().contains(text) }
  }

  func encode(to encoder: any Encoder) throws {
    let kind =
      switch store.kind {
      case .quarantined: "quarantined"
      case .live: "live"
      case .backup: "backup"
      }
    let result = store.quarantined?.receipt?.salvage?.result
    let count = result?.count
    try encoder.encode([
      "id": store.id.text, "kind": kind, "name": store.name, "date": store.date, "bytes": store.bytes, "why": why,
      "model": model, "state": state.words, "verdict": examination?.value?.verdict, "score": result?.score,
      "recovered": count?.recovered, "doubtful": count?.doubtful, "lost": count?.lost,
      "lostIsExact": count.map { !$0.isEstimate }, "total": count?.total, "percent": count?.percent,
      "recordsSetAside": count?.setAside, "pairs": count?.pairs.known, "unplacedRows": count?.unplaced,
      "evidence": store.quarantined.flatMap { stored in evidence?.map { $0?.payload(on: stored) } },
      "error": examination?.problem, "location": RequestTarget.store(store.id),
    ])
  }

  func item(_ frame: PageFrame) -> HTML {
    let time: HTML = store.date.map { "<span>\(Words.time($0, now: frame.now))</span>" } ?? .empty
    let version: HTML = model.map { "<span>Model \($0)</span>" } ?? .empty
    let job = frame.running.first { $0.store == store.id && $0.isRunning }
    return """
      <li><div><h2><a href="\(RequestTarget.store(store.id))">\(store.name)</a></h2>\
      <p class="why">\(why)</p><p class="meta">\(time)<span>\(readableSize(store.bytes))</span>\(version)</p>\
      \(job?.html(frame) ?? .empty)</div><div>\(account)</div></li>
      """
  }

  var tags: HTML {
    let state = state
    let more: HTML = change.map { " \(HTML.tag($0, .warn))" } ?? .empty
    return HTML.tag(state.words, state.tone) + more
  }

  private var account: HTML {
    guard !store.isOnlyReceipt, let count = store.quarantined?.receipt?.salvage?.result?.count else { return tags }
    let rest: HTML = count.unplacedWords.map { "<p class=\"soft\">\($0)</p>" } ?? .empty
    return """
      <p class="share-number"><b>\(count.share)</b><span class="soft">recovered</span></p>\
      \(HTML.bar(count, setAside: count.setAside))\(rest)\
      <p>\(tags)</p>
      """
  }
}

extension StoredBackup {
  var reasonWords: String {
    switch manifest?.reason {
    case .manual: "Taken on request."
    case .scheduled: "Taken by the schedule."
    case .beforeMigration: "Taken before the store was migrated or repaired."
    case .beforeRestore: "Taken before the store was replaced by a backup."
    case .beforeInstall: "Taken before the store was replaced by a salvaged or a new one."
    case nil: "It has no manifest that can be read."
    }
  }

  var stateWords: (words: String, tone: HTML.Tone) {
    if !isWhole { return ("broken", .bad) }
    if proof?.result == .failed { return ("failed its verification", .bad) }
    if isApart { return (manifest?.kind == .evidence ? "evidence" : "of a store that was not sound", .warn) }
    switch proof?.result {
    case .proven where isUnverified: return ("not verified yet", .plain)
    case .proven where proof?.lastRestored == nil: return ("read back, not verified yet", .plain)
    case .proven: return ("verified", .good)
    case .inconclusive: return ("verification inconclusive", .warn)
    case .failed, nil: return ("not verified yet", .plain)
    }
  }
}
