/// What happens to a column's values.
struct FieldRule: Sendable, Hashable {
  /// The kinds of treatment.
  enum Kind: Sendable, Hashable {
    /// Values become pseudonyms.
    case replace

    /// Values stay: Core Data's own, or exempted by the caller.
    case keep

    /// Integers stay, because they lead to rows; anything else becomes a pseudonym.
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
}
