import HTTPServer
import Inbox
import Platform
import SupportBundle

extension InspectorRoutes {
  mutating func addInbox(_ inbox: Inbox, _ parts: InspectorParts) {
    page(
      "/inbox", about: "What was received: similar damage in groups, the newest bundles, and who may send.",
      query: [
        .init("q", "Only bundles that have this text in their names or words."),
        .init("state", "Only bundles that are so far: received, encrypted, refused, unpacked or quarantined."),
        .init("sender", "Only bundles of this sender."), InboxPager.field,
      ]
    ) { request in try InboxPage(inbox, InboxFilter(request), after: InboxPager.key(request)) }
    page(
      "/inbox/groups", about: "The damage that was seen, the latest first.", query: [InboxPager.field]
    ) { request in try InboxGroupsPage(inbox, after: InboxPager.key(request)) }
    page("/inbox/senders", about: "Who may send, with what is kept of each.", query: [InboxPager.field]) { request in
      try InboxSendersPage(inbox, after: InboxPager.name(request))
    }
    page(
      "/inbox/jobs", about: "The jobs of workers in one state, with the reasons of those that failed.",
      query: [
        .init("state", "Which jobs: waiting, running, done or failed; those that failed if not given."),
        InboxPager.field,
      ]
    ) { request in
      let state = try InboxJob.State(rawValue: request.query["state"] ?? InboxJob.State.failed.rawValue)
        .orRefuse(.badRequest, "there is no such state")
      return try InboxJobsPage(inbox, state: state, after: InboxPager.number(request))
    }
    page(
      "/inbox/removed", about: "The bundles that were removed: when, and by which rule.", query: [InboxPager.field]
    ) { request in try InboxRemovedPage(inbox, after: InboxPager.number(request)) }
    page(
      "/inbox/groups/{fingerprint}", about: "Similar damage: how often, since when, in which bundles.", .identifier,
      query: [InboxPager.field]
    ) { request, id in try InboxGroupPage(Self.group(id, inbox), inbox, after: InboxPager.key(request)) }
    page(
      "/inbox/groups/{fingerprint}/salvage",
      about: "Asks before: Salvages the bundles of a damage again whose last result is of an earlier version.",
      .identifier
    ) { _, id in try InboxBatchFormPage(Self.group(id, inbox), inbox) }
    action(
      "/inbox/groups/{fingerprint}/salvage",
      about: "Salvages the bundles of a damage again whose last result is of an earlier version.", .identifier
    ) { _, _, id in
      _ = try Self.group(id, inbox)
      let batch = try inbox.salvageAgain(id)
        .orRefuse(.conflict, "no store here has a last result of an earlier version")
      return .done(.batch(batch.number))
    }
    page(
      "/inbox/batches/{number}", about: "A batch of salvages: how far it is, and what got better and what worse.",
      .identifier,
      query: [.init("change", "Only bundles with this change: worse, mixed, better, same or first."), InboxPager.field]
    ) { request, text in
      guard let number = Int64(text), let batch = try inbox.records.batch(number) else {
        throw Refusal(.notFound, "there is no such batch")
      }
      let word = request.query["change"]
      let change = word.flatMap { SalvageChange(rawValue: $0) }
      guard word == nil || change != nil else { throw Refusal(.badRequest, "there is no such change") }
      return try InboxBatchPage(batch, inbox, change: change, after: InboxPager.name(request))
    }
    page("/inbox/bundles/{id}", about: "One bundle: what is in it, who sent it, what was done with it.", .upload) {
      _, id in
      guard let entry = try inbox.records.entry(id) else { throw Self.noBundle }
      return try InboxBundlePage(entry, inbox, parts)
    }
    other(
      "/inbox/bundles/{id}/download", about: "A bundle, byte for byte as it was received.",
      type: "application/octet-stream", .upload
    ) { request, id in try Self.download(try Self.bundle(id, inbox), inbox, request) }
    page("/inbox/bundles/{id}/retry", about: "Asks before: Begins again what failed with a bundle.", .upload) { _, id in
      InboxActionPage.retry(try Self.bundle(id, inbox))
    }
    action("/inbox/bundles/{id}/retry", about: "Begins again what failed with a bundle.", .upload) { _, _, id in
      try inbox.retry(id)
      return .done(.to("inbox", "bundles", id))
    }
    page(
      "/inbox/bundles/{id}/discard", about: "Asks before: Removes a bundle, and says what its storage keeps.", .upload
    ) { _, id in InboxActionPage.discard(try Self.bundle(id, inbox), keeping: inbox.keepingWords()) }
    action(
      "/inbox/bundles/{id}/discard",
      about: "Removes a bundle, with its store and what was salvaged of it; the inbox does not bring it back.", .upload,
      fields: [.init("understood", "\"yes\": that this cannot be undone is understood.", isRequired: true)]
    ) { _, form, id in
      try Refusal.unless(
        form["understood"] == "yes", .badRequest, "tick that this cannot be taken back, and nothing else is lost")
      try inbox.discard(id)
      return .done(.to("inbox"))
    }
  }

