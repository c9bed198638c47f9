import HTTPServer
import Inbox
import StoreCoordination
import SupportBundle

/// A bundle in a few words, as lists have it.
struct InboxSummary: Sendable {
  let bundle: InboxBundle
  let jobs: [InboxJob]

  init(_ bundle: InboxBundle, _ inbox: Inbox) throws {
    self.bundle = bundle
    jobs = try inbox.queue.jobs(of: bundle.id)
  }

  /// The bundle as an item of a list.
  func item(_ frame: PageFrame) -> HTML {
    let state = InboxWords.state(bundle)
    let version: HTML =
      bundle.facts?.versions.app.map { "<span>Version \(printable($0))</span>" } ?? .empty
    let level: HTML = bundle.level.map { "<span>level \(printable($0))</span>" } ?? .empty
    let running = jobs.first { $0.state == .running || $0.state == .waiting }
    let work: HTML =
      running.map { job in
        let told = InboxWords.state(job)
        return "<p>\(HTML.tag("\(InboxWords.job(job.kind)): \(told.words)", told.tone))</p>"
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

  /// The bundle for programs.
  var json: JSONText {
    .members(
      ("id", .string(bundle.id)), ("sender", .string(bundle.sender)), ("date", .string(bundle.date)),
      ("sha256", .string(bundle.sha256)), ("bytes", .integer(bundle.bytes)),
      ("fileName", bundle.fileName.map { .string($0) }), ("encrypted", .boolean(bundle.isEncrypted)),
      ("state", .string(bundle.state.rawValue)), ("failure", bundle.failure.map { JSONText(encoding: $0) }),
      ("level", bundle.level.map { .string($0) }), ("app", bundle.app.map { .string($0) }),
      ("store", bundle.store.map { .string($0) }),
      ("appVersion", bundle.facts?.versions.app.map { .string($0) }),
      ("group", bundle.fingerprint.map { .string($0.group) }), ("exact", bundle.fingerprint.map { .string($0.exact) }),
      ("jobs", .array(jobs.map(Self.json))), ("location", .string(RequestTarget.bundle(bundle.id).path)))
  }

  private static func json(_ job: InboxJob) -> JSONText {
    .members(
      ("kind", .string(job.kind.rawValue)), ("state", .string(job.state.rawValue)),
      ("attempts", .integer(Int64(job.attempts))), ("date", .string(job.date)), ("code", job.code.map { .string($0) }),
      ("words", job.words.map { .string($0) }))
  }
}

/// A damage in a few words, as lists have it.
struct InboxGroupSummary: Sendable {
  let group: InboxGroup

  /// The damage as an item of a list.
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

  /// The damage for programs.
  var json: JSONText {
    [
      "id": .string(group.id), "words": .string(group.words), "count": .integer(group.count),
      "first": .string(group.first), "last": .string(group.last), "bundles": .integer(group.bundlesKept),
      "versions": .array(
        group.versions.map { version in
          .members(("version", version.version.map { .string($0) }), ("count", .integer(version.count)))
        }), "fingerprint": JSONText(encoding: group.fingerprint),
      "location": .string(RequestTarget.damage(group.id).path),
    ]
  }
}
