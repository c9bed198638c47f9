import Dispatch
import Foundation
import PersistentStore
import Platform
import SQLiteFormat
import Salvage

/// The check of a store during packing, on its own thread.
///
/// It checks every page, counts records, makes the recovery kit, and compares indexes with their tables' rows, several
/// at once.
final class StoreCheck: Sendable {
  /// The indexes to compare.
  enum Scope: Sendable {
    case whole

    /// The indexes of tables with these pages; all if the schema's digest differs, as an index may be new.
    case changed([PageRun], schema: String?)
  }

  struct Outcome: Sendable {
    /// Includes damaged indexes.
    var examination: Examination

    var uncompared: [String] = []

    var schema: String?

    var kit: [UInt8]?
  }

  private let content: DatabaseContent
  private let snapshot: StoreSnapshot
  private let job: BackupJob
  private let state = Mutex(State())
  private let scoped = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  private struct State {
    var isStopped = false
    var scope: Scope?
    var isDamaged = false
    var result: Result<Outcome, BackupError>?
    /// The error of yielding to a writer.
    var failure: FileError?
    var progress: (done: Int64, total: Int64) = (0, 1)
  }

  /// - Parameter scope: the indexes to compare; nil if set later by ``compare(_:)``.
  init(_ content: DatabaseContent, _ snapshot: StoreSnapshot, of job: BackupJob, scope: Scope?) {
    self.content = content
    self.snapshot = snapshot
    self.job = job
    state.withLock { $0.scope = scope }
    WorkThread.start { self.run() }
  }

  // MARK: The caller's thread

  func compare(_ scope: Scope) {
    state.withLock { state in if state.scope == nil { state.scope = scope } }
    scoped.signal()
  }

  var isDamaged: Bool { state.withLock { $0.isDamaged } }

  /// Throws if the store is damaged or unreadable.
  func stopUselessWork() throws {
    let (isDamaged, result) = state.withLock { ($0.isDamaged, $0.result) }
    if isDamaged {
      throw BackupError(.store, operation: "back up the store", path: job.files.main, detail: "it is damaged")
    }
    if case .failure(let error) = result { throw error }
  }

