import Platform
import SQLiteFormat
import Salvage

/// Gathers the recovery kit and index sums during the page check, so that no page is read twice.
final class BackupSurvey: PageVisitor {
  private let state: Mutex<State>

  private struct State {
    var kit: KitGathering?
    var rows: IndexedRows

    var failure: FileError?
  }

  init(_ content: DatabaseContent, at date: Timestamp) throws(FormatError) {
    let database = try Database(main: content)
    let rows = try IndexedRows(content, try database.schema())
    var kit: KitGathering?
    var failure: FileError?
    do throws(RecoveryKitError) {
      kit = try KitGathering(reading: content, at: date)
    } catch {
      // The backup is as good without a kit.
      failure = error.fileError
    }
    state = Mutex(State(kit: kit, rows: rows, failure: failure))
  }

  func visit(_ page: BTreePage, _ cells: [Cell], ofTree root: UInt32) throws(FormatError) {
    try state.withLock { state throws(FormatError) in
      do throws(RecoveryKitError) {
        try state.kit?.visit(page, ofTree: root)
      } catch {
        state.kit = nil
        state.failure = error.fileError
      }
      try state.rows.add(page, cells, ofTree: root)
    }
  }

  func kit() throws(FileError) -> RecoveryKit? {
    try state.withLock { state throws(FileError) in
      if let failure = state.failure { throw failure }
      do throws(RecoveryKitError) {
        return try state.kit?.finish()
      } catch {
        return nil
      }
    }
  }

  /// Returns the remaining index comparisons of these tables; of all if nil.
  func comparisons(ofTables roots: Set<UInt32>?) -> (report: IndexReport, left: [IndexScan]) {
    state.withLock { $0.rows.comparisons(ofTables: roots) }
  }
}
