internal import ManagedObjectModel

/// A mapping as JSON: what `model diff --json` prints.
///
/// Keys may be added, never changed. What is not there is null or left out.
public struct MappingJSON: Codable, Sendable, Hashable {
  /// What becomes of one entity.
  public struct Entity: Codable, Sendable, Hashable {
    /// `add`, `remove`, `copy`, `transform`, `custom` or `undefined`.
    public var kind: String

    /// The entity of the source.
    public var source: String?

    /// The entity of the destination.
    public var destination: String?

    /// What becomes of each property, inherited ones included.
    public var properties: [Property]
  }

  /// Where one property's value comes from.
  public struct Property: Codable, Sendable, Hashable {
    /// The property of the destination.
    public var destination: String

    /// `copy`, `convert`, `externalize`, `default`, `null`, `recompute`, `relationship`, `inverse` or `expression`.
    public var value: String

    /// The property of the source.
    public var source: String?

    /// The types of a conversion, as model sources name them.
    public var fromType: String?

    /// The type that a conversion leads to.
    public var toType: String?

    /// Whether the default takes the place of nil; left out where not.
    public var replacesNilWithDefault: Bool?
  }

  /// Something that is lost.
  public struct Loss: Codable, Sendable, Hashable {
    /// What kind of loss it is, such as `removed-attribute`.
    public var kind: String

    /// The entity of the source.
    public var entity: String

    /// The property of the source.
    public var property: String?

    /// The loss in words.
    public var text: String
  }

  /// Something that depends on the records.
  public struct Condition: Codable, Sendable, Hashable {
    /// What kind of condition it is, such as `missing-attribute-value`.
    public var kind: String

    /// `fails` or `loses`.
    public var effect: String

    /// The entity of the destination.
    public var entity: String

    /// The property of the destination.
    public var property: String?

    /// The condition in words.
    public var text: String
  }

  /// Something that stands in the way.
  public struct Refusal: Codable, Sendable, Hashable {
    /// What kind of refusal it is, such as `incompatible-types`.
    public var kind: String

    /// The code that Core Data gives it.
    public var coreDataCode: Int

    /// The entity.
    public var entity: String

    /// The property.
    public var property: String?

    /// The reason in Core Data's words.
    public var reason: String

    /// What exactly stands against what.
    public var detail: String

    /// A way round it.
    public var wayRound: String
  }

  /// The version it starts from.
  public var from: String

  /// The version it leads to.
  public var to: String

  /// Whether it can be carried out without a custom mapping.
  public var inferable: Bool

  /// The entities of either version.
  public var entities: [Entity]

  /// What is lost, once for each entity that loses it.
  public var losses: [Loss]

  /// What depends on the records.
  public var conditions: [Condition]

  /// What stands in the way.
  public var refusals: [Refusal]

  /// The mapping between two versions.
  public init(_ inference: MappingInference, from source: String, to destination: String) {
    let mapping = inference.mapping
    from = source
    to = destination
    inferable = inference.refusals.isEmpty
    entities = mapping.entityMappings.map { entity in
      Entity(
        kind: "\(entity.kind)", source: entity.sourceEntityName, destination: entity.destinationEntityName,
        properties: entity.propertyMappings.map(Self.property))
    }
    losses = mapping.losses.map {
      Loss(kind: $0.kind.rawValue, entity: $0.sourceEntityName, property: $0.property?.description, text: $0.text)
    }
    conditions = mapping.conditions.map {
      Condition(
        kind: $0.kind.rawValue, effect: $0.effect.rawValue, entity: $0.destinationEntityName,
        property: $0.destinationProperty?.description, text: $0.text)
    }
    refusals = inference.refusals.map {
      Refusal(
        kind: $0.kind.rawValue, coreDataCode: $0.coreDataCode, entity: $0.entityName,
        property: $0.property?.description, reason: $0.reason, detail: $0.detail, wayRound: $0.wayRound)
    }
  }

  private static func property(_ mapping: PropertyMapping) -> Property {
    var result = Property(
      destination: mapping.destination.description, value: mapping.value.word, source: mapping.source?.description)
    if case .convert(_, let from, let to) = mapping.value {
      result.fromType = from.sourceName
      result.toType = to.sourceName
    }
    if mapping.replacesNilWithDefault { result.replacesNilWithDefault = true }
    return result
  }
}

extension PropertyMapping.Value {
  /// The word that stands for it in JSON.
  package var word: String {
    switch self {
    case .copy: "copy"
    case .convert: "convert"
    case .externalize: "externalize"
    case .defaultValue: "default"
    case .null: "null"
    case .recompute: "recompute"
    case .relationship: "relationship"
    case .inverse: "inverse"
    case .destinations: "destinations"
    case .expression: "expression"
    }
  }
}
