import HTTPServer
import Platform

/// The running jobs and those ended since startup.
struct WorkPage: InspectorPage {
  let jobs: [RunningWork.Job]

  var title: String { "Running work" }
  var section: PageSection { .work }

  func encode(to encoder: any Encoder) throws { try encoder.encode(["jobs": jobs]) }

  func content(_ frame: PageFrame) -> HTML {
    let running = jobs.filter(\.isRunning)
    let ended = jobs.filter { !$0.isRunning }
    let now: HTML =
      running.isEmpty
      ? """
      <div class="empty"><p>Nothing is running. Salvages, backups, proofs and restores that are begun here show how far \
      they are, and can be ended; they go on while you look at other pages.</p></div>
      """ : HTML.empty + running.reduce(into: HTML.empty) { $0 += $1.html(frame) }
    let before: HTML =
      ended.isEmpty
      ? .empty
      : "<h2>Ended</h2>"
        + ended.reduce(into: HTML.empty) { html, job in
          html += job.html(frame)
          if let time = job.ended { html += "<p class=\"soft\">\(Words.time(time, now: frame.now))</p>" }
        }
    return "<div data-events=\"\(frame.events)\"><h1>\(title)</h1>\(now)\(before)</div>"
  }
}
