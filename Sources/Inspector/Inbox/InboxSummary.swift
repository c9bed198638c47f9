import HTTPServer
import Inbox
import Lazaret
import Platform
import SupportBundle

struct InboxSummary: Sendable, Encodable {
  let bundle: InboxBundle
  let jobs: [InboxJob]

  init(_ entry: InboxEntry) {
    bundle = entry.bundle
    jobs = entry.jobs
  }

  func item(_ frame: PageFrame) -> HTML {
    let state = InboxWords.state(bundle)
    let version: HTML =
      bundle.facts?.versions.app.map { "<span>Version \(printable($0))</span>" } ?? .empty
    let level: HTML = bundle.level.map { "<span>level \(printable($0))</span>" } ?? .empty
    let running = jobs.first { $0.state == .running || $0.state == .waiting }
    let work: HTML =
      running.map { job in
        let told = InboxWords.state(job)
        let reason: HTML = job.isHindered ? job.code.map { " <code>\(printable($0))</code>" } ?? .empty : .empty
        return "<p>\(HTML.tag("\(InboxWords.job(job.kind)): \(told.words)", told.tone))\(reason)</p>"
      } ?? .empty
    let failed: HTML =
      jobs.contains { $0.state == .failed && $0.kind == .salvage }
      ? "<p>\(HTML.tag("salvage failed", .bad))</p>" : .empty
    return """
      <li><div><h3><a href="\(RequestTarget.bundle(bundle.id))">\(InboxWords.title(bundle))</a></h3>\
      <p class="why">\(InboxWords.about(bundle))</p>\
      <p class="meta"><span>\(Words.time(bundle.date, now: frame.now))</span><span>from \(printable(bundle.sender))</span>\
      <span>\(Words.size(bundle.bytes))</span>\(level)\(version)</p></div>\
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
