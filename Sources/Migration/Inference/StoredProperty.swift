internal import ManagedObjectModel
internal import PersistentStore

/// A stored attribute, composite leaf or stored relationship.
struct StoredProperty {
  enum Content {
    case attribute(Attribute)
    case relationship(Relationship)
  }

  /// The match key: kind and renaming identifier, preceded by those of enclosing composites.
  struct Identity: Hashable {
    let isRelationship: Bool
    let identifiers: [String]
  }

  let path: PropertyPath

  let declaringEntityName: String

  let identity: Identity

  let content: Content

  /// Whether it or an enclosing composite is optional.
  let isOptional: Bool

  let isMarked: Bool

  var key: PropertyKey { PropertyKey(entityName: declaringEntityName, name: path.name) }

  var attribute: Attribute? { if case .attribute(let attribute) = content { attribute } else { nil } }

  var relationship: Relationship? { if case .relationship(let relationship) = content { relationship } else { nil } }
}

extension StoredProperty {
  /// The stored parts of an inherited property: empty for transient or fetched ones, all leaves of composites.
  static func properties(of inherited: InheritedProperty) -> [StoredProperty] {
    let declaring = inherited.declaringEntityName
    switch inherited.property {
    case .fetchedProperty: return []
    case .relationship(let relationship):
      guard !relationship.traits.isTransient else { return [] }
      return [
        StoredProperty(
          path: PropertyPath(relationship.name), declaringEntityName: declaring,
          identity: Identity(isRelationship: true, identifiers: [relationship.traits.renamingIdentifier]),
          content: .relationship(relationship), isOptional: relationship.traits.isOptional, isMarked: false)
      ]
    case .attribute(let attribute): return leaves(of: attribute, declaredBy: declaring)
    }
  }

  /// Iterative, so that deep nesting can't exhaust the stack.
  private static func leaves(of attribute: Attribute, declaredBy declaring: String) -> [StoredProperty] {
    struct Step {
      let attribute: Attribute
      let names: [String]
      let identifiers: [String]
      let isOptional: Bool
    }
    var result: [StoredProperty] = []
    var waiting = [
      Step(
        attribute: attribute, names: [], identifiers: [attribute.traits.renamingIdentifier],
        isOptional: attribute.traits.isOptional)
    ]
    while let step = waiting.popLast() {
      let current = step.attribute
      guard !current.traits.isTransient else { continue }
      if current.type == .composite, !current.compositeElements.isEmpty, !current.isDerived {
        waiting += current.compositeElements.reversed().map { element in
          Step(
            attribute: element, names: step.names + [element.name],
            identifiers: step.identifiers + [element.traits.renamingIdentifier],
            isOptional: step.isOptional || element.traits.isOptional)
        }
      } else {
        result.append(
          StoredProperty(
            path: PropertyPath(attribute.name, leaf: step.names), declaringEntityName: declaring,
            identity: Identity(isRelationship: false, identifiers: step.identifiers), content: .attribute(current),
            isOptional: step.isOptional,
            isMarked: step.names.isEmpty && current.allowsExternalBinaryDataStorage
              && (current.type == .binary || current.type == .transformable)))
      }
    }
    return result
  }
}
