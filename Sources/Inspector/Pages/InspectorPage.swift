package import HTTPServer
package import Platform
import SQLiteFormat

/// A page as a value: title, content, and JSON.
///
/// `GET /x` renders ``content(_:)`` within the layout; `GET /x.json` returns the encoded page, where keys may be added
/// but never changed. Both come from one reading of the store.
package protocol InspectorPage: Encodable, Sendable {
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
  package var crumbs: [Crumb] { [] }

  package var section: PageSection { .stores }

  package var mayAge: Bool { false }

  package var scripts: [String] { [] }
}

/// A breadcrumb: a page above another.
package struct Crumb: Sendable, Hashable {
  package var title: String

  package var target: RequestTarget

  package init(_ title: String, _ target: RequestTarget) {
    self.title = title
    self.target = target
  }

  package static let stores = Crumb("Stores", .to("stores"))
}

package enum PageSection: String, Sendable, CaseIterable {
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

  /// Appends segments; drops the query.
  package func appending(_ more: String...) -> RequestTarget { RequestTarget(segments: segments + more) }

  /// The URL of the page's JSON.
  package var twin: RequestTarget {
    var copy = self
    if let last = copy.segments.popLast() { copy.segments.append(last + ".json") }
    return copy
  }
}

/// The context of a page: session, time, permitted actions.
package struct PageFrame: Sendable {
  /// The token required in forms; nil without a session.
  let formToken: String?

  package let now: Timestamp

  package let allowsActions: Bool

  let hasInbox: Bool

  package let running: [RunningWork.Job]

  /// The number of ended jobs when the page was made.
  package let endings: Int

  package let target: RequestTarget

  package let home: String

  package var events: RequestTarget { .to("events") }

  /// A POST form with its token.
  ///
  /// - Parameter style: the CSS classes; constants only, never a value.
  package func form(_ target: RequestTarget, style: String = "", _ content: HTML) -> HTML {
    guard let formToken else { return .empty }
    return """
      <form method="post" action="\(target)" class="\(style)"><input type="hidden" name="csrf" value="\(formToken)">\
      \(content)</form>
      """
  }

  package func button(_ words: String, _ target: RequestTarget, style: String = "") -> HTML {
    form(target, style: "inline", "<button class=\"\(style)\">\(words)</button>")
  }
}

/// A part of a page that may fail without affecting the rest.
package struct PagePart<Value: Sendable>: Sendable {
  private let result: Result<Value, PageTrouble>

  private init(result: Result<Value, PageTrouble>) { self.result = result }

  /// Makes the part; its error is shown instead.
  package init(_ make: () throws -> Value) {
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

  package func html(_ show: (Value) -> HTML) -> HTML {
    switch result {
    case .success(let value): show(value)
    case .failure(let failure): failure.words.note
    }
  }

  package func map<Other: Sendable>(_ change: (Value) -> Other) -> PagePart<Other> {
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
