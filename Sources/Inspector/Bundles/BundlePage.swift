import HTTPServer
import Platform
package import SupportBundle
package import SystemPackage

/// One bundle: its content, its digest, and its uploads.
struct BundlePage: InspectorPage {
  let bundle: ListedBundle
  let preview: PagePart<BundlePreview>
  let sendings: PagePart<[OutboxEntry]>
  let receiver: InspectorReceiver?

  init(
    _ bundle: ListedBundle, _ catalogue: BundleCatalogue, _ outbox: Outbox, receiver: InspectorReceiver?
  ) {
    self.bundle = bundle
    self.receiver = receiver
    let preview = PagePart { try catalogue.preview(of: bundle) }
    self.preview = preview
    sendings = PagePart {
      try outbox.listing().entries.filter { $0.sha256 == preview.value?.sha256 }
    }
  }

  var title: String { printable(bundle.name) }
  var section: PageSection { .bundles }
  var crumbs: [Crumb] { [Crumb("Bundles", .to("bundles"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": bundle.name, "path": printable(bundle.path.string), "bytes": bundle.bytes, "date": bundle.date,
      "encrypted": preview.value?.isEncrypted ?? bundle.isEncrypted, "level": preview.value?.level,
      "sha256": preview.map(\.sha256), "sent": sendings,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let remove: HTML =
      frame.allowsActions
      ? "<a class=\"button\" href=\"\(bundle.target.appending("discard"))\">Remove …</a>" : .empty
    let send: HTML =
      frame.allowsActions
      ? "<a class=\"button main\" href=\"\(bundle.target.appending("send"))\">Send …</a>" : .empty
    return """
      <div data-events="\(frame.events)"><div class="head"><div><h1 class="wrap">\(title)</h1></div>\
      <nav class="row no-print" aria-label="Actions">\(send)\
      <a class="button" href="\(bundle.target.appending("file"))" download>Download</a>\(remove)</nav></div>
      \(preview.html { HTML.panel("Facts", facts($0, frame)) })
      \(sendings.html { HTML.panel("Sent", sent($0, frame)) })</div>
      """
  }

  private func facts(_ preview: BundlePreview, _ frame: PageFrame) -> HTML {
    let level: HTML? = preview.level.map { "\($0.rawValue): \($0.words)" }
    return .facts([
      ("Size", HTML(escaping: Words.size(preview.bytes))), ("Written", Words.time(bundle.date, now: frame.now)),
      ("Level", level),
      (
        "Who can read it",
        preview.isEncrypted ? "only the holders of the keys it is encrypted to" : "everyone who gets the file"
      ),
      ("SHA-256", "<code class=\"wrap\">\(preview.sha256)</code>"),
      ("It is at", "<code>\(printable(bundle.path.string))</code>"),
    ])
  }

  private func sent(_ entries: [OutboxEntry], _ frame: PageFrame) -> HTML {
    guard !entries.isEmpty else { return "<p>It was not sent from here.</p>" }
    let items = entries.map { entry -> HTML in
      """
      <li>\(OutboxWords.tag(entry)) to \(printable(entry.endpoint)) \(OutboxWords.outcome(entry, now: frame.now))\
      \(OutboxWords.actions(entry, frame))</li>
      """
    }
    return "<ul class=\"plain-words\">\(items)</ul>"
  }
}

package struct InspectorReceiver: Sendable {
  package var address: ReceiverAddress

  /// The file with the sender's token, if any.
  package var tokenFile: FilePath?

  package init(_ address: ReceiverAddress, tokenFile: FilePath? = nil) {
    self.address = address
    self.tokenFile = tokenFile
  }
}
