internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// The check of one version.
struct VersionCheck {
  let verifier: MigrationVerifier
  let version: ModelVersion
  let isDirect: Bool
  let scratch: Workplace

  /// The number of the first store among those of all versions, and how many there are.
  let first: Int
  let count: Int

  var options: MigrationVerifier.Options { verifier.options }
  var bundle: ModelBundle { verifier.bundle }

  func run() throws -> VerificationReport.Version {
    var report = VerificationReport.Version(
      from: version.name, to: bundle.current.name, direct: isDirect, steps: [], outcome: .fine, losses: [],
      refusals: [], conditions: [], cases: [])
    let path: MigrationPath
    do {
      path = try MigrationPath(
        in: bundle, from: .version(version.name), options: .init(isDirect: isDirect, mappings: options.mappings))
    } catch {
      guard error.kind == .notInferable else { throw error }
      report.outcome = .failed
      report.refusals = error.refusals.map { refusal in
        VerificationReport.Refusal(
          step: refusal.step ?? error.step ?? "", kind: refusal.kind, entity: refusal.entityName,
          property: refusal.property?.description, reason: refusal.reason, text: refusal.detail,
          wayRound: refusal.wayRound)
      }
      return report
    }
    report.steps = path.steps.map(\.name)
    var losses = path.steps.map { LossCount($0) }
    report.conditions = path.steps.flatMap { step in
      step.mapping.conditionsWithoutInherited.map { "\(step.name): \($0.text)" }
    }
    for (number, profile) in options.profiles.enumerated() {
      guard options.progress(version.name, profile, first + number, count) else {
        throw MigrationError(
          .cancelled, operation: "verify the model's migrations", path: bundle.path,
          detail: "it was cancelled at version \"\(printable(version.name))\"")
      }
      let found = try CaseCheck(self, profile, path.steps).run(&losses)
      report.cases.append(found)
      report.outcome = max(report.outcome, found.outcome)
    }
    report.losses = losses.flatMap(\.losses)
    if !report.losses.isEmpty { report.outcome = max(report.outcome, .lossy) }
    return report
  }
}

/// How much of what a step loses was in the generated stores.
struct LossCount {
  let step: MigrationStep
  private var counts: [MigrationLoss: Int] = [:]

  init(_ step: MigrationStep) { self.step = step }

  /// Counts what a store of the step's source holds of it.
  mutating func count(in store: PersistentStore) throws {
    for loss in step.mapping.losses {
      counts[loss, default: 0] += try Self.count(loss, store)
    }
  }

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
    let kept = step.mapping.losses.withoutInherited()
    return kept.map { loss in
      let whole = step.mapping.losses.filter { other in
        other.kind == loss.kind && other.property == loss.property
          && (other == loss || other.declaringEntityName == loss.sourceEntityName)
      }
      return VerificationReport.Loss(
        step: step.name, kind: loss.kind, entity: loss.sourceEntityName, property: loss.property?.description,
        text: loss.text, count: whole.reduce(0) { $0 + (counts[$1] ?? 0) })
    }
  }
}
