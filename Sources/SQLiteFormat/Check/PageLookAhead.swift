internal import Dispatch
internal import Platform

/// A thread that checks pages of a tree before the tree's walk reaches them.
///
/// The walk hands over the children of an interior page and takes them from the first on; the thread takes them from
/// the last on. So each page is checked once, whichever of the two is faster.
final class PageLookAhead: Sendable {
  private struct Batch: Sendable {
    var tree: ExpectedTree?
    var pages: [UInt32] = []
    /// The results; nil where the walk reads the page itself.
    var checks: [PageCheck?] = []

    /// The walk's next page.
    var next = 0
    /// The first page that the thread has begun; it goes down.
    var begun = 0
    /// The first page that the thread has finished.
    var done = 0

    var isAwaited = false
    var isStopped = false
  }

  private static let fewestPages: UInt32 = 256

  private static let chunk = 32

  /// The pages of a batch have at most so many bytes.
  private static let batchBytes = 512 << 10

  let limit: Int
  private let batch = Mutex(Batch())
  private let handed = DispatchSemaphore(value: 0)
  private let finished = DispatchSemaphore(value: 0)
  private let thread = DispatchGroup()

  /// Returns nil for small databases, and for those with a log or journal to apply.
  init?(_ database: Database) {
    guard database.highestPage >= Self.fewestPages, !database.isLogApplied, !database.isJournalApplied else {
      return nil
    }
    limit = max(2, Self.batchBytes / database.pageSize)
    WorkThread.start(in: thread) { [self, main = database.main, pageSize = database.pageSize] in
      do throws(FileError) {
        let own = try Database(main: main, pageSize: pageSize)
        while var chunk = nextChunk() {
          chunk.run(in: own)
          put(chunk)
        }
      } catch {
        // The walk checks all pages itself.
      }
    }
  }

  // MARK: The walk

  func hand(_ pages: [UInt32], of tree: ExpectedTree) {
    // The thread begins no more pages of an earlier batch.
    batch.withLock { $0.next = $0.begun }
    waitForThread { $0.begun == $0.done }
    batch.withLock { batch in
      batch.tree = tree
      batch.pages = pages
      while batch.checks.count < pages.count { batch.checks.append(nil) }
      (batch.next, batch.begun, batch.done) = (0, pages.count, pages.count)
    }
    handed.signal()
  }

  /// Replaces `check` with a page's if the thread has begun it; else the caller checks the page.
  func take(_ page: UInt32, into check: inout PageCheck) -> Bool {
    let isBegun = batch.withLock { batch in
      guard let place = batch.pages[batch.next...].firstIndex(of: page) else { return false }
      batch.next = place + 1
      return place >= batch.begun
    }
    guard isBegun else { return false }
    waitForThread { $0.done < $0.next }
    return batch.withLock { batch in
      let place = batch.next - 1
      guard var found = batch.checks[place].take() else { return false }
      swap(&found, &check)
      // Its storage is used again.
      batch.checks[place] = found
      return true
    }
  }

  func stop() {
    batch.withLock { $0.isStopped = true }
    handed.signal()
    thread.wait()
  }

  private func waitForThread(_ isReached: (Batch) -> Bool) {
    while !batch.withLock({ batch in
      batch.isAwaited = !isReached(batch)
      return !batch.isAwaited
    }) {
      finished.wait()
    }
  }

  // MARK: The thread

  private struct Chunk: Sendable {
    let tree: ExpectedTree
    let places: Range<Int>
    let pages: ArraySlice<UInt32>
    var checks: [PageCheck?]

    mutating func run(in database: Database) {
      for (index, page) in pages.enumerated() {
        var check = checks[index].take() ?? PageCheck()
        do throws(FileError) {
          try check.read(page, of: tree, from: database)
          checks[index] = check
        } catch {
          // The walk meets the same error, if it comes to the page.
          continue
        }
      }
    }
  }

  private func put(_ chunk: Chunk) {
    batch.withLock { batch in
      for (place, check) in zip(chunk.places, chunk.checks) { batch.checks[place] = check }
      batch.done = chunk.places.lowerBound
      if batch.isAwaited { finished.signal() }
    }
  }

  private func nextChunk() -> Chunk? {
    while true {
      var isStopped = false
      let chunk = batch.withLock { batch -> Chunk? in
        isStopped = batch.isStopped
        let left = batch.begun - batch.next
        guard !isStopped, left > 0, let tree = batch.tree else { return nil }
        let places = (batch.begun - max(1, min(Self.chunk, left / 2)))..<batch.begun
        batch.begun = places.lowerBound
        return Chunk(
          tree: tree, places: places, pages: batch.pages[places], checks: places.map { batch.checks[$0].take() })
      }
      if chunk != nil || isStopped { return chunk }
      handed.wait()
    }
  }
}
