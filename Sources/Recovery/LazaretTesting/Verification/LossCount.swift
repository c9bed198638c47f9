internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import StoreRecords

/// How much of what a step loses was in the generated stores.
struct LossCount: Sendable {
  let step: MigrationStep
  private var counts: [MigrationLoss: Int] = [:]

  init(_ step: MigrationStep) { self.step = step }

  /// Counts what a store of the step's source holds of it.
  mutating func count(in store: PersistentStore) throws {
    for loss in step.mapping.losses {
      counts[loss, default: 0] += try Self.count(loss, store)
    }
    for found in try store.read({ try step.mapping.recordsLeftOut(in: $0) }) {
      counts[MigrationLoss(.filteredRecords, source: found.entity), default: 0] += found.rows ?? 0
    }
  }

  /// Adds what was counted elsewhere for the same step.
  mutating func add(_ other: LossCount) { counts.merge(other.counts, uniquingKeysWith: +) }

  private static func count(_ loss: MigrationLoss, _ store: PersistentStore) throws -> Int {
    if let property = loss.property,
      [.removedRelationship, .relationshipOrder, .unrelatedDestination].contains(loss.kind)
        || store.model?.properties(of: loss.sourceEntityName)[property.name]?.property.relationship != nil
    {
      return try store.pairs(of: property.name, entity: loss.sourceEntityName).count
    }
    var count = 0
    var stream = RecordStream(store, loss.sourceEntityName)
    while let record = try stream.next() {
      guard let property = loss.property else {
        count += 1
        continue
      }
      if let value = record.values[property.description], value != .null { count += 1 }
    }
    return count
  }

  /// The losses, those that an entity only inherits counted with the entity that declares them.
  var losses: [VerificationReport.Loss] {
    let filtered = counts.keys.filter { $0.kind == .filteredRecords }.sorted {
      $0.sourceEntityName < $1.sourceEntityName
    }
    let kept = step.mapping.losses.withoutInherited() + filtered
    return kept.map { loss in
      let whole = (step.mapping.losses + filtered).filter { other in
        other.kind == loss.kind && other.property == loss.property
          && (other == loss || other.declaringEntityName == loss.sourceEntityName)
      }
      return VerificationReport.Loss(
        step: step.name, kind: loss.kind, entity: loss.sourceEntityName, property: loss.property?.description,
        text: loss.text, count: whole.reduce(0) { $0 + (counts[$1] ?? 0) })
    }
  }
}
