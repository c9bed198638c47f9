/// How far a row of a damaged store is to be believed, and whether it was one of its records at all.
package enum RowState: String, Sendable, Hashable, CaseIterable {
  /// A cell of a page that its table leads to.
  case certain

  /// Its page or its place is told by evidence: found by content, rebuilt from an index.
  case probable

  /// A live row of which something contradicts something else.
  case doubtful

  /// A record that was deleted; its bytes were still there.
  case deleted

  /// Written by a transaction that never ended.
  case uncommitted

  /// Another version of a record, or a row that does not fit among the live ones.
  case version

  /// What was found of a live row of the same cell, of which a part is lost; no row besides it.
  case part

  /// Whether it is counted as a record of the store.
  package var isLive: Bool { self == .certain || self == .probable || self == .doubtful }

  /// A word on it for people.
  package var words: String {
    switch self {
    case .certain: "certain"
    case .probable: "probable"
    case .doubtful: "doubtful"
    case .deleted: "deleted"
    case .uncommitted: "not committed"
    case .version: "another version"
    case .part: "part of a record"
    }
  }
}
