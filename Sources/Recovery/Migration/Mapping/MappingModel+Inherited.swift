internal import ManagedObjectModel

extension MappingModel {
  /// The first mapping from each entity of the source, for looking up many.
  package var mappingsBySource: [String: EntityMapping] {
    let pairs = entityMappings.compactMap { mapping in mapping.sourceEntityName.map { ($0, mapping) } }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// The first mapping to each entity of the destination, for looking up many.
  package var mappingsByDestination: [String: EntityMapping] {
    let pairs = entityMappings.compactMap { mapping in mapping.destinationEntityName.map { ($0, mapping) } }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// The conditions without those that an entity has only because an ancestor with records has it too.
  package var conditionsWithoutInherited: [MigrationCondition] {
    let all = Set(conditions)
    let byDestination = mappingsByDestination
    return conditions.filter { condition in
      guard condition.kind != .duplicateValues, let property = condition.destinationProperty else { return true }
      let lineage = destination.lineage(of: condition.destinationEntityName)
      guard let declaring = lineage.first(where: { $0.properties[property.name] != nil })?.name,
        declaring != condition.destinationEntityName, let origin = byDestination[declaring]?.sourceEntityName
      else { return true }
      var inherited = condition
      inherited.destinationEntityName = declaring
      inherited.sourceEntityName = origin
      return !all.contains(inherited)
    }
  }
}
