import HTTPServer
import Lazaret
import Platform
import SupportBundle

extension InspectorRoutes {
  mutating func addBundles(_ parts: InspectorParts) {
    let catalogue = BundleCatalogue(home: parts.home, surroundings: parts.surroundings)
    let prepared = PreparedExports()
    let exports = ExportActions(parts: parts, prepared: prepared, bundles: catalogue)
    page(
      "/stores/{id}/export",
      about: "Asks before: Makes ready what a bundle for support would hold, and shows it on the same page.", .store,
      query: [.init("job", "The job whose progress is shown.")]
    ) { request, id in try exports.page(parts.catalogue.store(id), request.query) }
    action(
      "/stores/{id}/export", about: "Makes ready what a bundle for support would hold.", .store,
      fields: ExportActions.fields
    ) { _, form, id in try exports.begin(parts.catalogue.store(id), form) }
    page("/exports/{export}", about: "What a bundle would hold, before the user agrees to it.", .identifier) { _, id in
      PreparedExportPage(entry: try prepared.entry(id))
    }
    action("/exports/{export}/write", about: "Writes a bundle that was agreed to.", .identifier) { _, _, id in
      try exports.write(id)
    }
    action("/exports/{export}/forget", about: "Lets go of what was made ready.", .identifier) { _, _, id in
      let entry = try prepared.entry(id)
      prepared.forget(id)
      return .done(.store(entry.store))
    }
    page("/bundles", about: "The bundles that were written here, and what lies in the outbox.") { _ in
      BundlesPage(catalogue, parts.outbox)
    }
    page("/bundles/{bundle}", about: "One bundle: its sum, its size, and where it was sent.", .text) { _, name in
      BundlePage(try catalogue.bundle(name), catalogue, parts.outbox)
    }
    other("/bundles/{bundle}/file", about: "The bundle itself.", type: "application/octet-stream", .text) {
      request, name in
      let bundle = try catalogue.bundle(name)
      let tag = try EntityTag(catalogue.preview(of: bundle).sha256)
        .orRefuse(.internalServerError, "the bundle has no sum")
      let file = FileBytes(try parts.surroundings.fileSystem.open(bundle.path))
      return Response.ranges(file, tag: tag, type: "application/octet-stream", for: request).downloaded(as: bundle.name)
    }
    page("/bundles/{bundle}/discard", about: "Asks before: Removes a bundle from this machine.", .text) { _, name in
      BundleRemovalPage(bundle: try catalogue.bundle(name))
    }
    action("/bundles/{bundle}/discard", about: "Removes a bundle from this machine.", .text) { _, _, name in
      try parts.surroundings.fileSystem.unlink(try catalogue.bundle(name).path)
      return .done(.to("bundles"))
    }
    addSending(SendActions(parts: parts, bundles: catalogue))
  }

  private mutating func addSending(_ sending: SendActions) {
    page("/bundles/{bundle}/send", about: "Asks before: Sends a bundle.", .text) { _, name in try sending.page(name) }
    action("/bundles/{bundle}/send", about: "Sends a bundle to the receiver.", .text, fields: SendActions.fields) {
      _, form, name in
      try sending.send(name, form)
    }
    action("/outbox/{entry}/retry", about: "Sends what lies in the outbox on.", .identifier) { _, _, id in
      try sending.retry(id)
    }
    action("/outbox/{entry}/cancel", about: "Takes back what lies in the outbox.", .identifier) { _, _, id in
      try sending.cancel(id)
    }
  }
}

/// Confirms a bundle's removal from this machine.
struct BundleRemovalPage: InspectorPage {
  let bundle: ListedBundle

  var title: String { "Remove the bundle" }
  var section: PageSection { .bundles }
  var crumbs: [Crumb] { [Crumb("Bundles", .to("bundles")), Crumb(printable(bundle.name), bundle.target)] }

  private var target: RequestTarget { bundle.target.appending("discard") }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["name": bundle.name, "bytes": bundle.bytes, "action": target])
  }

  func content(_ frame: PageFrame) -> HTML {
    let ask = frame.ask(target, "Remove it", isFinal: true, back: bundle.target, "Leave it")
    let does = [
      "Removes the file from this machine. The store that it was made of is not touched, and can be exported again.",
      "What was sent already stays with the receiver; what waits in the outbox is still sent.",
    ]
    let about: HTML = "\(printable(bundle.name)) · \(readableSize(bundle.bytes))"
    return frame.asking(title, about, does: does, ask)
  }
}

struct SendActions: Sendable {
  let parts: InspectorParts
  let bundles: BundleCatalogue

  static let fields: [DocumentedRoute.Field] = [
    .init("sha256", "The SHA-256 of the bundle as it was shown; another one is not sent.", isRequired: true)
  ]

  func page(_ name: String) throws -> SendPage {
    let bundle = try bundles.bundle(name)
    return SendPage(bundle: bundle, preview: try bundles.preview(of: bundle), receiver: parts.options.receiver)
  }

