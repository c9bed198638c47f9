/// What becomes of a migration that would delete something of which the version it leads to still has the name or the
/// renaming identifier.
///
/// An entity or an attribute that is simply absent from that version is not meant: leaving it out is a decision.
public enum LossRemedy: String, Sendable, Hashable, CaseIterable {
  /// The migration is refused, and the store stays as it is.
  case refuse

  /// It is carried out as Core Data would; the original is kept, and what was lost is told.
  case migrate
}