  private static func group(_ id: String, _ inbox: Inbox) throws -> InboxGroup {
    try inbox.records.group(id).orRefuse(.notFound, "no such damage was seen")
  }

  private static func bundle(_ id: String, _ inbox: Inbox) throws -> InboxBundle {
    guard let bundle = try inbox.records.bundle(id) else { throw noBundle }
    return bundle
  }

  private static let noBundle = Refusal(.notFound, "there is no such bundle")

  private static func download(_ bundle: InboxBundle, _ inbox: Inbox, _ request: Request) throws -> Response {
    let file = try inbox.surroundings.fileSystem.open(inbox.received(bundle))
    guard let tag = EntityTag(bundle.sha256) else { throw Refusal(.notFound, "the bundle has no sum") }
    let name = "\(bundle.id).lazaret.tar.gz\(bundle.isEncrypted ? ".age" : "")"
    return .ranges(FileBytes(file), tag: tag, type: "application/octet-stream", for: request).downloaded(as: name)
  }
}

struct FileBytes: RangeReadable {
  private let file: ReadableFile

  init(_ file: ReadableFile) { self.file = file }

  var count: Int64 { file.count }

  func read(at offset: Int64, length: Int) throws -> [UInt8] { try file.bytes(at: offset, length: length) }
}

/// The removed bundles with time and rule, latest first.
struct InboxRemovedPage: InboxSubpage {
  let removals: [InboxRemoval]
  let pager: InboxPager

  /// A sentence that removed bundles are retained, if so.
  let keeping: String?

  private static let maximum = 100

  init(_ inbox: Inbox, after number: Int64?) throws {
    let found = try inbox.records.removals(after: number, limit: Self.maximum + 1)
    (removals, pager) = InboxPager.cut(
      found, at: Self.maximum, of: .to("inbox", "removed"), token: number.map(String.init)
    ) { String($0.number) }
    keeping = inbox.keepingWords()
  }

  var title: String { "Removed bundles" }

  func encode(to encoder: any Encoder) throws {
    try pager.members.encode(to: encoder)
    try encoder.encode(["removed": removals, "keeping": JSON.orNull(keeping)])
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = removals.map { removal -> HTML in
      let damage: HTML =
        removal.group.map { "<a href=\"\(RequestTarget.damage($0))\"><code>\(printable($0))</code></a>" } ?? .empty
      return .row(
        "<code>\(removal.bundle)</code>", .cell(Words.time(removal.date, now: frame.now)),
        .cell("\(words(removal.rule))"), .cell("\(printable(removal.sender))", "wrap"),
        .cell(Words.time(removal.arrived, now: frame.now)), .cell(damage), .size(removal.bytes))
    }
    let list: HTML =
      rows.isEmpty
      ? "<p class=\"soft\">No bundle was removed.</p>"
      : .table("Removed bundles", ["Bundle", "Removed", "Rule", "Sender", "Arrived", "Damage", .number("Size")], rows)
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

/// Confirms an action on a bundle.
///
/// Viewing it changes no bundle.
struct InboxActionPage: InboxSubpage {
  let title: String
  let bundle: InboxBundle
  let target: RequestTarget
  let does: [String]
  let button: String
  let isFinal: Bool

  private var choices: [ActionForm.Choice] { isFinal ? [.understood] : [] }

  var crumbs: [Crumb] { [.inbox, Crumb(InboxWords.title(bundle), .bundle(bundle.id))] }

  static func retry(_ bundle: InboxBundle) -> InboxActionPage {
    InboxActionPage(
      title: "Try again", bundle: bundle, target: .bundle(bundle.id, "retry"),
      does: bundle.quarantineID == nil
        ? [
          "Checks and unpacks the bundle anew, from what was received.", "Its store, if it has one, is then salvaged.",
        ]
        : ["Salvages the store of the bundle anew. Not a byte of it changes."],
      button: "Try again", isFinal: false)
  }

  /// - Parameter keeping: a sentence that removed bundles are retained, if so.
  static func discard(_ bundle: InboxBundle, keeping: String?) -> InboxActionPage {
    InboxActionPage(
      title: "Discard", bundle: bundle, target: .bundle(bundle.id, "discard"),
      does: [
        "Removes the bundle as it was received, what was unpacked, its store, and everything that was salvaged of it.",
        "That its damage was seen stays known.",
        keeping ?? "Nothing brings the bundle back but its sender.",
        keeping == nil
          ? nil : "The inbox brings the bundle back from no copy that stays: its sender has to send it again.",
      ].compactMap(\.self), button: keeping == nil ? "Discard for good" : "Discard", isFinal: true)
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "title": title, "bundle": bundle.id, "does": does, "final": isFinal, "choices": choices, "action": target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let ask = frame.ask(
      target, button, fields: "\(choices.map(ActionForm.field))", isFinal: isFinal, back: .bundle(bundle.id),
      "Leave it as it is")
    let about: HTML = "\(InboxWords.title(bundle)) · \(readableSize(bundle.bytes))"
    return frame.asking(title, about, does: does, ask)
  }
}
