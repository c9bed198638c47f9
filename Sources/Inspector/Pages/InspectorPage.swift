package import HTTPServer
internal import Platform
import SQLiteFormat

/// A page as a value: title, content, and JSON.
///
/// `GET /x` renders ``content(_:)`` within the layout; `GET /x.json` returns the encoded page, where keys may be added
/// but never changed. Both come from one reading of the store.
protocol InspectorPage: Encodable, Sendable {
  var title: String { get }

  /// The pages above, outermost first.
  var crumbs: [Crumb] { get }

  var section: PageSection { get }

  /// Whether its content may change without a job; it is then compared with its JSON.
  var mayAge: Bool { get }

  var scripts: [String] { get }

  /// The content below the breadcrumbs.
  func content(_ frame: PageFrame) -> HTML
}

extension InspectorPage {
  var crumbs: [Crumb] { [] }

  var section: PageSection { .stores }

  var mayAge: Bool { false }

  var scripts: [String] { [] }
}

/// A page below that of a store.
protocol StoreSubpage: InspectorPage { var store: ListedStore { get } }

extension StoreSubpage {
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }
}

/// A page below the inbox.
protocol InboxSubpage: InspectorPage {}

extension InboxSubpage {
  var section: PageSection { .inbox }
  var crumbs: [Crumb] { [.inbox] }
}

/// A breadcrumb: a page above another.
struct Crumb: Sendable, Hashable {
  var title: String

  var target: RequestTarget

  init(_ title: String, _ target: RequestTarget) {
    self.title = title
    self.target = target
  }

  static let stores = Crumb("Stores", .to("stores"))
}

enum PageSection: String, Sendable, CaseIterable {
  case stores, inbox, models, bundles, work, api

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
  /// Builds a URL on this server from path segments.
  package static func to(_ segments: String..., query: [Query.Item] = []) -> RequestTarget {
    RequestTarget(segments: segments, query: Query(query))
  }

  /// Appends segments; the query is replaced.
  func appending(_ more: String..., query: [Query.Item] = []) -> RequestTarget {
    RequestTarget(segments: segments + more, query: Query(query))
  }

  /// The URL of the page's JSON.
  var twin: RequestTarget {
    var copy = self
    if let last = copy.segments.popLast() { copy.segments.append(last + ".json") }
    return copy
  }
}

/// The context of a page: session, time, permitted actions.
struct PageFrame: Sendable {
  /// The token required in forms; nil without a session.
  let formToken: String?

  let now: Timestamp

  let allowsActions: Bool

  let hasInbox: Bool

  let running: [RunningWork.Job]

  /// The number of ended jobs when the page was made.
  let endings: Int

  let target: RequestTarget

  let home: String

  var events: RequestTarget { .to("events") }

  /// A POST form with its token.
  ///
  /// - Parameter style: the CSS classes; constants only, never a value.
  func form(_ target: RequestTarget, style: String = "", _ content: HTML) -> HTML {
    guard let formToken else { return .empty }
    return """
      <form method="post" action="\(target)" class="\(style)"><input type="hidden" name="csrf" value="\(formToken)">\
      \(content)</form>
      """
  }

  /// The overview of a store, with the job on it.
  func overview(
    of store: ListedStore, _ title: String, _ about: HTML, actions: HTML, isDamaged: Bool = false, _ content: HTML
  ) -> HTML {
    let job = running.first { $0.store == store.id }
    let live: HTML = job?.isRunning == true ? " data-events=\"\(events)\"" : ""
    return """
      <div\(live)>
      <div class="head"><div><h1>\(title)</h1>\(about)</div>\(actions)</div>
      \(StoreTab.bar(store, .overview, isDamaged: isDamaged))
      \(job?.html(self, isLinked: false) ?? .empty)
      \(content)
      </div>
      """
  }

  /// Actions, or a note that none are offered.
  func whereAllowed(_ actions: HTML) -> HTML {
    allowsActions ? actions : .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
  }

  func confirmation(_ target: RequestTarget, _ content: HTML) -> HTML { whereAllowed(form(target, content)) }

  /// The page that asks before an action.
  func asking(_ title: String, _ about: HTML, does: [String], _ ask: HTML) -> HTML {
    """
    <h1>\(title)</h1><p class="soft">\(about)</p>
    \(HTML.panel("What this does", .sentences(does) + ask))
    """
  }

  /// A form's fields, its button, and the way back.
  func ask(
    _ target: RequestTarget, _ button: String, fields: HTML = .empty, isFinal: Bool = false, back: RequestTarget,
    _ words: String = "Cancel"
  ) -> HTML {
    confirmation(
      target,
      """
      \(fields)<p class="row"><button class="\(isFinal ? "danger" : "main")">\(button)</button>\
      \(HTML.button(words, back))</p>
      """)
  }

  func button(_ words: String, _ target: RequestTarget, style: String = "") -> HTML {
    form(target, style: "inline", "<button class=\"\(style)\">\(words)</button>")
  }
}

/// A part of a page that may fail without affecting the rest.
package struct PagePart<Value: Sendable>: Sendable {
  private let result: Result<Value, Problem>

  private init(result: Result<Value, Problem>) { self.result = result }

  /// Makes the part; its error is shown instead.
  init(_ make: () throws -> Value) { result = Result { try make() }.mapError { Problem($0) } }

  package var value: Value? { try? result.get() }

  package var problem: Problem? {
    guard case .failure(let problem) = result else { return nil }
    return problem
  }

  func html(_ show: (Value) -> HTML) -> HTML {
    switch result {
    case .success(let value): show(value)
    case .failure(let problem): problem.note
    }
  }

  func map<Other: Sendable>(_ change: (Value) -> Other) -> PagePart<Other> {
    PagePart<Other>(result: result.map(change))
  }
}

extension PagePart: Encodable where Value: Encodable {
  /// Encodes the part, or an object with `error`.
  package func encode(to encoder: any Encoder) throws {
    switch result {
    case .success(let value): try value.encode(to: encoder)
    case .failure(let problem): try encoder.encode(["error": problem])
    }
  }
}
