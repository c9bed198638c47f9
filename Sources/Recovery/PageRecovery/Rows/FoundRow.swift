struct CellPlace: Hashable {
  var page: UInt32

  /// The offset of its payload on it.
  var payload: Int
}

/// A row of a table, as it stands on a page, before it is written.
struct FoundRow {
  /// The number of its tree.
  var tree: Int

  /// The page that its cell is on.
  var page: UInt32

  var cell: LeafCell

  /// Why it is doubtful; nil where it is not.
  var doubtReason: DoubtReason?
}
