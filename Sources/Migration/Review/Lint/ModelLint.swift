public import ManagedObjectModel
internal import Platform

/// Checks a model's versions for problems that would hurt users' stores.
public struct ModelLint: Sendable {
  /// The scope of the checks.
  public struct Options: Sendable, Hashable {
    /// Whether to check CloudKit's rules (format section 5.6).
    public var checksCloudKit: Bool

    /// Whether to check steps between locked versions, although they can't change any more.
    public var checksReleasedSteps: Bool

    /// Makes options.
    public init(checksCloudKit: Bool = false, checksReleasedSteps: Bool = false) {
      self.checksCloudKit = checksCloudKit
      self.checksReleasedSteps = checksReleasedSteps
    }
  }

  /// The findings: versions first, then steps from the oldest.
  public private(set) var findings: [LintFinding] = []

  /// The omitted findings of steps between locked versions.
  public private(set) var releasedFindingCount = 0

  /// Returns the findings with source file and line.
  ///
  /// - Parameter place: Returns the file and line of a finding, if known.
  public func located(_ place: (LintFinding) -> (file: String, line: Int?)?) -> ModelLint {
    var lint = self
    lint.findings = findings.map { finding in
      guard finding.file == nil, let found = place(finding) else { return finding }
      var finding = finding
      finding.file = found.file
      finding.line = found.line
      return finding
    }
    return lint
  }

  /// Checks a bundle, with a lock file's hashes if given.
  public init(_ bundle: ModelBundle, lock: ModelLock? = nil, options: Options = Options()) {
    findings = bundle.unreadableVersions.map { unreadable in
      LintFinding(
        .unreadableVersion, in: unreadable.name, detail: "the version cannot be read: \(unreadable.error.detail)",
        hint: unreadable.error.hint)
    }
    for version in bundle.versions { checkVersion(version) }
    if let lock { check(bundle, against: lock) }
    if options.checksCloudKit { findings += CloudKitRules.findings(in: bundle.current) }
    for (number, version) in bundle.versions.enumerated() {
      // A store counts as the newest version of its hashes.
      let twin = bundle.versions[..<number].last { $0.versionHashes == version.versionHashes }
      if let twin { findings += EqualHashes.findings(from: twin, to: version) }
    }
    for (before, after) in zip(bundle.versions, bundle.versions.dropFirst()) {
      let found = Self.findings(
        from: before, to: after, later: bundle.versions(after: after).map(\.model),
        checksCloudKit: options.checksCloudKit)
      let isReleased = lock.map { $0.holds(before) && $0.holds(after) } ?? false
      if isReleased, !options.checksReleasedSteps {
        releasedFindingCount += found.count
      } else {
        findings += found
      }
    }
  }

  /// Returns a copy with another source's findings before those of steps.
  public func adding(_ more: [LintFinding]) -> ModelLint {
    var lint = self
    lint.findings = more + findings
    return lint
  }

  /// Returns a copy with all findings changed.
  public func changing(_ change: (inout LintFinding) throws -> Void) rethrows -> ModelLint {
    var lint = self
    for index in lint.findings.indices { try change(&lint.findings[index]) }
    return lint
  }

  private mutating func checkVersion(_ version: ModelVersion) {
    findings += version.model.validate().map { finding in
      LintFinding(
        .inconsistentModel, in: version.name, entity: finding.entityName, property: finding.propertyName,
        detail: finding.detail, hint: "Correct the model in Xcode.")
    }
    let names = version.mismatchedEntityNames
    guard !names.isEmpty else { return }
    findings.append(
      LintFinding(
        .mismatchedHashes, in: version.name, entity: names.first,
        detail: "the bundle has other hashes stored for \(names.map(printable).joined(separator: ", "))",
        hint: "Build the model again; the bundle was put together from files of different versions."))
  }

  private mutating func check(_ bundle: ModelBundle, against lock: ModelLock) {
    for name in lock.versions.keys.sorted(by: precedesNaturally) {
      guard let locked = lock.versions[name] else { continue }
      guard let version = bundle.version(named: name) else {
        guard !bundle.unreadableVersions.contains(where: { $0.name == name }) else { continue }
        findings.append(
          LintFinding(
            .missingRelease, in: name, detail: "the version was released and is no longer in the model",
            hint: "Put it back, so that stores of it can be migrated; or write the lock file again."))
        continue
      }
      let now = version.versionHashes.mapValues(\.hex)
      for entity in Set(now.keys).union(locked.entities.keys).sorted(by: precedesByCodeUnit)
      where now[entity] != locked.entities[entity] {
        let what =
          locked.entities[entity] == nil ? "was added" : now[entity] == nil ? "was removed" : "has another hash"
        findings.append(
          LintFinding(
            .editedAfterRelease, in: name, entity: entity,
            detail: "entity \"\(printable(entity))\" \(what) since the version was released",
            hint: "Undo the edit and make it in a new version; stores of the released version would not be "
              + "recognized."))
      }
    }
  }

