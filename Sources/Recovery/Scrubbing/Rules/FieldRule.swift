/// What happens to a column's values.
struct FieldRule: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case replace

    /// Values stay: the caller exempted them.
    case keep

    /// Values stay on pages that the root of this very table leads to: bookkeeping of Core Data or of SQLite.
    case own

    /// What seems to be bookkeeping, elsewhere: words of the schema and numbers of up to six digits stay.
    case word

    /// Integers lead to rows: those of up to six digits stay, others where the software numbered the rows and not the app.
    case key

    /// Numbers are dates and are shifted; anything else becomes a pseudonym.
    case date

    /// Values are overwritten with the same filling everywhere.
    case drop

    /// The property list of Core Data's metadata, of which only what apps put in is replaced.
    case metadata
  }

  var kind = Kind.replace

  /// Whether an index has the column, so that its values keep their order.
  var isOrdered = false

  /// The numbers that it shares its pseudonyms with: a place in ``NumberDomains``, or -1 for none.
  var domain = -1

  /// Whether it is a copy of a column's values in an index, which says nothing of how many there are.
  var isCopy = false

  /// The rule for a row, by what leads to it.
  func rule(for standing: RowStanding) -> FieldRule {
    guard standing != .reached else { return self }
    var rule = self
    switch kind {
    case .own: rule.kind = .word
    case .keep where standing == .left, .metadata where standing == .left: rule.kind = .replace
    case .key where standing == .left && domain < 0: rule.kind = .word
    case .keep, .key, .replace, .word, .date, .drop, .metadata: break
    }
    return rule
  }
}
