/// What becomes of a migration that would delete what the version it leads to still has.
///
/// Meant are an entity or a property of the same name and kind whose renaming identifier alone differs, and an entity with
/// records of which that version still has the name or the identifier. What is simply absent from that version, or replaced
/// there by a rename, is not meant: the model says so.
public enum LossRemedy: String, Sendable, Hashable, CaseIterable {
  /// The migration is refused, and the store stays as it is.
  case refuse

  /// It is carried out as Core Data would; the original is kept, and what was lost is told.
  case migrate
}
