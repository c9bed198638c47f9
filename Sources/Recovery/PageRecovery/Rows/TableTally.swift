/// The account of one table: what was recovered, and what is known to be lost.
struct TableTally {
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

  /// Those of them of which the part that is to be believed is a live row: they are no rows besides it.
  var keptParts: Int64 = 0

  /// The rowids of rows that were found whole and are not live ones, because their entity number is none of the table's.
  var ofUnknownEntity: Set<Int64> = []

  var deleted: Int64 = 0

  /// Whether the number of lost rows is counted by an index that is whole and was held against the rows.
  var isCounted = false

  /// Whether the indexes that are whole do not agree on that count.
  var isDisputed = false

  /// Whether an index that is whole lists rows that are not there, and contradicts those that are so that they are doubtful.
  var isContradicted = false

  /// The rowids that no row had and that indexes list which nothing speaks against, in ascending order.
  var listed: [Int64] = []

  /// Takes account of rows that came from a backup.
  ///
  /// - Parameter inPages: those of them whose page is there and was damaged; the others were on lost pages.
  mutating func noteFromBackup(_ count: Int64, inPages: Int64) {
    recovered += count
    fromBackup += count
    destroyed = max(0, destroyed - inPages)
    onLostPages = max(0, onLostPages - (count - inPages))
  }

  var lost: Int64 { destroyed + onLostPages }
}
