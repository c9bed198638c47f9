internal import ManagedObjectModel

/// A rename that no single step shows: each of the versions between names only the one before.
///
/// Where V2 renames `a` to `b`, and V3 names `b` as what its `c` was, the two models V1 and V3 alone do not tell that `a`
/// became `c`.
public struct CarriedRename: Sendable, Hashable {
  /// The entity of the source.
  public var sourceEntityName: String

  /// The entity of the destination.
  public var destinationEntityName: String

  /// The property of the source; nil where the entity itself is meant.
  public var sourceProperty: PropertyPath?

  /// The property of the destination.
  public var destinationProperty: PropertyPath?

  /// What became what, such as `Car.a → Car.c`.
  public var text: String {
    func place(_ entity: String, _ property: PropertyPath?) -> String {
      entity + (property.map { ".\($0)" } ?? "")
    }
    return place(sourceEntityName, sourceProperty) + " → " + place(destinationEntityName, destinationProperty)
  }
}

/// Follows entities and properties by their names through consecutive versions.
struct RenameChain {
  /// Something by what it is called and known as.
  private struct Named {
    let name: String
    let identifier: String

    /// What it names as what it was; nil where it says nothing.
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

  /// The models of the chain, oldest first: the source, those between, the destination.
  let models: [ManagedObjectModel]

  init(from source: ManagedObjectModel, through between: [ManagedObjectModel], to destination: ManagedObjectModel) {
    models = [source] + between + [destination]
  }

  /// What an entity of the source is called in each version; nil where it ends on the way.
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

  /// What a property of an entity is called in the destination, found by the entity's names; nil where it ends on the way,
  /// or where an attribute becomes a relationship.
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

  /// What one thing is called in the next version: that of the same identifier, else the one that names it as what it was, else the
  /// one of the same name that says no more what it was.
  private static func heir(of one: Named, among siblings: [Named], in next: [Named]) -> String? {
    let same = next.filter { $0.identifier == one.identifier }
    if !same.isEmpty { return same.count == 1 ? same[0].name : nil }
    // What has an identifier of its own and names a sibling's is that sibling's heir.
    guard !siblings.contains(where: { $0.identifier == one.name }) else { return nil }
    let naming = next.filter { $0.former == one.name }
    guard naming.isEmpty else { return naming.count == 1 ? naming[0].name : nil }
    // An identifier that was dropped once the rename was done leaves the thing what it is.
    return one.former == nil ? nil : next.first { $0.name == one.name && $0.former == nil }?.name
  }
}
