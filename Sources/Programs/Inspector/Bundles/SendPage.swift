import HTTPServer
import Sending
import StoreCoordination

/// Asks before a bundle is sent: what it is, and to whom it goes.
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

  /// Why it cannot be sent from here.
  var obstacle: Problem? {
    guard receiver == nil else { return nil }
    return Problem(
      .conflict, code: "no-receiver", title: "No receiver to send it to.",
      detail: "This inspector was started without a receiver for bundles.",
      hint: "Start it with --send-to, or send the bundle with: lazaret send.")
  }

  func content(_ frame: PageFrame) -> HTML {
    let ask: HTML
    if let obstacle {
      ask = obstacle.note
    } else if !frame.allowsActions {
      ask = .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
    } else {
      ask = frame.form(
        target,
        """
        <input type="hidden" name="sha256" value="\(preview.sha256)">\
        <p class="row"><button class="main">Send it</button><a class="button" href="\(bundle.target)">Leave it</a></p>
        """)
    }
    let warning: HTML =
      preview.showsRecords
      ? .note(
        .bad,
        "<p><strong>It holds data of yours and is not encrypted.</strong> The receiver can read that.</p>")
      : .empty
    return """
      <h1>\(title)</h1>
      <section class="panel"><h2>What this does</h2><ul class="plain-words">\
      <li>Puts the bundle into the outbox of this home, and sends it from there in parts. A line that breaks costs nothing: it \
      goes on where it stopped, also another day.</li>\
      <li>Sends exactly the file with the sum below, and nothing else.</li>\
      <li>Keeps the receiver's receipt with the store.</li></ul>\
      \(HTML.facts([
        ("Bundle", HTML(escaping: printable(bundle.name))), ("Size", HTML(escaping: Words.size(preview.bytes))),
        ("SHA-256", "<code class=\"wrap\">\(preview.sha256)</code>"),
        ("To", receiver.map { HTML(escaping: $0.address.origin) }),
      ]))\(warning)\(ask)</section>
      """
  }
}