  func outcome() throws -> Outcome {
    while ended.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
      let progress = state.withLock { $0.progress }
      try job.advance(.checking, progress.done, progress.total)
    }
    ended.signal()
    guard let result = state.withLock({ $0.result }) else { throw BackupError.cancelled("back up the store") }
    return try result.get()
  }

  /// Stops the check and waits, so that the snapshot can be released.
  func stop() {
    state.withLock { $0.isStopped = true }
    scoped.signal()
    ended.wait()
    ended.signal()
  }

  // MARK: Its own thread

  private func run() {
    let result = Result { try check() }.mapError { BackupError(any: $0) }
    state.withLock { state in
      state.result = result
      if case .success(let outcome) = result, outcome.examination.verdict == .damaged { state.isDamaged = true }
    }
    ended.signal()
  }

  private func check() throws -> Outcome {
    let survey = try reading { () throws(FileError) in try BackupSurvey(content, at: job.id.date) }
    var outcome = Outcome(examination: try examine(survey))
    guard outcome.examination.verdict != .damaged, let report = outcome.examination.health.integrity else {
      return outcome
    }
    outcome.kit = try kit(survey)
    let schema = report.schema.digest
    outcome.schema = schema
    guard let scope = waitForScope() else { throw BackupError.cancelled("back up the store") }
    var indexes = try compareIndexes(survey, Self.tables(of: scope, report, schema: schema))
    try reading { () throws(FileError) in try indexes.askSQLite(about: report.schema, of: content) { !self.goesOn() } }
    outcome.uncompared = indexes.uncompared
    if !indexes.isSound {
      outcome.examination.verdict = .damaged
      outcome.examination.reason = .damagedIndexes(
        indexes.findings.indexesAlone(of: report.schema) ?? [], indexes.findings)
    }
    return outcome
  }

  /// Reads the store; the errors are the check's.
  private func reading<Value>(_ body: () throws(FileError) -> Value) throws -> Value {
    do throws(FileError) { return try body() } catch { throw failure(error) }
  }

  private func examine(_ survey: BackupSurvey) throws -> Examination {
    do {
      return try Examiner(fileSystem: job.surroundings.fileSystem).examine(
        main: content, log: nil, journal: nil, of: job.files, members: snapshot.members,
        options: .init(depth: .full) { [self] done, total in
          state.withLock { $0.progress = (Int64(done), Int64(max(1, total))) }
          return goesOn()
        }, visitor: survey)
    } catch let error as FileError {
      throw failure(error)
    } catch {
      throw BackupError(
        .store, operation: "check the store", path: job.files.main, detail: "an unforeseen failure",
        hint: "Please report this, with what you did.")
    }
  }

  private func kit(_ survey: BackupSurvey) throws -> [UInt8]? {
    guard var kit = try survey.kit() else { return nil }
    kit.generation = job.request.lineage?.generation
    do {
      let bytes = try kit.bytes()
      return Int64(bytes.count) <= BackupJob.kitLimit(content) ? bytes : nil
    } catch {
      // The backup is as good without a kit.
      return nil
    }
  }

  /// Compares the indexes with their tables' rows, two at once if few pages are packed.
  private func compareIndexes(_ survey: BackupSurvey, _ tables: Set<UInt32>?) throws -> IndexReport {
    let scans = survey.scans(ofTables: tables)
    var totals: [IndexTotals] = []
    // A whole store's packing leaves no processor for a second thread.
    let threads = tables == nil ? 1 : BlockPacker.threads(isInUse: snapshot.isInUse)
    try BlockPipeline.run(count: scans.count, threads: threads) { () throws -> ((Int) throws -> IndexTotals) in
      let database = try self.reading { () throws(FileError) in try Database(main: self.content) }
      return { (index) throws -> IndexTotals in
        try self.reading { () throws(FileError) in try scans[index].run(in: database) { self.goesOn() } }
      }
    } deliver: { _, found in
      totals.append(found)
    }
    return survey.report(totals, ofTables: tables)
  }

  private func waitForScope() -> Scope? {
    while true {
      let (scope, isStopped) = state.withLock { ($0.scope, $0.isStopped) }
      if isStopped { return nil }
      if let scope { return scope }
      scoped.wait()
    }
  }

  private static func tables(of scope: Scope, _ report: IntegrityReport, schema: String) -> Set<UInt32>? {
    guard case .changed(let runs, let earlier) = scope, earlier == schema else { return nil }
    var roots: Set<UInt32> = []
    for run in runs {
      for page in run.first..<(run.first + run.count) {
        if let root = report.ownership.root(of: page) { roots.insert(root) }
      }
    }
    for index in report.schema.indexes where roots.contains(index.rootPage) {
      if let table = report.schema.table(named: index.tableName) { roots.insert(table.rootPage) }
    }
    return roots
  }

  /// Yields to a waiting writer; returns whether to go on.
  private func goesOn() -> Bool {
    do throws(FileError) { try snapshot.giveWay() } catch {
      state.withLock { $0.failure = error }
      return false
    }
    return !state.withLock { $0.isStopped }
  }

  private func failure(_ error: FileError) -> BackupError {
    if let failure = state.withLock({ $0.failure }) { return BackupError(failure) }
    if error.kind == .cancelled { return .cancelled("back up the store") }
    return BackupError(error, store: job.files.main)
  }
}

extension Schema {
  /// The digest of tables and indexes.
  ///
  /// Changes of page 1 cannot replace it, as every transaction changes its header.
  fileprivate var digest: String {
    var digest = RunningDigest()
    for entry in entries {
      let words = [entry.kind.rawValue, entry.name, entry.tableName, String(entry.rootPage), entry.sql ?? ""]
      for word in words { digest.add(Array("\(word.utf8.count):\(word)".utf8)) }
    }
    return digest.hexadecimal
  }
}

/// Gathers the recovery kit and index sums during the page check, so that no page is read twice.
final class BackupSurvey: PageVisitor {
  private let state: Mutex<State>

  private struct State {
    var kit: KitGathering?
    var rows: IndexedRows

    var failure: FileError?
  }

  init(_ content: DatabaseContent, at date: Timestamp) throws(FileError) {
    let rows = try IndexedRows(content, try Database(main: content).schema())
    var kit: KitGathering?
    var failure: FileError?
    do { kit = try KitGathering(reading: content, at: date) } catch {
      // The backup is as good without a kit.
      failure = SalvageError(kit: error).fileError
    }
    state = Mutex(State(kit: kit, rows: rows, failure: failure))
  }

  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FileError) {
    try state.withLock { state throws(FileError) in
      do { try state.kit?.visit(page, ofTree: root) } catch {
        state.kit = nil
        state.failure = SalvageError(kit: error).fileError
      }
      try state.rows.add(page, cells, ofTree: root)
    }
  }

  func kit() throws(FileError) -> RecoveryKit? {
    try state.withLock { state throws(FileError) in
      if let failure = state.failure { throw failure }
      do { return try state.kit?.takeKit() } catch { return nil }
    }
  }

  /// Returns the scans of these tables' indexes; of all if nil.
  func scans(ofTables roots: Set<UInt32>?) -> [IndexScan] {
    state.withLock { $0.rows.scans(ofTables: roots) }
  }

  func report(_ totals: [IndexTotals], ofTables roots: Set<UInt32>?) -> IndexReport {
    state.withLock { $0.rows.report(totals, ofTables: roots) }
  }
}
