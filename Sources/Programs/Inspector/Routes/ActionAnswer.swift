package import HTTPServer
import StoreFiles

/// What an action has done, and where the browser goes next.
package struct ActionAnswer: Sendable {
  /// The page that shows what came of it.
  package var target: RequestTarget

  /// Whether it is done; else it goes on in the background.
  package var isDone: Bool

  /// The job that goes on with it.
  package var job: String?

  /// An action that is done.
  package static func done(_ target: RequestTarget) -> ActionAnswer { ActionAnswer(target: target, isDone: true) }

  /// An action that goes on as a job.
  package static func running(_ job: RunningWork.Job) -> ActionAnswer {
    ActionAnswer(target: .to("work", job.id), isDone: false, job: job.id)
  }

  /// An action that goes on as a job, shown on a page of its own subject, which the job's name is given to.
  package static func running(_ job: RunningWork.Job, on page: RequestTarget) -> ActionAnswer {
    var page = page
    page.query = Query([.init("job", job.id)])
    return ActionAnswer(target: page, isDone: false, job: job.id)
  }

  var json: JSON.Value {
    .members(
      ("done", .boolean(isDone)), ("location", .string(target.path + target.query.text)),
      ("job", job.map { .string($0) }))
  }
}
