struct CaseCheck {
  let verifier: MigrationVerifier
  let piece: VerifiedRun
  let profile: StoreProfile
  let folder: FilePath

  private var surroundings: Surroundings { verifier.surroundings }
  private var options: MigrationVerifier.Options { verifier.options }
  private var steps: [MigrationStep] { piece.steps }

  /// Returns a profile's journal: migrations meet all three in the field.
  static func journal(_ profile: StoreProfile) -> StoreGenerator.Journal {
    switch profile {
    case .typical: .log
    case .sparse: .rollback
    case .empty, .edge, .uniform: .none
    }
  }

  func run() throws -> (found: VerificationReport.Case, losses: [LossCount]) {
    var losses = steps.map { LossCount($0) }
    let begin = surroundings.now()
    var report = VerificationReport.Case(
      profile: profile, records: 0, outcome: .fine, comparedRecords: 0, alterations: [], differences: [],
      differenceCount: 0, unchecked: [], notes: [], seconds: 0)
    let generator = try StoreGenerator(
      piece.version.model,
      options: StoreGenerator.Options(
        profile, seed: options.seed, records: options.records, journal: Self.journal(profile)))
    let store = try generator.write(to: place("store"), in: surroundings.fileSystem)
    report.records = store.recordCount
    report.notes = store.notes.map { "\($0.kind.rawValue) \($0.entityName).\($0.propertyName)" }
    do {
      try migrate(store.path, generator.layout, &report, &losses)
    } catch let error as MigrationError {
      if error.isEnvironmental || error.kind == .cancelled { throw error }
      fail(error, &report)
    }
    if report.differenceCount > 0 { report.outcome = .failed }
    let end = surroundings.now()
    report.seconds =
      Double(end.secondsSince1970 - begin.secondsSince1970)
      + Double(end.nanoseconds - begin.nanoseconds) / 1_000_000_000
    return (report, losses)
  }

  /// Makes a store's path from a version, with invalid characters replaced.
  private func place(_ name: String) -> FilePath {
    let whole = "\(piece.label)-\(profile.rawValue)-\(name).sqlite"
    let safe = whole.unicodeScalars.map { scalar -> String in
      let isSafe =
        scalar.properties.isAlphabetic || scalar.properties.numericType != nil || " .-_".unicodeScalars.contains(scalar)
      return isSafe ? String(scalar) : "_"
    }
    return folder.appending(safe.joined())
  }

  // MARK: Migrating

  private func migrate(
    _ store: FilePath, _ layout: StoreLayout, _ report: inout VerificationReport.Case, _ losses: inout [LossCount]
  ) throws {
    var source = store
    var layout = layout
    for (number, step) in steps.enumerated() {
      let target = place("step-\(number + 1)-to-\(step.destinationName)")
      let before = try PersistentStore(reading: source, as: layout)
      try losses[number].count(in: before)
      try before.close()
      // Only this step, regardless of other paths; a migration looks at all versions of its bundle.
      let versions = [step.sourceName, step.destinationName].compactMap { $0.flatMap(verifier.bundle.version(named:)) }
      let bundle = versions.count == 2 ? ModelBundle(name: verifier.bundle.name, versions: versions) : nil
      try migrate(source, in: bundle ?? verifier.bundle, to: step.destinationName, target, isDirect: true)
      let next = try StoreLayout(step.mapping.destination)
      try compare(step.mapping, (source, before.layout(of: step.mapping.source)), (target, next), &report)
      (source, layout) = (target, next)
    }
    guard piece.isWay else { return }
    // The whole path at once must give the same records.
    let target = place("whole")
    try migrate(store, in: verifier.bundle, to: verifier.bundle.current.name, target, isDirect: false)
    try compareWhole(source, target, layout, &report)
  }

  private func migrate(
    _ store: FilePath, in bundle: ModelBundle, to version: String, _ target: FilePath, isDirect: Bool
  ) throws {
    var options = Migrator.Options()
    options.version = version
    options.isDirect = isDirect
    options.output = target
    options.mappings = self.options.mappings
    options.isCancelled = self.options.isCancelled
    _ = try Migrator(bundle, surroundings: surroundings).migrate(store, options: options)
  }

  private func compare(
    _ mapping: MappingModel, _ source: (path: FilePath, layout: StoreLayout),
    _ target: (path: FilePath, layout: StoreLayout), _ report: inout VerificationReport.Case
  ) throws {
    let before = try PersistentStore(reading: source.path, as: source.layout)
    let after = try PersistentStore(reading: target.path, as: target.layout)
    let comparison = try MigrationComparison(mapping, source: before, result: after, options: comparisonOptions)
    try before.close()
    try after.close()
    report.comparedRecords += comparison.comparedRecords
    report.alterations += comparison.alterations
    report.unchecked += comparison.unchecked
    add(comparison.differences, comparison.differenceCount, &report)
  }

  private func compareWhole(
    _ first: FilePath, _ second: FilePath, _ layout: StoreLayout, _ report: inout VerificationReport.Case
  ) throws {
    let model = layout.model
    let one = try PersistentStore(reading: first, as: layout)
    let other = try PersistentStore(reading: second, as: layout)
    var options = comparisonOptions
    // Each run has its own save time.
    options.ignoring = Set(
      model.entities.values.flatMap { entity in
        entity.properties.values.compactMap { property in
          property.attribute?.derivationExpression?.hasPrefix("now") == true ? property.name : nil
        }.flatMap { name in ([entity.name] + model.descendantNames(of: entity.name)).map { "\($0).\(name)" } }
      })
    let comparison = try StoreComparison(one, other, options: options)
    try one.close()
    try other.close()
    add(comparison.differences, comparison.differenceCount, &report)
  }

  private var comparisonOptions: StoreComparison.Options {
    var options = StoreComparison.Options()
    options.limit = self.options.limit
    return options
  }

  private func add(_ differences: [StoreDifference], _ count: Int, _ report: inout VerificationReport.Case) {
    report.differences += differences.prefix(max(0, options.limit - report.differences.count))
    report.differenceCount += count
  }

  // MARK: Failures

  /// Distinguishes records that violate a mapping's condition from a broken migration.
  private func fail(_ error: MigrationError, _ report: inout VerificationReport.Case) {
    report.step = error.step
    report.code = error.code
    report.detail = error.detail
    let mapping = steps.first { $0.name == error.step }?.mapping
    let kinds: Set<MigrationError.Kind> = [.dataViolation, .constraintViolation]
    let condition = mapping?.conditions.first { condition in
      condition.effect == .fails && kinds.contains(error.kind) && condition.destinationEntityName == error.entityName
        && (error.propertyName.map { name in
          condition.destinationProperty?.description == name || condition.propertyNames.joined(separator: ",") == name
            || condition.propertyNames.first == name
        } ?? true)
    }
    report.condition = condition?.text
    // Typical records must migrate; others give a finding.
    let isUsual = profile == .empty || profile == .typical
    report.outcome = condition == nil || isUsual ? .failed : .conditional
  }
}

/// The generated records affected by a step's losses.
struct LossCount: Sendable {
  let step: MigrationStep
  private var counts: [MigrationLoss: Int] = [:]

  init(_ step: MigrationStep) { self.step = step }

  mutating func count(in store: PersistentStore) throws {
    for loss in step.mapping.losses { counts[loss, default: 0] += try Self.count(loss, store) }
    for found in try store.read({ try step.mapping.recordsLeftOut(in: $0) }) {
      counts[MigrationLoss(.filteredRecords, source: found.entity), default: 0] += found.rows ?? 0
    }
  }

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

  /// The losses, inherited ones under the declaring entity.
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
