package import HTTPServer
package import Platform

/// One page as a value: what it is called, what it shows, and the same as JSON.
///
/// `GET /x` renders ``content(_:)`` within the layout, `GET /x.json` gives the page as it encodes itself; keys may be added,
/// never changed. A page holds everything that it shows, so that both come from one look at the store.
package protocol InspectorPage: Encodable, Sendable {
  /// The heading, and what the browser's window is called.
  var title: String { get }

  /// The pages above this one, the outermost first; empty for those of the navigation.
  var crumbs: [Crumb] { get }

  /// The part of the navigation that it belongs to.
  var section: PageSection { get }

  /// Whether what it shows may change without a job of the inspector's: it is compared with its twin when it is looked at
  /// again.
  var mayAge: Bool { get }

  /// Scripts besides those that every page has, by the names of their files.
  var scripts: [String] { get }

  /// What is shown below the breadcrumbs, its heading included.
  func content(_ frame: PageFrame) -> HTML
}

extension InspectorPage {
  /// None.
  package var crumbs: [Crumb] { [] }

  /// The stores.
  package var section: PageSection { .stores }

  /// It shows what stays as it is.
  package var mayAge: Bool { false }

  /// None.
  package var scripts: [String] { [] }
}

/// A page above another one.
package struct Crumb: Sendable, Hashable {
  /// What it is called.
  package var title: String

  /// Its address.
  package var target: RequestTarget

  /// A page by its name and address.
  package init(_ title: String, _ target: RequestTarget) {
    self.title = title
    self.target = target
  }

  /// The list of stores.
  package static let stores = Crumb("Stores", .to("stores"))
}

/// A part of the navigation.
package enum PageSection: String, Sendable, CaseIterable {
  case stores
  case inbox
  case models
  case bundles
  case work
  case api

  /// What the navigation calls it.
  var title: String {
    switch self {
    case .stores: "Stores"
    case .inbox: "Inbox"
    case .models: "Models"
    case .bundles: "Bundles"
    case .work: "Running"
    case .api: "API"
    }
  }

  var target: RequestTarget { .to(rawValue) }
}

extension RequestTarget {
  /// An address on this server from the segments of its path.
  package static func to(_ segments: String..., query: [Query.Item] = []) -> RequestTarget {
    RequestTarget(segments: segments, query: Query(query))
  }

  /// The address with further segments; the query is left out.
  package func appending(_ more: String...) -> RequestTarget { RequestTarget(segments: segments + more) }

  /// The address of the same page as JSON.
  package var twin: RequestTarget {
    var copy = self
    if let last = copy.segments.popLast() { copy.segments.append(last + ".json") }
    return copy
  }
}

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
