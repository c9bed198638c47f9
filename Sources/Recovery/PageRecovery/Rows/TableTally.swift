/// The account of one table: what was recovered, and what is known to be lost.
struct TableTally {
  /// The table's name.
  var name: String

  /// Rows in the live table.
  var recovered: Int64 = 0

  /// Live rows that are doubtful, by the reason; each is counted once.
  var doubts: [DoubtReason: Int64] = [:]

  /// Live rows that were rebuilt from an index.
  var fromIndex: Int64 = 0

  /// Live rows that were taken from a backup.
  var fromBackup: Int64 = 0

  /// Rows whose cells are known to be destroyed, or of which a part is lost.
  var destroyed: Int64 = 0

  /// Rows that were on pages that are lost, estimated by the other pages.
  var onLostPages: Int64 = 0

  /// Rows in the tables that are set aside.
  var keptApart: Int64 = 0

  /// Deleted rows found.
  var deleted: Int64 = 0

  /// Whether the number of lost rows is known exactly, from an index that is whole.
  var isExact = false

  /// Whether the indexes that are whole do not agree on that number.
  var isDisputed = false

  /// Takes account of rows that came from a backup.
  ///
  /// - Parameter inPages: those of them whose page is there and was damaged; the others were on lost pages.
  mutating func noteFromBackup(_ count: Int64, inPages: Int64) {
    recovered += count
    fromBackup += count
    destroyed = max(0, destroyed - inPages)
    onLostPages = max(0, onLostPages - (count - inPages))
  }

  /// Rows that are lost.
  var lost: Int64 { destroyed + onLostPages }
}
