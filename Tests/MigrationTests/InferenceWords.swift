import Migration
@_exported public import ModelMaking

extension MappingInference {
  /// The value of a property of the destination.
  func value(_ entity: String, _ property: PropertyPath) -> PropertyMapping.Value? {
    mapping.entityMappings(to: entity).first?.propertyMapping(of: property)?.value
  }

  /// The kinds of the conditions with their places, such as `missing-relationship Car.owner`.
  var conditionWords: [String] { mapping.conditions.map { "\($0.kind.rawValue) \($0.place)" } }

  /// The kinds of the losses with their places, such as `removed-attribute Car.color`.
  var lossWords: [String] { mapping.losses.map { "\($0.kind.rawValue) \($0.place)" } }

  /// The kinds of the refusals with their places, such as `incompatible-types Car.color`.
  var refusalWords: [String] {
    refusals.map { "\($0.kind.rawValue) \($0.entityName)\($0.property.map { ".\($0)" } ?? "")" }
  }

  /// Whether nothing is lost, nothing depends on the data and nothing is refused.
  var isHarmless: Bool { refusals.isEmpty && mapping.losses.isEmpty && mapping.conditions.isEmpty }
}
