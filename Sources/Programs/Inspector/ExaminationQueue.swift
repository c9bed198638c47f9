import Compatibility
import Dispatch
package import StoreCoordination

/// Looks at whole stores, one after another on a thread of its own, for pages that wait for them no longer than a moment.
///
/// What a look found is kept until a page has asked for it, so that also what is worth no place in a cache is shown once.
package final class ExaminationQueue: Sendable {
  /// A look at a store that has begun, or waits for its turn.
  private final class Look: Sendable {
    let make: @Sendable () throws -> Examination
    let ending = DispatchGroup()
    private let outcome = Mutex<(part: PagePart<Examination>, time: ContinuousClock.Instant)?>(nil)

    init(_ make: @escaping @Sendable () throws -> Examination) {
      self.make = make
      ending.enter()
    }

    /// What came of it; nil while it goes on.
    var part: PagePart<Examination>? { outcome.withLock { $0?.part } }

    /// Whether it ended so long ago that it says nothing of now.
    var isOld: Bool { outcome.withLock { $0.map { .now - $0.time > ExaminationQueue.memory } ?? false } }

    func run() {
      let part = PagePart { try make() }
      outcome.withLock { $0 = (part, .now) }
      ending.leave()
    }
  }

  private struct State {
    var looks: [FilePath: Look] = [:]
    var waiting: [Look] = []
    var isWorking = false
  }

  /// For how long the result of a look waits for a page.
  private static let memory = Duration.seconds(10)

  private let state = Mutex(State())

  /// A queue without looks.
  package init() {}

  /// What a look at a store found; nil where it is not there in time, and goes on.
  ///
  /// - Parameter make: the look; it is not begun where one at the store is under way.
  package func part(
    of store: FilePath, by end: ContinuousClock.Instant, _ make: @escaping @Sendable () throws -> Examination
  ) -> PagePart<Examination>? {
    let (look, isFirst) = state.withLock { state in
      if let known = state.looks[store], !known.isOld { return (known, false) }
      let look = Look(make)
      state.looks[store] = look
      state.waiting.append(look)
      let isFirst = !state.isWorking
      state.isWorking = true
      return (look, isFirst)
    }
    if isFirst { WorkThread.start { [self] in work() } }
    let left = max(.zero, end - .now).components
    let nanoseconds = Int(left.seconds) * 1_000_000_000 + Int(left.attoseconds / 1_000_000_000)
    guard look.ending.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success else { return nil }
    state.withLock { state in
      if state.looks[store] === look { state.looks[store] = nil }
    }
    return look.part
  }

  private func work() {
    while true {
      let next = state.withLock { state -> Look? in
        guard !state.waiting.isEmpty else {
          state.isWorking = false
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let next else { return }
      next.run()
    }
  }
}
