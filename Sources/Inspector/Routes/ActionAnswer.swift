package import HTTPServer

/// What an action has done, and where the browser goes next.
package struct ActionAnswer: Sendable {
  /// The page that shows what came of it.
  package var target: RequestTarget

  /// Whether it is done; else it goes on in the background.
  package var isDone: Bool

  /// What programs are told besides.
  package var facts: [JSONText.Member]

  /// An action that is done.
  package static func done(_ target: RequestTarget, _ facts: [JSONText.Member] = []) -> ActionAnswer {
    ActionAnswer(target: target, isDone: true, facts: facts)
  }

  /// An action that goes on as a job.
  package static func running(_ job: RunningWork.Job) -> ActionAnswer {
    ActionAnswer(target: .to("work", job.id), isDone: false, facts: [.init("job", .string(job.id))])
  }

  /// The answer to programs.
  var json: JSONText {
    .object([.init("done", .boolean(isDone)), .init("location", .string(target.path + target.query.text))] + facts)
  }
}
