/// What speaks against rows that stand in their table: pages of another time or of another store.
struct Contradictions {
  /// The pages all of whose rows are doubtful, with the reason.
  var pages: [UInt32: DoubtReason] = [:]

  /// The rows of other pages that something contradicts, by their page.
  var rows: [UInt32: Set<Int64>] = [:]

  /// The pages of rows that are whole and do not agree with what else the store says of their rows, in ascending order.
  var stale: [UInt32] { pages.filter { $0.value == .contradicted }.keys.sorted() }
}
