internal import Dispatch
internal import GRDB
package import PersistentStore
internal import Platform

/// A stream of all matching records in batches, read on demand to keep memory flat.
///
/// Its own thread and connection keep slow clients from blocking pages. Call ``cancel()`` when done.
package final class RowStream: Sendable {
  package let columns: [RecordColumn]

  private struct State {
    var batches: [[RecordPage.Row]] = []
    var error: PersistentStoreError?
    var isFinished = false
    var isCancelled = false
  }

  /// The rows of a batch.
  static let size = 256

  private static let capacity = 4

  /// Starts the reading, on the first request for rows.
  typealias Beginning = @Sendable (RowStream) throws(PersistentStoreError) -> Void

  private let state = Mutex(State())
  private let beginning: Mutex<Beginning?>
  private let filled = DispatchSemaphore(value: 0)
  private let free = DispatchSemaphore(value: 0)

  init(_ columns: [RecordColumn], _ begin: @escaping Beginning) {
    self.columns = columns
    beginning = Mutex(begin)
    // A cancelled stream's semaphore would be deallocated below its initial value, which traps.
    for _ in 0..<Self.capacity { free.signal() }
  }

  /// - Throws: `time-limit`, `store-unreadable`; `busy` if too many streams run.
  package func next() throws(PersistentStoreError) -> [RecordPage.Row]? {
    let begin = beginning.withLock { beginning in
      defer { beginning = nil }
      return beginning
    }
    if let begin { try begin(self) }
    while true {
      let (batch, error, isOver) = state.withLock { state in
        (state.batches.isEmpty ? nil : state.batches.removeFirst(), state.error, state.isFinished || state.isCancelled)
      }
      if let batch {
        free.signal()
        return batch
      }
      if let error { throw error }
      if isOver { return nil }
      filled.wait()
    }
  }

  /// Stops reading; a waiting caller gets no rows.
  package func cancel() {
    state.withLock { $0.isCancelled = true }
    free.signal()
    filled.signal()
  }

  /// Delivers a batch; false if no more is wanted.
  func put(_ rows: [RecordPage.Row]) -> Bool {
    free.wait()
    let isWanted = state.withLock { state in
      guard !state.isCancelled else { return false }
      state.batches.append(rows)
      return true
    }
    filled.signal()
    return isWanted
  }

  fileprivate func end(with error: PersistentStoreError?) {
    state.withLock { state in
      state.error = error
      state.isFinished = true
    }
    filled.signal()
  }
}

extension BrowsedStore {
  static let streamLimit = 1_000_000

  /// The most bytes of text per batch, beyond the last row.
  static let batchBytes = 1 << 18

  /// The most concurrent streams per store.
  private static let maximumStreams = 4

  /// Streams matching records from the token's page on.
  ///
  /// - Throws: `unknown-property`, `bad-query`, `busy` if too many streams run.
  package func stream(_ collection: RecordCollection, _ query: RecordQuery) throws(PersistentStoreError) -> RowStream {
    let columns = try shownColumns(of: collection, query)
    let statement = try PageStatement(collection, query, columns: columns, isLimited: false)
    try checkStreams()
    return RowStream(columns) { [self] stream throws(PersistentStoreError) in
      try begin(stream) { [self] in try fill(stream, statement, collection) }
    }
  }

  /// - Throws: `busy` if too many streams run.
  func checkStreams() throws(PersistentStoreError) {
    guard streams.withLock({ $0 < Self.maximumStreams }) else { throw tooManyStreams }
  }

  private var tooManyStreams: PersistentStoreError {
    PersistentStoreError(
      .tooManyExports, path: path, detail: "\(Self.maximumStreams) exports of the store are under way")
  }

  func begin(_ stream: RowStream, _ fill: @escaping @Sendable () throws -> Void) throws(PersistentStoreError) {
    let isFree = streams.withLock { count in
      guard count < Self.maximumStreams else { return false }
      count += 1
      return true
    }
    guard isFree else { throw tooManyStreams }
    WorkThread.start(named: "records") { [self] in
      var failure: PersistentStoreError?
      do { try fill() } catch { failure = Self.error(error, path) }
      streams.withLock { $0 -= 1 }
      stream.end(with: failure)
    }
  }

  private func fill(_ stream: RowStream, _ statement: PageStatement, _ collection: RecordCollection) throws {
    let pool = ReaderPool([try Self.connect(path)])
    try pool.read(limit: limits.export) { database in
      var batch: [RecordPage.Row] = []
      let cursor = try database.wholeCursor(statement.sql, statement.arguments)
      var size = 16
      var bytes = 0
      while let found = try cursor.next() {
        let row = row(found, statement, stream.columns, collection, limit: Self.streamLimit)
        bytes += row.values.reduce(0) { $0 + $1.text.utf8.count }
        batch.append(row)
        guard batch.count >= size || bytes >= Self.batchBytes else { continue }
        bytes = 0
        try annotate(&batch, stream.columns, collection)
        guard stream.put(batch) else { return }
        batch.removeAll(keepingCapacity: true)
        // The first batch is small to appear soon; later ones are larger.
        size = RowStream.size
      }
      guard !batch.isEmpty else { return }
      try annotate(&batch, stream.columns, collection)
      _ = stream.put(batch)
    }
  }
}
