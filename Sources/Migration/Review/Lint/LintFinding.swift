/// Something about a model's versions that would hurt the people who have stores of them.
public struct LintFinding: Sendable, Hashable {
  /// The rule that is broken; raw values are part of the command line's contract.
  public enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    /// A step between two versions deletes something.
    case dataLoss = "data-loss"

    /// Whether a step works, or what it keeps, depends on the records.
    case dependsOnData = "depends-on-data"

    /// No mapping can be inferred for a step.
    case notMigratable = "not-migratable"

    /// A removal and an addition that look like a rename without a renaming identifier.
    case possibleRename = "possible-rename"

    /// Something is in both versions under one name, and only its renaming identifiers disagree.
    case disagreeingIdentifiers = "disagreeing-identifiers"

    /// A renaming identifier that does not lead to what it seems meant for.
    case brokenRename = "broken-rename"

    /// Renaming identifiers move values, and the hashes of both versions are equal, so that no migration runs.
    case renameWithoutMigration = "rename-without-migration"

    /// An attribute's values are to be encrypted in the cloud from a version on, or no more.
    case cloudEncryptionChanged = "cloud-encryption-changed"

    /// A version was edited after its hashes had been locked.
    case editedAfterRelease = "edited-after-release"

    /// A version is locked and not in the bundle any more.
    case missingRelease = "missing-release"

    case inconsistentModel = "inconsistent-model"

    /// A compiled bundle was put together from files of different versions.
    case mismatchedHashes = "mismatched-hashes"

    /// A version cannot be read.
    case unreadableVersion = "unreadable-version"

    /// Swift sources leave something to a compiler, without which the version is not complete.
    case unresolvedSource = "unresolved-source"

    /// It is not certain what SwiftData makes of something in Swift sources.
    case uncertainSource = "uncertain-source"

    /// A historical schema in Swift lists or reaches a class of the current version.
    case liveClass = "live-class"

    /// A class of a historical schema is called as an alias whose class has another name.
    case aliasName = "alias-name"

    /// Two schemas of a migration plan have one checksum.
    case duplicateChecksum = "duplicate-checksum"

    /// A renaming identifier was dropped, and the version hashes of both versions are equal.
    case droppedIdentifier = "dropped-identifier"

    /// A version was released, and is not in the migration plan.
    case unplannedRelease = "unplanned-release"

    /// A store at hand is of none of the versions.
    case unknownRelease = "unknown-release"

    /// A relationship of one schema's class leads to another schema's.
    case foreignVersionClass = "foreign-version-class"

    /// An enumeration or a structure is part of a historical schema, and is the app's present one.
    case unfrozenType = "unfrozen-type"

    /// A class is declared that a version had, and the next one neither lists nor reaches.
    case unlistedClass = "unlisted-class"

    /// The hashes of a version differ by platform.
    case platformDependent = "platform-dependent"
    case cloudKitUniqueness = "cloudkit-uniqueness"
    case cloudKitMandatoryAttribute = "cloudkit-mandatory-attribute"
    case cloudKitMandatoryRelationship = "cloudkit-mandatory-relationship"
    case cloudKitMissingInverse = "cloudkit-missing-inverse"
    case cloudKitOrdered = "cloudkit-ordered"
    case cloudKitDenyRule = "cloudkit-deny-rule"
    case cloudKitType = "cloudkit-type"

    /// A change that is no addition, which a deployed CloudKit schema does not allow.
    case cloudKitNotAdditive = "cloudkit-not-additive"
  }

  /// How much a finding matters.
  public enum Severity: String, Sendable, Hashable, Codable {
    /// Stores in the field cannot be migrated, or would lose what was not meant to be removed.
    case error

    case warning
  }

  /// The rule that is broken.
  public var rule: Rule

  /// How much it matters.
  public var severity: Severity { rule.severity }

  /// The version, or the step such as `V1 → V2`, that breaks it.
  public var place: String

  /// The entity it is about, where it is about one.
  public var entityName: String?

  /// The property it is about, where it is about one.
  public var propertyName: String?

  /// The source file it stands in, where it stands in one.
  public var file: String?

  /// The line of the file, from 1.
  public var line: Int?

  /// What was found, in a plain sentence without a full stop.
  public var detail: String

  /// What to do about it, in full sentences.
  public var hint: String

  /// A finding.
  public init(
    _ rule: Rule, in place: String, entity: String? = nil, property: String? = nil, detail: String, hint: String
  ) {
    self.rule = rule
    self.place = place
    entityName = entity
    propertyName = property
    self.detail = detail
    self.hint = hint
  }
}

extension LintFinding.Rule {
  /// How much a finding of this rule matters.
  public var severity: LintFinding.Severity {
    switch self {
    case .notMigratable, .disagreeingIdentifiers, .brokenRename, .renameWithoutMigration, .editedAfterRelease,
      .missingRelease, .inconsistentModel,
      .mismatchedHashes, .unreadableVersion, .unresolvedSource, .liveClass, .duplicateChecksum, .unplannedRelease,
      .unknownRelease, .foreignVersionClass, .unfrozenType:
      .error
    case .dataLoss, .dependsOnData, .droppedIdentifier, .possibleRename, .cloudEncryptionChanged, .cloudKitUniqueness,
      .cloudKitMandatoryAttribute,
      .cloudKitMandatoryRelationship, .cloudKitMissingInverse, .cloudKitOrdered, .cloudKitDenyRule, .cloudKitType,
      .cloudKitNotAdditive, .uncertainSource, .aliasName, .unlistedClass, .platformDependent:
      .warning
    }
  }
}
