/// The reaction to a migration that would delete what the target still has.
///
/// This means same-named entities or properties with different renaming identifiers, and entities with records that the
/// target has by name or identifier. Data the target simply lacks, or replaces by a rename, is excluded.
public enum LossRemedy: String, Sendable, Hashable, CaseIterable {
  case refuse

  /// Migrate as Core Data would, keep the original and report the loss.
  case migrate
}
