import HTTPServer
import Inbox
import StoreCoordination

/// The page on which something is asked for that is done to a bundle.
///
/// Nothing is done by looking at it.
struct InboxActionPage: InspectorPage {
  let title: String
  let bundle: InboxBundle
  let target: RequestTarget
  let does: [String]
  let button: String
  let isFinal: Bool

  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox, Crumb(InboxWords.title(bundle), .bundle(bundle.id))] }

  /// Asks whether to begin again what failed.
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

  /// Asks whether to remove a bundle.
  ///
  /// - Parameter keeping: that what is removed is not gone, as a sentence; nil where it is.
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
    let understood = ActionForm.Choice.flag(
      name: "understood", label: "I understand that this cannot be taken back", about: "", isRequired: true)
    try encoder.encode([
      "title": title, "bundle": bundle.id, "does": does, "final": isFinal, "choices": isFinal ? [understood] : [],
      "action": target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let sentences = does.map { words -> HTML in "<li>\(words)</li>" }
    let tick: HTML =
      isFinal
      ? """
      <div class="choices"><label><input type="checkbox" name="understood" value="yes" required>\
      <span class="said">I understand that this cannot be taken back</span></label></div>
      """ : .empty
    let ask: HTML =
      frame.allowsActions
      ? frame.form(
        target,
        """
        \(tick)<p class="row"><button class="\(isFinal ? "danger" : "main")">\(button)</button>\
        <a class="button" href="\(RequestTarget.bundle(bundle.id))">Leave it as it is</a></p>
        """) : .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
    return """
      <h1>\(title)</h1><p class="soft">\(InboxWords.title(bundle)) · \(Words.size(bundle.bytes))</p>
      <section class="panel"><h2>What this does</h2><ul class="plain-words">\(sentences)</ul>\(ask)</section>
      """
  }
}
