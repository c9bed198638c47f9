import Backup
import HTTPServer
import Lazaret
import PersistentStore
import Platform
import Salvage

/// A store in a few words: what the list says of it, and the head of its own page.
struct StoreSummary: Sendable, Encodable {
  let store: ListedStore

  /// The examination of a live store; nil for any other, and while it goes on.
  let examination: PagePart<Examination>?

  /// How the sizes of a quarantined store's files are, compared with its receipt; nil for any other, and without a receipt.
  let evidence: PagePart<EvidenceCheck?>?

  /// A live store is looked at; any other tells by its receipt or manifest.
  ///
  /// - Parameter end: when the page no longer waits for that; nil to wait however long it takes.
  init(_ store: ListedStore, _ parts: InspectorParts, by end: ContinuousClock.Instant? = nil) {
    self.store = store
    if case .live(let files) = store.kind {
      examination = if let end { parts.examined(files, by: end) } else { parts.examined(files).examination }
    } else {
      examination = nil
    }
    evidence = Self.evidence(of: store)
  }

  /// Compares the sizes of a quarantined store's files with its receipt; no content is read.
  private static func evidence(of store: ListedStore) -> PagePart<EvidenceCheck?>? {
    guard case .quarantined(let stored, let folder) = store.kind, stored.receipt != nil else { return nil }
    return PagePart { try folder.check(evidenceOf: stored, .size) }
  }

  /// What the comparison of a quarantined store's files with its receipt found; nil where nothing was compared.
  var check: EvidenceCheck? { evidence?.value ?? nil }

  /// Whether it is a live store that is still being looked at.
  var isChecking: Bool {
    guard case .live = store.kind else { return false }
    return examination == nil
  }

  /// Why it is here, in plain words.
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

  /// The version of the model that it was written with, or the identifiers in its metadata.
  var model: String? {
    switch store.kind {
    case .quarantined(let stored, _):
      stored.receipt?.model.flatMap { $0.version ?? $0.identifiers.first }.map(printable)
    case .live: examination?.value?.modelVersion.map(printable)
    case .backup(let backup, _):
      backup.manifest?.model.flatMap { $0.version ?? $0.identifiers.first }.map(printable)
    }
  }

  /// Its state in a word, with the tone of it.
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

  /// That its files are not as they were quarantined, in a few words; nil where nothing was found, and where its state says it.
  private var change: String? {
    if store.isMissing { return nil }
    if evidence?.problem != nil { return "its files could not be compared" }
    return check?.differences.isEmpty == false ? "its files have changed" : nil
  }

  /// Whether a text is found in its names or words, whatever the case of its letters.
  func matches(_ text: String) -> Bool {
    let text = text.lowercased()
    let words = [store.name, store.id.text, why, model ?? "", state.words, change ?? ""]
    return text.isEmpty || words.contains { $0.lowercased().contains(text) }
  }

  /// Writes the summary for programs.
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

  /// The store as an item of the list.
  func item(_ frame: PageFrame) -> HTML {
    let time: HTML = store.date.map { "<span>\(Words.time($0, now: frame.now))</span>" } ?? .empty
    let version: HTML = model.map { "<span>Model \($0)</span>" } ?? .empty
    let job = frame.running.first { $0.store == store.id && $0.isRunning }
    return """
      <li><div><h2><a href="\(RequestTarget.store(store.id))">\(store.name)</a></h2>\
      <p class="why">\(why)</p><p class="meta">\(time)<span>\(Words.size(store.bytes))</span>\(version)</p>\
      \(job?.html(frame) ?? .empty)</div><div>\(account)</div></li>
      """
  }

  /// Its state, and whether its files have changed, as tags.
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
  /// Why it was taken, in words.
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

  /// Its state in words, with the tone of it.
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
