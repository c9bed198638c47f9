/// The attributes whose values a migration itself has put in on the way: losing them again is no loss.
struct MadeValues: Codable, Sendable, Hashable {
  /// `Entity.attribute` of the version that was reached last, in order.
  private(set) var names: [String] = []

  private static func name(_ entity: String, _ path: PropertyPath) -> String { "\(entity).\(path)" }

  /// Notes an attribute whose values were put in.
  mutating func add(_ entity: String, _ path: PropertyPath) {
    names = Set(names).union([Self.name(entity, path)]).sorted()
  }

  /// Whether all values of an attribute were put in.
  func contains(_ entity: String, _ path: PropertyPath) -> Bool { names.contains(Self.name(entity, path)) }

  /// What was put in once some more steps have been taken.
  func following(_ steps: some Sequence<MigrationStep>) -> MadeValues {
    var result = self
    for step in steps { result.follow(step.mapping) }
    return result
  }

  /// Goes on to the version that a mapping leads to.
  mutating func follow(_ mapping: MappingModel) {
    let before = Set(names)
    var after: Set<String> = []
    var taken: Set<String> = []
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      for property in entity.propertyMappings {
        let isMade =
          switch property.value {
          case .defaultValue: true
          case .copy, .convert, .externalize, .null, .recompute, .relationship, .inverse, .destinations, .expression:
            property.source.map { before.contains(Self.name(source, $0)) } ?? false
          }
        let name = Self.name(destination, property.destination)
        if isMade { after.insert(name) } else { taken.insert(name) }
      }
    }
    names = after.subtracting(taken).sorted()
  }
}
