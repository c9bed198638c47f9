/// What becomes of an entity or a property that is in both models under one name, while only its renaming identifiers
/// disagree.
enum NameDisagreement {
  case refuse

  /// It is removed and added anew, as Core Data does.
  case remove

  /// The name decides: for salvages, which keep what is there.
  case match
}
