/// What leads to a row, by which it is decided whether anything in it stays.
enum RowStanding: Sendable, Hashable {
  /// The root of its table, and a pointer of its page.
  case reached

  /// A pointer of an older image of a page of its table, or of one that was only found to belong to it.
  case numbered

  /// Nothing: it is on a free page, or between the rows of a page, and its table is a guess.
  case left
}
