public import Platform

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

/// What looks at the pages of b-trees while every page is checked, so that they are not read again for it.
package protocol PageVisitor: Sendable {
  /// Called with each page of a b-tree that is sound by itself, and with all of its cells.
  ///
  /// The pages of one tree come one behind the other, from the root to the leaves, the leaves in the order of their keys.
  /// Whether the tree as a whole is sound only the check's report tells.
  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError)
}

/// What the comparison of indexes with the rows of their tables found.
public struct IndexReport: Sendable {
  /// What is wrong: entries that are not those of the rows, or not in order.
  public var findings = Findings()

  /// How many indexes were compared with the rows of their tables.
  public var compared = 0

  /// The indexes whose entries cannot be computed here: of expressions, with a condition, of tables WITHOUT ROWID, and those
  /// whose definition cannot be read.
  public var uncompared: [String] = []

  /// Whether nothing is wrong.
  public var isSound: Bool { !findings.hasDamage }

  /// Adds what was found of further indexes.
  package mutating func add(_ other: IndexReport) {
    findings.append(contentsOf: other.findings)
    compared += other.compared
    uncompared += other.uncompared
  }
}

/// A failure to read a database at all; damage that was met on the way is a ``Finding`` instead.
public typealias FormatError = Failure<FormatErrorKind>

/// Why a database cannot be read at all.
public enum FormatErrorKind: String, FailureKind {
  /// No page size can be told from the file, its log or its journal.
  case notADatabase = "not-a-database"

  /// The caller's progress function asked to stop.
  case cancelled = "cancelled"

  /// The bytes could not be read; its cause says why.
  case reading = "read-failed"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the database"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .notADatabase: "Check that it is the right file."
    case .cancelled: "Run the same command again at any time."
    case .reading: "Check the path and its permissions."
    }
  }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .reading }
}

extension FormatError {
  /// The error of a read that failed.
  public init(_ error: FileError) { self.init(.reading, because: error) }

  package static func cancelled(_ operation: String) -> FormatError {
    FormatError(.cancelled, operation: operation, detail: "it was cancelled")
  }
}
