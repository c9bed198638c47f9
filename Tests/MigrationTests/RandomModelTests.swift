import ManagedObjectModel
import Migration
import Platform
import TestSupport
import Testing

/// Models drawn from a seed: whatever they are, inference keeps its promises.
struct RandomModelTests {
  static let seed: UInt64 = 20_260_107

  @Test func everyDestinationPropertyIsMappedOnce() throws {
    let count = mutationCount(usually: 400)
    print("random models: seed \(Self.seed), \(count) pairs")
    for offset in 0..<UInt64(count) {
      var generator = SeededGenerator(seed: Self.seed &+ offset)
      let before = RandomModel.model(using: &generator)
      let after =
        Bool.random(using: &generator)
        ? RandomModel.model(using: &generator) : RandomModel.edited(before, using: &generator)
      let inference = MappingInference(from: before, to: after)
      check(inference, from: before, to: after, "seed \(Self.seed) + \(offset)")
      // And the texts are made without a crash.
      #expect(!MappingListing(inference, from: "1", to: "2").text.isEmpty)
      _ = try JSON.bytes(of: inference.payload(from: "1", to: "2"), to: "show the mapping")
      for model in [before, after] { checkIdentity(model, "seed \(Self.seed) + \(offset)") }
    }
  }

  private func check(
    _ inference: MappingInference, from before: ManagedObjectModel, to after: ManagedObjectModel, _ place: String
  ) {
    let mapping = inference.mapping
    #expect(MappingInference(from: before, to: after).mapping == mapping, "\(place)")
    let destinations = mapping.entityMappings.compactMap(\.destinationEntityName)
    let sources = mapping.entityMappings.compactMap(\.sourceEntityName)
    #expect(destinations.sorted() == after.entities.keys.sorted(), "\(place)")
    #expect(sources.sorted() == before.entities.keys.sorted(), "\(place)")
    for entity in mapping.entityMappings {
      let mapped = entity.propertyMappings.map(\.destination.description).sorted()
      let expected = entity.destinationEntityName.map { RandomModel.storedPaths(of: $0, in: after) } ?? []
      #expect(mapped == expected, "\(place): \(entity.name)")
      let origins = entity.propertyMappings.compactMap(\.source?.description)
      #expect(Set(origins).count == origins.count, "\(place): \(entity.name)")
      let known = entity.sourceEntityName.map { Set(RandomModel.storedPaths(of: $0, in: before)) } ?? []
      #expect(known.isSuperset(of: origins), "\(place): \(entity.name)")
    }
    // Nothing that was stored goes without a word.
    guard inference.refusals.isEmpty else { return }
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, before.entities[source]?.isAbstract == false else { continue }
      let lost = Set(
        mapping.losses.filter { $0.sourceEntityName == source }.map { $0.property?.description ?? "" })
      guard entity.kind != .remove else {
        #expect(lost.contains(""), "\(place): \(source)")
        continue
      }
      let kept = Set(entity.propertyMappings.compactMap(\.source?.description))
      for path in RandomModel.storedPaths(of: source, in: before, attributesOnly: true) where !kept.contains(path) {
        #expect(lost.contains(path), "\(place): \(source).\(path)")
      }
    }
  }

  private func checkIdentity(_ model: ManagedObjectModel, _ place: String) {
    // Two entities of one identifier cannot be told apart, which is refused; that is tested by hand.
    guard Set(model.entities.values.map(\.renamingIdentifier)).count == model.entities.count else { return }
    let inference = MappingInference(from: model, to: model)
    #expect(inference.mapping.entityMappings.allSatisfy { $0.kind == .copy && $0.isIdentity }, "\(place)")
    #expect(inference.mapping.losses.isEmpty && inference.mapping.conditions.isEmpty, "\(place)")
    #expect(inference.refusals.isEmpty, "\(place)")
  }
}

