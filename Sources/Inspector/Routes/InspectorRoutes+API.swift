import HTTPServer

extension InspectorRoutes {
  /// The description of the API, from the routes themselves.
  mutating func addAPI() {
    let others = documented
    page("/api", about: "What programs can ask for; as JSON, an OpenAPI description.") { _ in APIPage(routes: others) }
  }
}

/// What programs can ask for.
struct APIPage: InspectorPage {
  let routes: [DocumentedRoute]

  var title: String { "API" }
  var section: PageSection { .api }
  var json: JSONText { [:] }

  func content(_ frame: PageFrame) -> HTML { "<h1>API</h1>" }
}
