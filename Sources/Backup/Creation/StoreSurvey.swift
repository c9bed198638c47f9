import Platform
import SQLiteFormat
import Salvage

/// What is gathered of a store's pages while each of them is checked, so that none is read again for it: the recovery kit,
/// and what the rows of tables add up to for their indexes.
final class StoreSurvey: PageVisitor {
  private let state: Mutex<State>

  private struct State {
    /// Nil where none can be made.
    var kit: KitGathering?
    var rows: IndexedRows

    /// What reading the store for the kit failed with.
    var failure: FileError?
  }

  /// - Throws: what reading the store's schema says.
  init(_ content: DatabaseContent, at date: Timestamp) throws(FormatError) {
    let database = try Database(main: content)
    let rows = try IndexedRows(content, try database.schema())
    var kit: KitGathering?
    var failure: FileError?
    do throws(RecoveryKitError) {
      kit = try KitGathering(reading: content, at: date)
    } catch {
      // The backup is as good without.
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

  /// The recovery kit, where the check has found nothing; nil where none can be made.
  func kit() throws(FileError) -> RecoveryKit? {
    try state.withLock { state throws(FileError) in
      if let failure = state.failure { throw failure }
      do throws(RecoveryKitError) {
        return try state.kit?.finish()
      } catch {
        // The backup is as good without.
        return nil
      }
    }
  }

  /// What is left of comparing indexes, of the tables with these root pages; of all if nil.
  func comparisons(ofTables roots: Set<UInt32>?) -> (report: IndexReport, left: [IndexScan]) {
    state.withLock { $0.rows.comparisons(ofTables: roots) }
  }
}
