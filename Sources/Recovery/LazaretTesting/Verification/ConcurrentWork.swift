internal import Compatibility
internal import StoreFiles

/// Pieces of work that have nothing in common, several at once.
struct ConcurrentWork<Piece: Sendable>: Sendable {
  private let count: Int
  private let body: @Sendable (Int) throws -> Piece

  /// Where the work stands: the next piece, what came of those that are done, and the first failure.
  private struct State: Sendable {
    var next = 0
    var results: [Int: Piece] = [:]
    var failure: (number: Int, error: any Error)?
  }

  /// Work of several pieces, numbered from 0.
  init(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Piece) {
    self.count = count
    self.body = body
  }

  /// Does all pieces on so many threads, and returns what came of each in their order.
  ///
  /// - Throws: what the first piece that failed threw; no further piece is begun then.
  func run(threads: Int) throws -> [Piece] {
    let state = Mutex(State())
    Self.run(min(max(1, threads), max(1, count))) { [count, body] in
      while true {
        let number = state.withLock { state -> Int? in
          guard state.failure == nil, state.next < count else { return nil }
          state.next += 1
          return state.next - 1
        }
        guard let number else { return }
        do {
          let piece = try body(number)
          state.withLock { $0.results[number] = piece }
        } catch {
          state.withLock { state in
            if state.failure.map({ number < $0.number }) ?? true { state.failure = (number, error) }
          }
        }
      }
    }
    return try state.withLock { state in
      if let failure = state.failure { throw failure.error }
      return (0..<count).compactMap { state.results[$0] }
    }
  }

  /// Does the same on so many threads, and waits for all of them.
  private static func run(_ threads: Int, _ worker: @escaping @Sendable () -> Void) {
    guard threads > 1 else { return worker() }
    _ = concurrently(worker) { run(threads - 1, worker) }
  }
}
