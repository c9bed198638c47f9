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
  case stores
  case inbox
  case models
  case bundles
  case work
  case api

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

  /// The form of an action, or a note that none is offered.
  func confirmation(_ target: RequestTarget, _ content: HTML) -> HTML {
    allowsActions
      ? form(target, content) : .note(.warn, "<p>This inspector only looks: no actions are offered.</p>")
  }

  func button(_ words: String, _ target: RequestTarget, style: String = "") -> HTML {
    form(target, style: "inline", "<button class=\"\(style)\">\(words)</button>")
  }
}

/// A part of a page that may fail without affecting the rest.
package struct PagePart<Value: Sendable>: Sendable {
  private let result: Result<Value, PageTrouble>

  private init(result: Result<Value, PageTrouble>) { self.result = result }

  /// Makes the part; its error is shown instead.
  init(_ make: () throws -> Value) {
    do {
      result = .success(try make())
    } catch {
      result = .failure(PageTrouble(words: Problem(error)))
    }
  }

  package var value: Value? {
    guard case .success(let value) = result else { return nil }
    return value
  }

  package var problem: Problem? {
    guard case .failure(let failure) = result else { return nil }
    return failure.words
  }

  func html(_ show: (Value) -> HTML) -> HTML {
    switch result {
    case .success(let value): show(value)
    case .failure(let failure): failure.words.note
    }
  }

  func map<Other: Sendable>(_ change: (Value) -> Other) -> PagePart<Other> {
    PagePart<Other>(result: result.map(change))
  }
}

private struct PageTrouble: Error {
  var words: Problem
}

extension PagePart: Encodable where Value: Encodable {
  /// Encodes the part, or an object with `error`.
  package func encode(to encoder: any Encoder) throws {
    switch result {
    case .success(let value): try value.encode(to: encoder)
    case .failure(let failure): try encoder.encode(["error": failure.words])
    }
  }
}
