/// Something that a model asks for and a generated store does not keep.
///
/// Records that break such a rule are still records that Core Data reads; only saving them would be refused.
public struct GenerationNote: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable {
    /// Text need not match the attribute's pattern.
    case pattern

    /// Values need not obey the attribute's predicates.
    case predicate

    /// The bounds of a mandatory attribute exclude each other, or leave no room for the uniqueness asked for.
    case bounds

    /// A mandatory relationship leads nowhere for some records, because the model's counts cannot all be kept.
    case relationship
  }

  /// What kind of rule is broken.
  public let kind: Kind

  /// The entity that declares the property.
  public let entityName: String

  /// The property.
  public let propertyName: String
}
