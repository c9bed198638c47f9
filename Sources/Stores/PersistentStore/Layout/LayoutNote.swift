/// Something in a model that its store cannot be given as Core Data would, without any harm to the records.
public struct LayoutNote: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable {
    /// A derived attribute without a trigger: its values go stale until Core Data itself opens the store.
    case derivedAttributeWithoutTrigger = "derived-attribute-without-trigger"

    /// A fetch index that is left out, because it indexes an expression or something that has no column.
    case indexLeftOut = "index-left-out"

    /// A partial index that is made for all rows, because its predicate cannot be written as SQL.
    case partialIndexMadeWhole = "partial-index-made-whole"

    /// A uniqueness constraint that names a property which has no column.
    case constraintLeftOut = "constraint-left-out"
  }

  /// What kind of shortcoming it is.
  public let kind: Kind

  /// The entity that declares it.
  public let entityName: String

  /// The attribute, index or constraint it is about.
  public let subject: String

  package init(kind: Kind, entityName: String, subject: String) {
    self.kind = kind
    self.entityName = entityName
    self.subject = subject
  }
}
