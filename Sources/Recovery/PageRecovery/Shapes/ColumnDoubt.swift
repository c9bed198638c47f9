/// What is not known of the order of a table's columns.
struct ColumnDoubt {
  var words: String

  /// The places of a record whose columns may be exchanged with each other, group by group; empty where any may be.
  var groups: [[Int]] = []
}
