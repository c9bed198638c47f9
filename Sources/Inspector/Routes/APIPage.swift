package import HTTPServer
import Platform
import SQLiteFormat

/// The API; the JSON is its OpenAPI description.
struct APIPage: InspectorPage {
  let routes: [DocumentedRoute]

  var title: String { "API" }
  var section: PageSection { .api }

  func encode(to encoder: any Encoder) throws { try OpenAPIDescription(routes: routes).json.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    let rows = routes.filter { !$0.pattern.hasPrefix("/public/") }.map { route -> HTML in
      let twin: HTML = route.kind == .other ? .empty : "<code>\(OpenAPIDescription.twin(route.pattern))</code>"
      return .row(
        "<code>\(route.method.rawValue) \(route.pattern)</code>", wraps: true, .cell("\(route.about)"),
        .cell(twin, "wrap"))
    }
    return """
      <h1>\(title)</h1>
      <p>Every page has a twin for programs: the same address with <code>.json</code> at its end. Actions are posted as forms; their twins \
      answer with JSON. The browser that opened the one-time link has a cookie; actions need <a href="\(RequestTarget.to("session"))">the token \
      of the session</a> besides. The description for tools is <a href="\(RequestTarget.to("api").twin)">an OpenAPI document</a>.</p>
      \(HTML.table("Addresses", ["Address", "What it is", "For programs"], rows))
      """
  }
}

extension InspectorRoutes {
  mutating func addAPI() {
    let own = DocumentedRoute(
      method: .get, pattern: "/api", about: "What programs can ask for; as JSON, an OpenAPI description.", kind: .page,
      fields: [])
    let routes = documented + [own]
    page(own.pattern, about: own.about) { _ in APIPage(routes: routes) }
  }
}

/// The routes as an OpenAPI 3.1 document.
struct OpenAPIDescription: Sendable {
  private let routes: [DocumentedRoute]

  init(routes: [DocumentedRoute]) { self.routes = routes.filter { !$0.pattern.hasPrefix("/public/") } }

  static func twin(_ pattern: String) -> String { pattern + ".json" }

  var json: JSON.Value {
    var paths: [JSON.Value.Member] = []
    func add(_ path: String, _ method: Method, _ operation: JSON.Value) {
      let member = JSON.Value.Member(method.rawValue.lowercased(), operation)
      if let index = paths.firstIndex(where: { $0.key == path }), case .object(let members) = paths[index].value {
        paths[index].value = .object(members + [member])
      } else {
        paths.append(.init(path, .object([member])))
      }
    }
    for route in routes {
      // OpenAPI allows a parameter and ".json" to share the last segment.
      if route.kind != .other { add(Self.twin(route.pattern), route.method, operation(route, asJSON: true)) }
      add(route.pattern, route.method, operation(route, asJSON: false))
    }
    return [
      "openapi": "3.1.0",
      "info": [
        "title": "Lazaret inspector", "version": .string(LibraryVersion.current),
        "description":
          "Quarantined stores, their damage and their records. Keys may be added to answers, and are never renamed.",
      ],
      "paths": .object(paths),
      "components": [
        "securitySchemes": [
          "session": [
            "type": "apiKey", "in": "cookie", "name": "lazaret",
            "description": "Set by the one-time link; its name goes on with eight letters.",
          ],
          "token": [
            "type": "apiKey", "in": "header", "name": "X-CSRF-Token",
            "description": "Of /session.json; needed for actions.",
          ],
        ],
        "schemas": [
          "Problem": [
            "type": "object", "required": ["status", "code", "title", "detail"],
            "properties": [
              "status": ["type": "integer"], "code": ["type": "string"], "title": ["type": "string"],
              "detail": ["type": "string"], "hint": ["type": "string"],
            ],
          ],
          "Answer": [
            "type": "object", "required": ["done", "location"],
            "properties": ["done": ["type": "boolean"], "location": ["type": "string"], "job": ["type": "string"]],
          ],
        ],
      ],
    ]
  }

