import HTTPServer

/// One job: how far it is, or what came of it.
struct JobPage: InspectorPage {
  let job: RunningWork.Job

  var title: String { job.title }
  var section: PageSection { .work }
  var crumbs: [Crumb] { [Crumb("Running work", .to("work"))] }

  func encode(to encoder: any Encoder) throws { try job.encode(to: encoder) }

  func content(_ frame: PageFrame) -> HTML {
    guard !job.isRunning else {
      return """
        <div data-events="\(frame.events)"><h1>\(title)</h1>\(job.html(frame, isLinked: false))\
        <p class="soft">It goes on while you look at other pages.</p>\
        <noscript><p><a href="\(frame.target)">Look again</a></p></noscript></div>
        """
    }
    let next: HTML =
      job.state == .done
      ? "<a class=\"button main\" href=\"\(job.target)\">See what came of it</a>"
      : "<a class=\"button\" href=\"\(job.target)\">Back</a>"
    let time: HTML = job.ended.map { "<p class=\"soft\">\(Words.time($0, now: frame.now))</p>" } ?? .empty
    return "<h1>\(title)</h1>\(job.html(frame, isLinked: false))\(time)<p class=\"row\">\(next)</p>"
  }
}
