import PersistentStore
internal import Platform

/// How a step will be carried out, which is known before anything runs.
///
/// A step that only adds and renames is carried out in place; every other one is a rebuild, of all tables.
struct StepDecision: Sendable {
  /// The way of the step.
  var way: MigrationWay { change == nil ? .rebuild : .inPlace }

  /// What is changed in place; nil for a rebuild.
  let change: InPlaceChange?

  /// Why the records have to be written anew; nil where they need not be.
  let reason: String?

  /// Decides by the two models, and by what is in the store where that is known.
  ///
  /// Without the contents the answer holds for a store that is just as Core Data would have made it. The app's own changes
  /// to Core Data's tables, and defaults for many records, can still lead to a rebuild.
  init(_ layout: StepLayout, contents: SourceContents? = nil) {
    do throws(InPlaceObstacle) {
      if layout.isCustom { throw InPlaceObstacle("the mapping is a custom one") }
      let change = try InPlaceChange(layout)
      if let contents, let obstacle = change.obstacle(in: contents, layout) { throw obstacle }
      self.change = change
      reason = nil
    } catch {
      change = nil
      reason = printable(error.detail)
    }
  }

  /// What happens to the records of an entity.
  func way(of mapping: EntityMapping, _ layout: StepLayout) -> EntityWay {
    guard let source = mapping.sourceEntityName else { return .added }
    guard let destination = mapping.destinationEntityName else { return .removed }
    guard mapping.kind == .copy || mapping.kind == .transform else { return .custom }
    let isSameNumber =
      layout.source.entity(named: source)?.number == layout.destination.entity(named: destination)?.number
    let isWhole = !layout.mapping.losses.contains { $0.sourceEntityName == source }
    if mapping.isIdentity, isSameNumber, isWhole { return .unchanged }
    guard change != nil else { return .rebuilt }
    return mapping.propertyMappings.allSatisfy {
      $0.source != nil && !$0.replacesNilWithDefault || $0.value == .recompute
    }
      ? .renamed : .inPlace
  }
}

/// What happens to the records of one entity in a step.
public enum EntityWay: String, Sendable, Hashable, Codable, CaseIterable {
  /// The entity is new: it gets an empty table, or none of its own.
  case added

  /// The records stay where they are, byte for byte.
  case unchanged

  /// The records stay where they are; the entity or some of its properties get other names.
  case renamed

  /// The records stay where they are; columns are added for new properties, and filled where there is a default.
  case inPlace = "in-place"

  /// The records are written anew.
  case rebuilt

  /// Expressions or a policy make the new records.
  case custom

  /// The records are deleted with their entity.
  case removed
}
