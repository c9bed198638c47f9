internal import ManagedObjectModel

/// A rename found only through intermediate versions.
///
/// If V2 renames `a` to `b`, and V3 gives `b` as the former name of `c`, the models V1 and V3 alone don't show that `a`
/// became `c`.
public struct CarriedRename: Sendable, Hashable {
  /// The source entity.
  public var sourceEntityName: String

  /// The destination entity.
  public var destinationEntityName: String

  /// The source property; nil for the entity itself.
  public var sourceProperty: PropertyPath?

  /// The destination property.
  public var destinationProperty: PropertyPath?

  /// The rename, such as `Car.a → Car.c`.
  public var text: String {
    func place(_ entity: String, _ property: PropertyPath?) -> String {
      entity + (property.map { ".\($0)" } ?? "")
    }
    return place(sourceEntityName, sourceProperty) + " → " + place(destinationEntityName, destinationProperty)
  }
}

struct RenameChain {
  private struct Named {
    let name: String
    let identifier: String

    let former: String?

    init(_ entity: Entity) {
      name = entity.name
      identifier = entity.renamingIdentifier
      former = entity.explicitRenamingIdentifier
    }

    init(_ property: Property) {
      name = property.name
      identifier = property.traits.renamingIdentifier
      former = property.traits.explicitRenamingIdentifier
    }
  }

  /// The models, oldest first, source and destination included.
  let models: [ManagedObjectModel]

  init(from source: ManagedObjectModel, through between: [ManagedObjectModel], to destination: ManagedObjectModel) {
    models = [source] + between + [destination]
  }

  /// The entity's names; nil if removed on the way.
  func names(of entity: String) -> [String]? {
    var names = [entity]
    for (model, next) in zip(models, models.dropFirst()) {
      guard let name = names.last, let found = model.entities[name] else { return nil }
      let heir = Self.heir(
        of: Named(found), among: model.entities.values.map { Named($0) }, in: next.entities.values.map { Named($0) })
      guard let heir else { return nil }
      names.append(heir)
    }
    return names
  }

  /// The property's last name; nil if removed or of another kind.
  func destinationName(of property: String, entities: [String]) -> String? {
    var current = property
    for (index, (model, next)) in zip(models, models.dropFirst()).enumerated() {
      let before = model.properties(of: entities[index])
      let after = next.properties(of: entities[index + 1])
      guard let found = before[current]?.property else { return nil }
      let isRelationship = found.relationship != nil
      func candidates(_ properties: [String: InheritedProperty]) -> [Named] {
        properties.values.map(\.property)
          .filter { ($0.attribute != nil || $0.relationship != nil) && ($0.relationship != nil) == isRelationship }
          .map { Named($0) }
      }
      let heir = Self.heir(of: Named(found), among: candidates(before), in: candidates(after))
      guard let heir else { return nil }
      current = heir
    }
    return current
  }

  /// The next name: by identifier, else by former name, else unchanged.
  private static func heir(of one: Named, among siblings: [Named], in next: [Named]) -> String? {
    let same = next.filter { $0.identifier == one.identifier }
    if !same.isEmpty { return same.count == 1 ? same[0].name : nil }
    // A sibling with this name as its identifier is the heir instead.
    guard !siblings.contains(where: { $0.identifier == one.name }) else { return nil }
    let naming = next.filter { $0.former == one.name }
    guard naming.isEmpty else { return naming.count == 1 ? naming[0].name : nil }
    // Dropping an identifier later is no rename.
    return one.former == nil ? nil : next.first { $0.name == one.name && $0.former == nil }?.name
  }
}
