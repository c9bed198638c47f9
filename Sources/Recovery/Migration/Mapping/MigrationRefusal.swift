/// One reason why no mapping can be inferred between two models.
public struct MigrationRefusal: Sendable, Hashable {
  /// What stands in the way.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Two entities of one model have the same renaming identifier.
    case ambiguousEntity = "ambiguous-entity"

    /// Two properties of one entity have the same renaming identifier.
    case ambiguousProperty = "ambiguous-property"

    /// The types of an attribute cannot be converted into each other.
    case incompatibleTypes = "incompatible-types"

    /// An attribute had external storage and no longer has.
    case externalStorageOff = "external-storage-off"

    /// A relationship led to many and leads to one.
    case toManyToOne = "to-many-to-to-one"

    /// Entities without a common ancestor get one.
    case mergedHierarchies = "merged-hierarchies"

    /// An entity or a property is in both models under the same name, and only its renaming identifiers disagree, so that
    /// everything in it would go.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// An entity that has records goes, although the destination still has something of its name or identifier.
    case losesEntity = "loses-entity"

    /// A table in the store that is none of the model's and that the step cannot carry over; the entity is its name.
    case foreignTable = "foreign-table"

    /// An expression of a mapping model that cannot be carried out.
    case unsupportedExpression = "unsupported-expression"
  }

  /// What stands in the way.
  public var kind: Kind

  /// The entity it is about: of the destination where there is one, else of the source.
  public var entityName: String

  /// The property it is about, where it is about one.
  public var property: PropertyPath?

  /// The reason in Core Data's words.
  public var reason: String

  /// What exactly stands against what, in a plain sentence without a full stop.
  public var detail: String

  /// A way round it, in full sentences.
  public var wayRound: String

  /// The step of a chain that it stands in the way of, such as `V1 → V2`; nil where there is only one.
  public var step: String?

  /// The code that Core Data gives it in `NSCocoaErrorDomain`, below a 134140 (format section 5.1).
  public var coreDataCode: Int { 134190 }

  /// Whether it is there to prevent a loss, and may be overruled by accepting that.
  public var preventsLoss: Bool { kind == .disagreeingIdentifiers || kind == .losesEntity }

  /// Whether Core Data refuses it too.
  public var isOfCoreData: Bool { !preventsLoss && kind != .foreignTable }

  /// A reason why no mapping can be inferred.
  public init(
    _ kind: Kind, entity: String, property: PropertyPath? = nil, reason: String, detail: String, wayRound: String
  ) {
    self.kind = kind
    entityName = entity
    self.property = property
    self.reason = reason
    self.detail = detail
    self.wayRound = wayRound
  }
}