  private func operation(_ route: DocumentedRoute, asJSON: Bool) -> JSON.Value {
    var members: [JSON.Value.Member] = [
      .init("summary", .string(route.about)), .init("operationId", .string(Self.name(route, asJSON: asJSON))),
    ]
    var parameters = Self.parameters(of: route.pattern)
    if route.method == .get { parameters += route.fields.map { Self.parameter($0) } }
    if !parameters.isEmpty { members.append(.init("parameters", .array(parameters))) }
    if route.method == .post { members.append(.init("requestBody", Self.body(route))) }
    members.append(.init("responses", Self.responses(route, asJSON: asJSON)))
    if !route.isOpen {
      members.append(.init("security", route.method == .post ? [["session": [], "token": []]] : [["session": []]]))
    }
    return .object(members)
  }

  private static func name(_ route: DocumentedRoute, asJSON: Bool) -> String {
    let path = route.pattern.split { "/{}".contains($0) }.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    return route.method.rawValue.lowercased() + (path.isEmpty ? "Root" : path) + (asJSON ? "JSON" : "")
  }

  private static func parameters(of pattern: String) -> [JSON.Value] {
    pattern.split(separator: "/").filter { $0.hasPrefix("{") }.map { part in
      [
        "name": .string(String(part.dropFirst().dropLast())), "in": "path", "required": true,
        "schema": ["type": "string"],
      ]
    }
  }

  private static func parameter(_ field: DocumentedRoute.Field) -> JSON.Value {
    [
      "name": .string(field.name), "in": "query", "required": .boolean(field.isRequired),
      "description": .string(field.about), "schema": ["type": "string"],
    ]
  }

  private static func body(_ route: DocumentedRoute) -> JSON.Value {
    let properties = route.fields.map { field in
      JSON.Value.Member(field.name, ["type": "string", "description": .string(field.about)])
    }
    let required = route.fields.filter(\.isRequired).map { JSON.Value.string($0.name) }
    return [
      "content": [
        "application/x-www-form-urlencoded": [
          "schema": ["type": "object", "properties": .object(properties), "required": .array(required)]
        ]
      ]
    ]
  }

  private static func responses(_ route: DocumentedRoute, asJSON: Bool) -> JSON.Value {
    let type = asJSON ? "application/json" : route.type
    let answer: JSON.Value = asJSON && route.kind == .action ? ["$ref": "#/components/schemas/Answer"] : [:]
    let done: JSON.Value = ["description": "Done.", "content": .object([.init(type, ["schema": answer])])]
    let problem: JSON.Value = [
      "description": "It could not be answered.",
      "content": .object([
        .init(
          asJSON ? "application/problem+json" : "text/html",
          ["schema": asJSON ? ["$ref": "#/components/schemas/Problem"] : [:]]),
        // Requests violating HTTP are refused before routing.
        .init("text/plain", ["schema": [:]]),
      ]),
    ]
    var members: [JSON.Value.Member] = []
    if route.kind == .action {
      members =
        asJSON
        ? [
          .init("200", done),
          .init("202", ["description": "It goes on as a job.", "content": .object([.init(type, ["schema": answer])])]),
        ]
        : [.init("303", ["description": "Done, or begun; the page that shows it is in Location."])]
    } else if route.pattern == "/" || route.pattern == "/open/{link}" {
      members = [.init("303", ["description": "On to the list of stores."])]
    } else {
      members = [.init("200", done)]
    }
    return .object(members + [.init("default", problem)])
  }
}

package struct DocumentedRoute: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    /// A page, with JSON at the URL plus `.json`.
    case page

    /// An action, then a page, with JSON at the URL plus `.json`.
    case action

    /// A download, stream or picture.
    case other
  }

  struct Field: Sendable, Hashable {
    var name: String

    var about: String

    var isRequired: Bool

    init(_ name: String, _ about: String, isRequired: Bool = false) {
      self.name = name
      self.about = about
      self.isRequired = isRequired
    }
  }

  package var method: Method

  /// The path, with parameters in braces.
  package var pattern: String

  var about: String

  package var kind: Kind

  var fields: [Field]

  /// The content type, for other than pages.
  var type = "text/html"

  /// Whether no session is needed.
  var isOpen = false
}