  private static func findings(
    from before: ModelVersion, to after: ModelVersion, later: [ManagedObjectModel], checksCloudKit: Bool
  ) -> [LintFinding] {
    let place = "\(before.name) → \(after.name)"
    let inference = MappingInference(from: before.model, to: after.model, before: later)
    var findings = inference.refusals.map { refusal in
      LintFinding(
        refusal.kind == .disagreeingIdentifiers ? .disagreeingIdentifiers : .notMigratable, in: place,
        entity: refusal.entityName, property: refusal.property?.description, detail: refusal.detail,
        hint: refusal.wayRound)
    }
    findings += RenameSuspicion.findings(in: inference.mapping, place: place)
    findings += CloudKitRules.encryptionFindings(from: before, to: after, place: place)
    // Refused data is not lost.
    let refused = Set(
      inference.refusals.filter(\.preventsLoss).map { [$0.entityName, $0.property?.description ?? ""] })
    for loss in inference.mapping.losses.withoutInherited()
    where !refused.contains([loss.sourceEntityName, loss.property?.description ?? ""]) {
      findings.append(
        LintFinding(
          .dataLoss, in: place, entity: loss.sourceEntityName, property: loss.property?.description,
          detail: loss.text, hint: "Keep it, or lock the versions when the loss is meant."))
    }
    findings += inference.mapping.conditionsWithoutInherited.map { condition in
      LintFinding(
        .dependsOnData, in: place, entity: condition.destinationEntityName,
        property: condition.destinationProperty?.description, detail: condition.text, hint: condition.remedy)
    }
    if checksCloudKit { findings += CloudKitRules.findings(in: inference.mapping, place: place) }
    return findings
  }
}

extension MigrationCondition {
  fileprivate var remedy: String {
    switch kind {
    case .missingAttributeValue, .newMandatoryAttribute: "Give the attribute a default, or make it optional."
    case .missingRelationship, .newMandatoryRelationship: "Make it optional, or fill it in a custom step."
    case .tooFewDestinations, .tooManyDestinations: "Leave the limit out, or mend the records in a custom step."
    case .duplicateValues: "Remove duplicates in a custom step before."
    case .recordsOfAbstractEntity: "Make sure that there are no such records, or leave it concrete."
    case .valueOutOfRange: "Choose a type that holds every number of the old one."
    case .severalOwners: "Make the inverse a to-many relationship."
    case .destinationOfOtherEntity: "Let it lead to a common ancestor."
    case .newInverse: "Give the new relationship another name."
    case .unreadableDefault: "Set the values in a custom step."
    }
  }
}

extension ModelLint: Encodable {
  /// Encodes the `model lint --json` output; keys may be added, never changed.
  public func encode(to encoder: any Encoder) throws {
    let findings = findings.map { finding -> JSON.Object in
      [
        "rule": finding.rule, "severity": finding.severity, "place": finding.place, "entity": finding.entityName,
        "property": finding.propertyName, "file": finding.file, "line": finding.line, "detail": finding.detail,
        "hint": finding.hint,
      ]
    }
    try encoder.encode(["clean": self.findings.isEmpty, "findings": findings, "releasedFindings": releasedFindingCount])
  }
}

/// The differences between versions of equal hashes, where no migration runs.
enum EqualHashes {
  /// The entities and properties a version takes from others by renaming identifier.
  ///
  /// Version hashes ignore renaming identifiers (format section 4.2), so stores open unchanged.
  static func findings(from before: ModelVersion, to after: ModelVersion) -> [LintFinding] {
    let mapping = MappingInference(disregardingHashesFrom: before, to: after).mapping
    let place = "\(before.name) → \(after.name)"
    var findings: [LintFinding] = []
    for entity in mapping.entityMappings {
      guard let source = entity.sourceEntityName, let destination = entity.destinationEntityName else { continue }
      if source != destination {
        findings.append(finding(place, entity: destination, property: nil, old: source, new: destination))
      }
      for property in entity.propertyMappings {
        guard let origin = property.source, origin != property.destination,
          after.model.entities[destination]?.properties[property.destination.name] != nil
        else { continue }
        findings.append(
          finding(
            place, entity: destination, property: property.destination.description,
            old: "\(source).\(origin)", new: "\(destination).\(property.destination)"))
      }
    }
    return findings + dropped(from: before.model, to: after.model, place)
  }

  /// The dropped renaming identifiers; older stores lose the renamed data unless a path passes the version that had
  /// them.
  private static func dropped(
    from before: ManagedObjectModel, to after: ManagedObjectModel, _ place: String
  ) -> [LintFinding] {
    var findings: [LintFinding] = []
    func note(_ name: String, _ former: String?, _ latter: String?, entity: String, property: String? = nil) {
      guard let former, former != name, latter == nil else { return }
      findings.append(
        LintFinding(
          .droppedIdentifier, in: place, entity: entity, property: property,
          detail: "\(printable(property.map { "\(entity).\($0)" } ?? entity)) says no more that it was "
            + "\(printable(former)): only a way through the version before keeps what older stores have under that name",
          hint: "Keep the renaming identifier as long as there may be stores from before the rename."))
    }
    for (name, entity) in before.entities.inCodeUnitOrder() {
      guard let same = after.entities[name] else { continue }
      note(name, entity.explicitRenamingIdentifier, same.explicitRenamingIdentifier, entity: name)
      for (key, property) in entity.properties.inCodeUnitOrder() {
        guard let other = same.properties[key] else { continue }
        note(
          key, property.traits.explicitRenamingIdentifier, other.traits.explicitRenamingIdentifier, entity: name,
          property: key)
      }
    }
    return findings
  }

  private static func finding(
    _ place: String, entity: String, property: String?, old: String, new: String
  ) -> LintFinding {
    LintFinding(
      .renameWithoutMigration, in: place, entity: entity, property: property,
      detail: "\(printable(new)) is what \(printable(old)) was, by its renaming identifier; but the version hashes of "
        + "both versions are equal, so that no migration runs, and \(printable(new)) has what \(printable(new)) had "
        + "before",
      hint: "Give the entity a version hash modifier in the newer version, so that the versions differ and a migration "
        + "runs; or leave the names as they were.")
  }
}
