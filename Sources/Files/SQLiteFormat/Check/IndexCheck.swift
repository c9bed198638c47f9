internal import Compatibility
import StoreFiles

/// The comparison of all indexes with the rows of their tables, which are added up while every page is checked, so that no
/// table is read twice.
package final class IndexCheck: PageVisitor {
  private let content: DatabaseContent
  private let rows: Mutex<IndexedRows>

  /// The least number of pages for which a second thread is worth its start.
  private static let pagesForTwo: Int64 = 256

  /// - Parameter schema: the database's.
  package init(_ database: Database, _ schema: Schema) throws(FormatError) {
    content = DatabaseContent(database)
    rows = Mutex(try IndexedRows(content, schema))
  }

  /// Adds the rows of a leaf.
  package func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError) {
    try rows.withLock { rows throws(FormatError) in try rows.add(page, cells, ofTree: root) }
  }

  /// Reads the indexes, two at once, once the check has shown all pages and has found them sound.
  ///
  /// - Parameter progress: called now and then on this thread; where it returns false, ``FormatError/Kind/cancelled`` is
  ///   thrown.
  package func finish(progress: () -> Bool) throws(FormatError) -> IndexReport {
    // The other thread may leave this one nothing to do.
    if !progress() { throw FormatError.cancelled("compare the indexes") }
    let (begun, scans) = rows.withLock { $0.comparisons() }
    let work = IndexScans(scans, of: content)
    if scans.count > 1, Int64(content.pageCount) >= Self.pagesForTwo {
      _ = try concurrently { () throws(FormatError) in
        try work.run { true }
      } _: { () throws(FormatError) in
        try work.run(progress: progress)
      }
    } else {
      try work.run(progress: progress)
    }
    var report = begun
    for found in work.reports { report.add(found) }
    return report
  }
}

/// Comparisons of indexes that threads take from each other.
private final class IndexScans: Sendable {
  private let content: DatabaseContent
  private let scans: [IndexScan]
  private let state: Mutex<State>

  private struct State {
    var next = 0
    var isStopped = false
    var reports: [IndexReport?]
  }

  init(_ scans: [IndexScan], of content: DatabaseContent) {
    self.scans = scans
    self.content = content
    state = Mutex(State(reports: scans.map { _ in nil }))
  }

  /// What was found, in the order of the indexes.
  var reports: [IndexReport] { state.withLock { $0.reports.compactMap(\.self) } }

  /// Does one comparison after the other until none is left, or until one fails on any thread.
  func run(progress: () -> Bool) throws(FormatError) {
    let database = try Database(main: content, pageSize: content.pageSize)
    while let place = take() {
      do throws(FormatError) {
        let report = try scans[place].run(in: database) { progress() && !state.withLock(\.isStopped) }
        state.withLock { $0.reports[place] = report }
      } catch {
        state.withLock { $0.isStopped = true }
        throw error
      }
    }
  }

  private func take() -> Int? {
    state.withLock { state in
      guard !state.isStopped, state.next < scans.count else { return nil }
      defer { state.next += 1 }
      return state.next
    }
  }
}