  func send(_ name: String, _ form: FormData) throws -> ActionAnswer {
    let page = try page(name)
    if let obstacle = page.obstacle { throw obstacle.refusal }
    guard let receiver = page.receiver else { throw Refusal(.conflict, "there is no receiver to send it to") }
    guard form["sha256"] == page.preview.sha256 else {
      throw Refusal(.conflict, "the bundle is not the one any more that was shown; look at it again")
    }
    let entry = try parts.outbox.add(page.preview, to: receiver.address, tokenFile: receiver.tokenFile)
    return try start(entry, receiver, target: page.bundle.target)
  }

  func retry(_ id: String) throws -> ActionAnswer {
    let entry = try self.entry(id)
    guard let receiver = parts.options.receiver, receiver.address.withoutQuery == entry.endpoint else {
      throw Refusal(.conflict, "this inspector was told of another receiver; use lazaret outbox retry")
    }
    return try start(entry, receiver, target: .to("bundles"))
  }

  func cancel(_ id: String) throws -> ActionAnswer {
    let entry = try self.entry(id)
    let (parts, receiver) = (parts, parts.options.receiver)
    let job = try parts.work.start(.send, "Taking back \(printable(entry.name))", store: nil, target: .to("bundles")) {
      _ in
      let isOurs = receiver?.address.withoutQuery == entry.endpoint
      let outcome = try parts.sender.cancel(entry.id, to: isOurs ? receiver?.address : nil)
      return JobOutcome(
        outcome.isReceiverTold
          ? "It was taken back; the receiver drops what it had."
          : "It was taken back. The receiver could not be told; it drops an unfinished upload by itself.")
    }
    return .running(job)
  }

  private func entry(_ id: String) throws -> OutboxEntry {
    let entry = try parts.outbox.listing().entries.first(where: { $0.id == id })
      .orRefuse(.notFound, "there is no such entry in the outbox")
    guard !entry.isOver else { throw Refusal(.conflict, "nothing more happens to it") }
    return entry
  }

  private func start(
    _ entry: OutboxEntry, _ receiver: InspectorReceiver, target: RequestTarget
  ) throws -> ActionAnswer {
    let parts = parts
    let job = try parts.work.start(.send, "Sending \(printable(entry.name))", store: nil, target: target) { observer in
      let outcome = try parts.sender.send(entry.id, to: receiver.address) { progress in
        observer.report(
          Words.sending(progress.phase), progress.total > 0 ? Double(progress.done) / Double(progress.total) : nil)
      } isStopped: {
        observer.isCancelled
      }
      let receipt = "The receiver calls it \(outcome.receipt.id)."
      return JobOutcome(outcome.wasThere ? "The receiver had it already. \(receipt)" : "It is there. \(receipt)")
    }
    return .running(job)
  }
}

/// Confirms sending a bundle.
struct SendPage: InspectorPage {
  let bundle: ListedBundle
  let preview: BundlePreview
  let receiver: InspectorReceiver?

  var title: String { "Send the bundle" }
  var section: PageSection { .bundles }
  var crumbs: [Crumb] { [Crumb("Bundles", .to("bundles")), Crumb(printable(bundle.name), bundle.target)] }

  private var target: RequestTarget { bundle.target.appending("send") }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": bundle.name, "bytes": preview.bytes, "sha256": preview.sha256, "encrypted": preview.isEncrypted,
      "level": preview.level, "receiver": receiver?.address.origin, "obstacle": obstacle, "action": target,
    ])
  }

  var obstacle: Problem? {
    guard receiver == nil else { return nil }
    return Problem(
      .conflict, code: "no-receiver", title: "No receiver to send it to.",
      detail: "This inspector was started without a receiver for bundles.",
      hint: "Start it with --send-to, or send the bundle with: lazaret send.")
  }

  func content(_ frame: PageFrame) -> HTML {
    let sum: HTML = "<input type=\"hidden\" name=\"sha256\" value=\"\(preview.sha256)\">"
    let ask = obstacle?.note ?? frame.ask(target, "Send it", fields: sum, back: bundle.target, "Leave it")
    let warning = HTML.when(
      preview.showsRecords,
      .note(.bad, "<p><strong>It holds data of yours and is not encrypted.</strong> The receiver can read that.</p>"))
    let does = [
      """
      Puts the bundle into the outbox of this home, and sends it from there in parts. A line that breaks costs nothing: it \
      goes on where it stopped, also another day.
      """, "Sends exactly the file with the sum below, and nothing else.",
      "Keeps the receiver's receipt with the store.",
    ]
    let facts = HTML.facts([
      ("Bundle", "\(printable(bundle.name))"), ("Size", "\(readableSize(preview.bytes))"),
      ("SHA-256", "<code class=\"wrap\">\(preview.sha256)</code>"), ("To", receiver.map { "\($0.address.origin)" }),
    ])
    return "<h1>\(title)</h1>\n" + .panel("What this does", .sentences(does) + facts + warning + ask)
  }
}
