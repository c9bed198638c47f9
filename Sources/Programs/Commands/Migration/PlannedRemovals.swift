import Migration
import StoreCoordination

/// The properties that the versions of a model drop one after the other, as their makers wanted: what a migration to the current
/// version deletes of them is told, and is no surprise.
///
/// A property counts where a version that lacks it follows one that has it, no later version has it again, and none has another one
/// whose renaming identifier leads back to it. What a person asks for beside that (an older version, a way through certain versions,
/// a loss that was to be accepted) is never planned.
struct PlannedRemovals {
  private let bundle: ModelBundle?

  /// - Parameters:
  ///   - bundle: the model; nil for a store without one.
  ///   - target: the version that was asked for; nil for the current one.
  ///   - way: how the migration was asked to go.
  init(_ bundle: ModelBundle?, target: String? = nil, _ way: MigrationWayOptions) {
    let isUsual = target == nil && way.via.isEmpty && way.lossRemedy == .refuse
    self.bundle = isUsual ? bundle : nil
  }

  /// Whether a loss is the removal of a property that the model plans.
  func contains(_ loss: MigrationPlan.Finding) -> Bool {
    let kinds: [MigrationLoss.Kind] = [.removedAttribute, .removedRelationship]
    guard let bundle, let name = loss.property, kinds.contains(where: { $0.rawValue == loss.kind }),
      let current = bundle.versions.firstIndex(where: { $0.name == bundle.current.name })
    else { return false }
    // An entity that has another name in some version is left out: what is not certain is no plan.
    let order = bundle.versions[...current]
    guard order.allSatisfy({ $0.model.entity(named: loss.entity) != nil }),
      let last = order.lastIndex(where: { Self.has(name, loss.entity, $0) }), last < current
    else { return false }
    return !(bundle.versions + bundle.unorderedVersions).contains { version in
      version.model.properties(of: loss.entity).contains { property, inherited in
        property != name && inherited.property.traits.renamingIdentifier == name
      }
    }
  }

  private static func has(_ property: String, _ entity: String, _ version: ModelVersion) -> Bool {
    version.model.properties(of: entity)[property] != nil
  }
}
