import HTTPServer
import StoreFiles

/// What programs can ask for; its twin is the OpenAPI description.
struct APIPage: InspectorPage {
  let routes: [DocumentedRoute]

  var title: String { "API" }
  var section: PageSection { .api }

  func encode(to encoder: any Encoder) throws { try OpenAPIDescription(routes: routes).json.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    let rows = routes.filter { !$0.pattern.hasPrefix("/public/") }.map { route -> HTML in
      let twin: HTML = route.kind == .other ? .empty : "<code>\(OpenAPIDescription.twin(route.pattern))</code>"
      return """
        <tr><th scope="row" class="wrap"><code>\(route.method.rawValue) \(route.pattern)</code></th><td>\(route.about)</td><td class="wrap">\(twin)</td></tr>
        """
    }
    return """
      <h1>\(title)</h1>
      <p>Every page has a twin for programs: the same address with <code>.json</code> at its end. Actions are posted as forms; their twins \
      answer with JSON. The browser that opened the one-time link has a cookie; actions need <a href="\(RequestTarget.to("session"))">the token \
      of the session</a> besides. The description for tools is <a href="\(RequestTarget.to("api").twin)">an OpenAPI document</a>.</p>
      \(HTML.table("Addresses", head: "<th scope=\"col\">Address</th><th scope=\"col\">What it is</th><th scope=\"col\">For programs</th>", rows))
      """
  }
}

extension InspectorRoutes {
  /// The description of the API, made of the routes themselves.
  mutating func addAPI() {
    let own = DocumentedRoute(
      method: .get, pattern: "/api", about: "What programs can ask for; as JSON, an OpenAPI description.", kind: .page,
      fields: [])
    let routes = documented + [own]
    page(own.pattern, about: own.about) { _ in APIPage(routes: routes) }
  }
}
