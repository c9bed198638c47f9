import HTTPServer

/// What is running, and what has ended lately.
struct WorkPage: InspectorPage {
  let jobs: [RunningWork.Job]

  var title: String { "Running work" }
  var section: PageSection { .work }
  var json: JSONText { ["jobs": .array(jobs.map(\.json))] }

  func content(_ frame: PageFrame) -> HTML { "<h1>\(title)</h1>" }
}
