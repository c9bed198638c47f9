/// What the rows of a table of the result are.
package enum OutputRole: String, Sendable, CaseIterable {
  /// One version of each row: what the store held.
  case live

  /// Other versions of live rows, and rows that do not fit among them.
  case other

  case deleted

  /// The name that the table of the result has for a table of the store.
  package func name(_ table: String) -> String {
    switch self {
    case .live: table
    case .other: "lazaret_other_\(table)"
    case .deleted: "lazaret_deleted_\(table)"
    }
  }
}
