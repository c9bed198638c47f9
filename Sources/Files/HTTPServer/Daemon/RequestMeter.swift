internal import Compatibility

/// Counts the requests of a server by what was answered, and how long that took.
package final class RequestMeter: Sendable {
  /// What is known of an answered request.
  package struct Answer: Sendable {
    /// The method; `other` for one that is not known.
    package var method: String

    /// The status of the answer.
    package var status: Int

    /// From the request's line to the begin of the answer.
    package var duration: Duration

    /// The first part of the path, where it is a short word; empty for `/`, and `other` for anything else.
    package var area: String

    /// Where it came from, where that is known.
    package var client: ClientAddress?
  }

  /// The counts at one moment.
  package struct Counts: Sendable {
    /// Requests by method and status.
    package var answers: [Answered: Int] = [:]

    /// Requests that took at most so long, for each of ``RequestMeter/bounds``.
    package var withinBounds = [Int](repeating: 0, count: RequestMeter.bounds.count)

    /// How long all of them took.
    package var total: Duration = .zero

    /// The number of all of them.
    package var count: Int { answers.values.reduce(0, +) }
  }

  /// A method and the status that was answered.
  package struct Answered: Sendable, Hashable {
    /// The method.
    package var method: String

    /// The status.
    package var status: Int

    /// A method and a status.
    package init(method: String, status: Int) {
      self.method = method
      self.status = status
    }
  }

  /// The bounds of the times that are told apart, in milliseconds.
  package static let bounds = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

  private let state = Mutex(Counts())
  private let listener: @Sendable (Answer) -> Void

  /// - Parameter listener: told of each answer, on the thread that gives it.
  package init(listener: @escaping @Sendable (Answer) -> Void = { _ in }) { self.listener = listener }

  /// The counts so far.
  package var counts: Counts { state.withLock { $0 } }

  func note(_ answer: Answer) {
    state.withLock { counts in
      counts.answers[Answered(method: answer.method, status: answer.status), default: 0] += 1
      counts.total += answer.duration
      for (place, bound) in Self.bounds.enumerated() where answer.duration <= .milliseconds(bound) {
        counts.withinBounds[place] += 1
      }
    }
    listener(answer)
  }
}
