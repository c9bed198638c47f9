package import HTTPServer
internal import Lazaret
package import Platform
internal import SQLiteFormat

extension RunningWork {
  package struct Job: Sendable, Hashable, Encodable {
    package enum Kind: String, Sendable, Hashable {
      case salvage
      case quarantine
      case backup
      case proof
      case restore
      case install
      case release
      case export
      case send
      case repair
      case check
    }

    package enum State: String, Sendable, Hashable {
      case running
      case done
      case failed
      case cancelled
    }

    package let id: String

    package let kind: Kind

    package let title: String

    package let store: StoreID?

    package let started: Timestamp

    /// The result's page.
    package internal(set) var target: RequestTarget

    package internal(set) var state = State.running

    /// The current step in a word or two.
    package internal(set) var phase = "beginning"

    /// The fraction done, from 0 to 1; nil if unknown.
    package internal(set) var fraction: Double?

    /// The estimated seconds left; nil if unknown.
    package internal(set) var secondsLeft: Double?

    package internal(set) var ended: Timestamp?

    /// The result in a sentence; nil while running.
    package internal(set) var words: String?

    package internal(set) var problem: Problem?

    package var isRunning: Bool { state == .running }

    mutating func take(_ progress: JobObserver.Progress) {
      if phase != "ending" { phase = progress.phase }
      fraction = progress.fraction ?? fraction
      secondsLeft = progress.secondsLeft
    }

    mutating func end(_ outcome: Result<JobOutcome, any Error>, isCancelled: Bool, at time: Timestamp) {
      ended = time
      secondsLeft = nil
      switch outcome {
      case .success(let outcome):
        state = .done
        words = outcome.words
        target = outcome.target ?? target
      case .failure(let thrown):
        let halfway = thrown as? HalfwayError
        let problem = Problem(halfway?.error ?? thrown)
        let wasCancelled = isCancelled && (problem.code == "cancelled" || problem.code == "migration-cancelled")
        state = wasCancelled ? .cancelled : .failed
        self.problem = problem
        words = wasCancelled ? "It was cancelled; everything is as it was." : problem.detail
        guard let halfway else { return }
        words = "\(wasCancelled ? "It was cancelled" : sentence(problem.detail)) \(halfway.words)"
        target = halfway.target
      }
    }

    package func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "id": id, "kind": kind.rawValue, "title": title, "state": state.rawValue, "started": started,
        "location": target, "store": store?.text, "phase": isRunning ? phase : nil,
        "fraction": isRunning ? fraction : nil, "secondsLeft": isRunning ? secondsLeft : nil, "ended": ended,
        "words": words, "error": problem,
      ])
    }

    var progressEvent: EventChannel.Event {
      let data = JSON.Value.members(
        ("job", .string(id)), ("phase", .string(phase)), ("fraction", fraction.map { .real($0) }),
        ("secondsLeft", secondsLeft.map { .real($0) }))
      return EventChannel.Event(data.text, name: "progress")
    }

    var doneEvent: EventChannel.Event {
      let data = JSON.Value.members(
        ("job", .string(id)), ("state", .string(state.rawValue)), ("words", .string(words ?? "")),
        ("store", store.map { .string($0.text) }))
      return EventChannel.Event(data.text, name: "done")
    }
  }
}

/// An error after some completed work.
struct HalfwayError: Error {
  var error: any Error

  /// The completed part, continuing the error's sentence.
  var words: String

  var target: RequestTarget
}

package struct JobOutcome: Sendable {
  package var words: String

  /// The result's page; nil for the job's own.
  package var target: RequestTarget?

  package init(_ words: String, _ target: RequestTarget? = nil) {
    self.words = words
    self.target = target
  }
}

extension RunningWork.Job {
  /// Progress with a cancel button, or the result.
  func html(_ frame: PageFrame, isLinked: Bool = true) -> HTML {
    let name: HTML = isLinked ? "<a href=\"\(target)\">\(title)</a>" : HTML(escaping: title)
    guard isRunning else {
      let tone: HTML.Tone = state == .done ? .good : state == .failed ? .bad : .warn
      let hint: HTML = state == .failed ? problem?.hint.map { "<p class=\"soft\">\($0)</p>" } ?? .empty : .empty
      return .note(tone, "<p><strong>\(name)</strong>: \(words ?? state.rawValue)</p>\(hint)")
    }
    let percent = fraction.map { Int($0 * 100) }
    let value: HTML = fraction.map { "value=\"\(String($0))\"" } ?? .empty
    let left = secondsLeft.map { Words.left($0) }
    let text = [phase, percent.map { "\($0) %" }, left].compactMap(\.self).joined(separator: " · ")
    let cancel = frame.allowsActions ? frame.button("Cancel", .to("work", id, "cancel")) : .empty
    return """
      <div class="note job" data-job="\(id)"><p><strong>\(name)</strong></p>\
      <progress max="1" \(value) aria-label="\(title)"></progress>\
      <p class="row"><span data-job-text aria-live="polite">\(text)</span>\(cancel)</p></div>
      """
  }
}

extension Words {
  static func left(_ seconds: Double) -> String {
    switch seconds {
    case ..<2: "almost done"
    case ..<90: "about \(Int(seconds)) seconds left"
    default: "about \(Int(min(1e9, seconds / 60)) + 1) minutes left"
    }
  }
}
