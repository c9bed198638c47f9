import HTTPServer
import StoreCoordination

/// Asks before a bundle is removed from this machine.
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
    let ask: HTML =
      frame.allowsActions
      ? frame.form(
        target,
        """
        <p class="row"><button class="danger">Remove it</button><a class="button" href="\(bundle.target)">Leave it</a></p>
        """) : .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
    return """
      <h1>\(title)</h1><p class="soft">\(printable(bundle.name)) · \(Words.size(bundle.bytes))</p>
      <section class="panel"><h2>What this does</h2><ul class="plain-words">\
      <li>Removes the file from this machine. The store that it was made of is not touched, and can be exported again.</li>\
      <li>What was sent already stays with the receiver; what waits in the outbox is still sent.</li></ul>\(ask)</section>
      """
  }
}
