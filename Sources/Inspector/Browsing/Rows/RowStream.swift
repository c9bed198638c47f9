internal import Dispatch
internal import Foundation
internal import GRDB
import PersistentStore
internal import Platform

/// All records that fit a query, handed out batch by batch as they are asked for, so that memory stays flat.
///
/// It reads on a thread and a connection of its own, so that a slow client holds up no page. ``cancel()`` it when no more
/// is wanted.
package final class RowStream: Sendable {
  /// The columns whose values the rows have.
  package let columns: [RecordColumn]

  private struct State {
    var batches: [[RecordPage.Row]] = []
    var error: RecordBrowsingError?
    var isFinished = false
    var isCancelled = false
  }

  private static let batchSize = 256

  private static let capacity = 4

  /// Begins the reading; nothing is read for a stream that nothing is taken from.
  typealias Beginning = @Sendable (RowStream) throws(RecordBrowsingError) -> Void

  private let state = Mutex(State())
  private let beginning: Mutex<Beginning?>
  private let filled = DispatchSemaphore(value: 0)
  private let free = DispatchSemaphore(value: 0)

  init(_ columns: [RecordColumn], _ begin: @escaping Beginning) {
    self.columns = columns
    beginning = Mutex(begin)
    // A semaphore that begins with places must have them all back when it goes, which one that was cancelled has not.
    for _ in 0..<Self.capacity { free.signal() }
  }

  /// The next rows; nil behind the last ones.
  ///
  /// - Throws: `time-limit`, `store-unreadable`; `busy` where too many are being read already.
  package func next() throws(RecordBrowsingError) -> [RecordPage.Row]? {
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

  /// Ends the reading; a caller that waits for rows gets none.
  package func cancel() {
    state.withLock { $0.isCancelled = true }
    free.signal()
    filled.signal()
  }

  /// Hands a batch out; false where no more is wanted.
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

  fileprivate func finish(_ error: RecordBrowsingError?) {
    state.withLock { state in
      state.error = error
      state.isFinished = true
    }
    filled.signal()
  }

  static var size: Int { batchSize }
}

extension BrowsedStore {
  /// The most characters of a value in a stream; longer ones are cut, and say so.
  static let streamLimit = 1_000_000

  /// How much text comes at once at most, beyond the last row.
  static let batchBytes = 1 << 18

  /// The most streams of a store at a time.
  private static let maximumStreams = 4

  /// Begins to read all records that fit a query, from the page of its token on.
  ///
  /// - Throws: `unknown-property`, `bad-query`, `busy` where too many are being read already.
  package func stream(_ collection: RecordCollection, _ query: RecordQuery) throws(RecordBrowsingError) -> RowStream {
    let columns = try shownColumns(of: collection, query)
    let statement = try PageStatement(collection, query, columns: columns, isLimited: false)
    try checkStreams()
    return RowStream(columns) { [self] stream throws(RecordBrowsingError) in
      try begin(stream) { [self] in try fill(stream, statement, collection) }
    }
  }

  /// - Throws: `busy` where too many streams are being read already.
  func checkStreams() throws(RecordBrowsingError) {
    guard streams.withLock({ $0 < Self.maximumStreams }) else { throw tooManyStreams }
  }

  private var tooManyStreams: RecordBrowsingError {
    RecordBrowsingError(.busy, path: path, detail: "\(Self.maximumStreams) exports of the store are under way")
  }

  /// Reads for a stream, on a thread of its own.
  func begin(
    _ stream: RowStream, _ fill: @escaping @Sendable () throws -> Void
  ) throws(RecordBrowsingError) {
    let isFree = streams.withLock { count in
      guard count < Self.maximumStreams else { return false }
      count += 1
      return true
    }
    guard isFree else { throw tooManyStreams }
    WorkThread.start(named: "records") { [self] in
      var failure: RecordBrowsingError?
      do {
        try fill()
      } catch {
        failure = Self.error(error, path)
      }
      streams.withLock { $0 -= 1 }
      stream.finish(failure)
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
        // The first rows are shown soon; later ones come in larger pieces.
        size = RowStream.size
      }
      guard !batch.isEmpty else { return }
      try annotate(&batch, stream.columns, collection)
      _ = stream.put(batch)
    }
  }
}
