package import HTTPServer
package import StoreCoordination

/// What a page needs to know besides its own content: whose forms it shows, what time it is, what may be done.
package struct PageFrame: Sendable {
  /// What each form must hold; nil where there is no session, and so no form.
  package let formToken: String?

  /// The time by which pages say how long ago something was.
  package let now: Timestamp

  /// Whether actions are offered.
  package let allowsActions: Bool

  /// Whether bundles are received here.
  package let hasInbox: Bool

  /// What is running now, newest first.
  package let running: [RunningWork.Job]

  /// How many jobs had ended when the page was made.
  package let endings: Int

  /// The address of this page.
  package let target: RequestTarget

  /// The folder that is looked at, for the footer.
  package let home: String

  /// Where the events of running work come from.
  package var events: RequestTarget { .to("events") }

  /// A form that posts to an address; its token is in it.
  ///
  /// - Parameters:
  ///   - target: where it goes.
  ///   - style: the classes of the form; a name of this software, never a value.
  ///   - content: fields and buttons.
  package func form(_ target: RequestTarget, style: String = "", _ content: HTML) -> HTML {
    guard let formToken else { return .empty }
    return """
      <form method="post" action="\(target)" class="\(style)"><input type="hidden" name="csrf" value="\(formToken)">\
      \(content)</form>
      """
  }

  /// A form with nothing but a button.
  package func button(_ words: String, _ target: RequestTarget, style: String = "") -> HTML {
    form(target, style: "inline", "<button class=\"\(style)\">\(words)</button>")
  }
}