/// Models from a generator of random numbers.
enum RandomModel {
  static let names = ["A", "B", "C", "D", "E", "F"]
  static let properties = ["p", "q", "r", "s", "t", "u"]
  static let types: [AttributeType] = [
    .integer16, .integer32, .integer64, .decimal, .double, .float, .string, .boolean, .date, .binary, .uuid,
    .transformable,
  ]

  static func model(using generator: inout SeededGenerator) -> ManagedObjectModel {
    var entities: [Entity] = []
    let count = Int.random(in: 1...names.count, using: &generator)
    for (index, name) in names.prefix(count).enumerated() {
      // Inherits only from earlier ones, so that there is no circle.
      let parent =
        index > 0 && Int.random(in: 0..<3, using: &generator) == 0
        ? names[Int.random(in: 0..<index, using: &generator)] : nil
      var made = Entity(
        name: name, isAbstract: Int.random(in: 0..<6, using: &generator) == 0, parentName: parent)
      for property in properties where Bool.random(using: &generator) {
        // Names carry the entity, so that nothing overrides what it inherits.
        made.properties[name + property] = self.property(name + property, count, using: &generator)
      }
      if let first = made.properties.keys.min(), Int.random(in: 0..<4, using: &generator) == 0 {
        made.uniquenessConstraints = [[first]]
      }
      entities.append(made)
    }
    return ManagedObjectModel(entities: entities)
  }

  static func property(_ name: String, _ count: Int, using generator: inout SeededGenerator) -> Property {
    let isOptional = Bool.random(using: &generator)
    switch Int.random(in: 0..<8, using: &generator) {
    case 0:
      return toOne(name, names[Int.random(in: 0..<count, using: &generator)], optional: isOptional)
    case 1:
      return toMany(
        name, names[Int.random(in: 0..<count, using: &generator)], optional: isOptional,
        ordered: Bool.random(using: &generator))
    case 2: return attribute(name, .composite, elements: [leaf("x"), leaf("y", .date)])
    case 3: return attribute(name, .string, transient: true)
    default:
      let type = types.randomElement(using: &generator) ?? .string
      return attribute(
        name, type, optional: isOptional, default: Bool.random(using: &generator) ? .integer(1) : nil,
        external: type == .binary && Bool.random(using: &generator))
    }
  }

  /// The model with a few changes of the kinds that developers make.
  static func edited(_ model: ManagedObjectModel, using generator: inout SeededGenerator) -> ManagedObjectModel {
    var model = model
    let count = model.entities.count
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      guard let name = model.entities.keys.sorted().randomElement(using: &generator),
        var entity = model.entities[name]
      else { continue }
      switch Int.random(in: 0..<6, using: &generator) {
      case 0: entity.properties[name + "n"] = property(name + "n", count, using: &generator)
      case 1:
        if let gone = entity.properties.keys.sorted().randomElement(using: &generator) {
          entity.properties[gone] = nil
          entity.uniquenessConstraints = []
        }
      case 2:
        if let old = entity.properties.keys.sorted().randomElement(using: &generator),
          case .attribute(var attribute) = entity.properties[old]
        {
          entity.properties[old] = nil
          attribute.traits.explicitRenamingIdentifier = attribute.traits.renamingIdentifier
          attribute.traits.name = old + "2"
          entity.properties[old + "2"] = .attribute(attribute)
          entity.uniquenessConstraints = []
        }
      case 3: entity.isAbstract.toggle()
      case 4: entity.versionHashModifier = "m"
      default: entity.explicitRenamingIdentifier = names.randomElement(using: &generator)
      }
      model.entities[name] = entity
    }
    return model
  }

  static func storedPaths(of entity: String, in model: ManagedObjectModel, attributesOnly: Bool = false) -> [String] {
    model.properties(of: entity).values.flatMap { inherited -> [String] in
      let property = inherited.property
      if property.traits.isTransient { return [] }
      guard let attribute = property.attribute else { return attributesOnly ? [] : [property.name] }
      guard attribute.type == .composite else { return [attribute.name] }
      return attribute.compositeElements.map { "\(attribute.name).\($0.name)" }
    }.sorted()
  }
}
