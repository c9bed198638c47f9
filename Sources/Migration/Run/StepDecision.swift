import PersistentStore
internal import Platform

/// The method of a step: in place for additions and renames, else a rebuild.
struct StepDecision: Sendable {
  var way: MigrationWay { change == nil ? .rebuild : .inPlace }

  /// Nil for a rebuild.
  let change: InPlaceChange?

  let reason: String?

  /// Decides by the models and, if known, the contents.
  ///
  /// App changes to Core Data's tables, and defaults for many records, may need a rebuild.
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

/// The treatment of an entity's records.
public enum EntityWay: String, Sendable, Hashable, Codable, CaseIterable {
  /// The entity is new, with an empty table or none.
  case added

  /// Unchanged, byte for byte.
  case unchanged

  /// Unchanged; the entity or properties are renamed.
  case renamed

  /// Kept; new columns are added, with defaults filled in.
  case inPlace = "in-place"

  /// Rewritten.
  case rebuilt

  case custom

  case removed
}
