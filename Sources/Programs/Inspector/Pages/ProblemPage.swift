import HTTPServer
import StoreCoordination

/// The page of a request that could not be answered as it wished.
struct ProblemPage: InspectorPage {
  let problem: Problem

  var title: String { problem.title }

  func encode(to encoder: any Encoder) throws { try problem.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    let hint: HTML = problem.hint.map { "<p>\($0)</p>" } ?? .empty
    let way: HTML =
      problem.status == .unauthorized
      ? .empty : "<p><a class=\"button\" href=\"\(RequestTarget.to("stores"))\">All stores</a></p>"
    return """
      <div class="empty"><h1>\(title)</h1><p>\(problem.detail)</p>\(hint)\
      <p class="soft">\(problem.status.rawValue) · <code>\(problem.code)</code></p>\(way)</div>
      """
  }
}
